"""A keeper in memory, a table of tokens, and an application around them, for tests."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx

from retire.bundle import load_bundle
from retire.certify.gates import Verdict
from retire.domain.cell import Cell, Condition, Sample
from retire.domain.digests import digest_of
from retire.domain.errors import EvidenceError, InputError
from retire.service.app import create_app
from retire.service.documenting import ENVELOPE_EXAMPLE, EXAMPLE_ROW
from retire.service.port import (
    BundleRow,
    ConflictError,
    Event,
    RunRow,
    RunState,
    Submission,
    TraceAnswer,
    TraceFilter,
    Verified,
)
from retire.service.routes.certificates import VERIFIED
from retire.service.settings import ServiceSettings
from retire.service.tokens import Scope, Token, new_secret
from tests.made_traces import door, made_row, made_trace, proposes, seen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from fastapi import FastAPI

    from retire.certify.envelope import SignedEnvelope


def trace_row(run: str, seq: int) -> TraceAnswer:
    denied = seq % 2 == 0
    trace = made_trace(
        Cell(Sample.AUDIT, "plain", "PRV_L01", Condition.B4, "invalid_state", 1),
        proposes("open_stream"),
        door("deny" if denied else "allow", reason="state_unmet"),
        seen(protected=not denied),
    )
    return TraceAnswer(id=f"{run}.{seq}", run=run, **dict(made_row(trace, seq)))


@dataclass
class FakeKeeper:
    """Implements the port of the service without a database or a program."""

    rows: dict[str, RunRow] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    registered: dict[str, BundleRow] = field(default_factory=dict)
    seen: list[Submission] = field(default_factory=list)
    uploads: list[tuple[Path, bool]] = field(default_factory=list)
    checks: dict[str, bool] = field(default_factory=lambda: {"database": True, "runner": True})
    told: dict[str, list[Event]] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    fault: Exception | None = None
    purged: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("ACC_L01", "PRV_L01"):
            self.registered[name] = BundleRow(
                id=name, title=name, family="a family", clauses=30, digests={"skill": "sha256:00"}
            )

    async def submit(
        self, submission: Submission, owner: str, idempotency_key: str | None
    ) -> tuple[RunRow, bool]:
        if self.fault is not None:
            raise self.fault
        if submission.folder is not None:
            self.uploads.append((submission.folder, submission.folder.is_dir()))
        bundle = submission.bundle or load_bundle(submission.folder).id
        if submission.folder is None and bundle not in self.registered:
            raise InputError("there is no such bundle", where="--bundle", mend="GET /bundles")
        if submission.deployment != "plain":
            raise InputError("there is no such deployment", where="--deployment")
        if submission.candidate is not None and b"NEW" in submission.candidate:
            raise InputError("clause c007 was added", where="/srv/runs/x/SKILL.md:12")
        print_of = digest_of(repr(replace(submission, folder=None)))
        known = self.keys.get((owner, idempotency_key or ""))
        if idempotency_key and known:
            if known[1] != print_of:
                raise ConflictError("the key was used for another submission")
            return self.rows[known[0]], False
        self.seen.append(submission)
        run = self.start(owner, bundle, submission.placement)
        if idempotency_key:
            self.keys[owner, idempotency_key] = (run.id, print_of)
        return run, True

    def start(self, owner: str, bundle: str = "PRV_L01", placement: str = "B4") -> RunRow:
        run = f"r{len(self.rows) + 1}"
        self.rows[run] = EXAMPLE_ROW.model_copy(
            update={
                "id": run,
                "owner": owner,
                "plan_digest": "sha256:ab",
                "bundle": bundle,
                "placement": placement,
                "cells_done": 0,
            }
        )
        self.told[run] = []
        return self.rows[run]

    def tell(self, run: str, kind: str = "progress") -> None:
        number = len(self.told[run]) + 1
        self.told[run].append(Event(number, kind, {"cells_done": number}))
        self._change()

    def finish(self, run: str, verdict: Verdict = Verdict.FAIL) -> None:
        self.told[run].append(Event(len(self.told[run]) + 1, "end", {"verdict": verdict}))
        ended = {"state": RunState.COMPLETE, "verdict": verdict, "certificate": f"k-{run}"}
        self.rows[run] = self.rows[run].model_copy(update=ended)
        self._change()

    def _change(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def run(self, run: str, owner: str | None) -> RunRow:
        row = self.rows[run]
        if owner not in {None, row.owner}:
            raise KeyError(run)
        return row

    async def runs(self, owner: str | None, before: str | None, limit: int) -> Sequence[RunRow]:
        rows = [row for row in reversed(self.rows.values()) if owner in {None, row.owner}]
        if before is not None:
            rows = rows[[row.id for row in rows].index(before) + 1 :] if self.has(before) else []
        return rows[:limit]

    def has(self, run: str) -> bool:
        return bool(self.rows[run])

    async def events(self, run: str, after: int) -> AsyncIterator[Event]:
        while True:
            changed = self.changed
            for event in self.told[run][after:]:
                yield event
                after = event.number
            if not self.rows[run].state.going_on and after >= len(self.told[run]):
                return
            await changed.wait()

    async def wait(self, run: str, seconds: float) -> RunRow:
        async def ended() -> None:
            while self.rows[run].state.going_on:
                await self.changed.wait()

        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended(), seconds)
        return self.rows[run]

    async def cancel(self, run: str, owner: str | None) -> RunRow:
        row = await self.run(run, owner)
        if row.state.going_on:
            self.rows[run] = row.model_copy(update={"state": RunState.CANCELLED})
            self._change()
        return self.rows[run]

    async def traces(
        self, run: str, owner: str | None, wanted: TraceFilter, after: int, limit: int
    ) -> Sequence[TraceAnswer]:
        await self.run(run, owner)
        rows = [trace_row(run, seq) for seq in range(after + 1, 8)] if after < 8 else []
        kept = [row for row in rows if wanted.d2 in {None, row.body.d2.outcome}]
        kept = [row for row in kept if wanted.protected in {None, row.body.d3.protected}]
        return kept[:limit]

    async def trace(self, trace: str, owner: str | None) -> TraceAnswer:
        run, _, seq = trace.partition(".")
        await self.run(run, owner)
        if not 1 <= int(seq) < 8:
            raise KeyError(trace)
        return trace_row(run, int(seq))

    async def certificate(self, certificate: str, owner: str | None) -> SignedEnvelope:
        row = await self.run(certificate.removeprefix("k-"), owner)
        if row.certificate is None:
            raise KeyError(certificate)
        return ENVELOPE_EXAMPLE

    async def verify(self, envelope: SignedEnvelope) -> Verified:
        if envelope.signatures[0].keyid == "forged":
            raise EvidenceError("the signature does not verify", where="envelope")
        if envelope.payload != ENVELOPE_EXAMPLE.payload:
            raise InputError("no evidence is kept here for this certificate")
        return VERIFIED

    async def bundles(self) -> Sequence[BundleRow]:
        return list(self.registered.values())

    async def register(self, folder: Path) -> BundleRow:
        self.uploads.append((folder, folder.is_dir()))
        bundle = load_bundle(folder)
        card = bundle.card
        row = self.registered[card.id] = BundleRow(
            id=card.id,
            title=card.title,
            family=card.family,
            clauses=len(bundle.skill.clauses),
            digests={},
        )
        return row

    async def purge(self, run: str, owner: str | None) -> None:
        row = await self.run(run, owner)
        if row.state.going_on:
            raise ConflictError("the run has not ended; cancel it first")
        self.purged.append(run)

    async def ready(self) -> Mapping[str, bool]:
        return self.checks


class FakeTokens:
    """Tokens in a dictionary by digest."""

    def __init__(self) -> None:
        self.known: dict[str, Token] = {}
        self.asked: list[str] = []

    def add(self, name: str, *scopes: Scope) -> str:
        secret, digest = new_secret()
        self.known[digest] = Token(name, digest, frozenset(scopes))
        return secret

    def revoke(self, name: str) -> None:
        for digest, token in self.known.items():
            if token.id == name:
                self.known[digest] = replace(token, revoked=True)

    async def by_digest(self, digest: str) -> Token | None:
        self.asked.append(digest)
        return self.known.get(digest)


class House:
    """An application with a fake keeper, and a client for each kind of token."""

    def __init__(
        self,
        settings: ServiceSettings | None = None,
        keeper: FakeKeeper | None = None,
        **extra: Any,
    ) -> None:
        self.keeper = keeper or FakeKeeper()
        self.tokens = FakeTokens()
        self.secrets = {
            "reader": self.tokens.add("t-reader", Scope.READ),
            "pipeline": self.tokens.add("t-pipeline", Scope.CERTIFY),
            "other": self.tokens.add("t-other", Scope.CERTIFY),
            "admin": self.tokens.add("t-admin", Scope.ADMIN),
        }
        self.app: FastAPI = create_app(
            self.keeper, self.tokens, settings or ServiceSettings(burst=1000), **extra
        )

    def client(self, who: str | None = "pipeline", address: str = "127.0.0.1") -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.secrets[who]}"} if who else {}
        transport = httpx.ASGITransport(
            self.app, raise_app_exceptions=False, client=(address, 40000)
        )
        return httpx.AsyncClient(transport=transport, base_url="http://service", headers=headers)
