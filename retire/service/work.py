"""Carrying one run of the service: from its stored request to a signed certificate."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from retire.bundle import load_bundle, read_files
from retire.certify.envelope import open_envelope, sign_statement
from retire.domain.errors import IncompleteError, InputError, RetireError
from retire.matrix import Protocol
from retire.runner.folder import RunFolder, write_whole
from retire.service.port import BundleRow, RunState
from retire.service.queries import stage_counts
from retire.store import RunStore
from retire.store.keys import certifier_key
from retire.store.registry import Registry
from retire.store.registry_tables import RUNS
from retire.wiring import Request, execute, prepare, verify_envelope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from retire.service.keeper import KeeperSettings
    from retire.service.port import Submission
    from retire.wiring import Finished, Prepared

_TICK_SECONDS = 0.5
_TRIES = 3

log = logging.getLogger("retire.service")


class LeaseLostError(RetireError):
    """Another server took the run over; nothing more of it is written here."""


class Progress:
    """Counts finished cells for the registry."""

    def __init__(self) -> None:
        self.done = 0

    def begin(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins; only cells of the plan are counted."""
        del total
        if stage == "matrix":
            self.done = done

    def advance(self, stage: str, note: str = "") -> None:
        """One more is finished."""
        del note
        self.done += stage == "matrix"


def request_json(submission: Submission, source: Path, place: Path) -> dict[str, Any]:
    """Keep what was submitted in the run's folder; returns what a later server needs to go on.

    Raises:
        InputError: The bundle has a fault; the folder cannot be written.
    """
    RunFolder(place).prepare()
    bundle = load_bundle(source)
    for name, data in read_files(source).items():
        write_whole(place / "submitted" / name, data)
    if submission.candidate is not None:
        write_whole(place / "candidate.md", submission.candidate)
    try:
        protocol = Protocol.model_validate(
            {
                "schema": "retire.protocol/v1",
                "name": "certify",
                "seed": submission.seed,
                "bundles": (bundle.id,),
                "deployments": (submission.deployment,),
                "conditions": ("B1", submission.placement),
                "task_value": False,
                "repetitions": submission.repetitions,
                "margin_points": submission.margin_points,
            }
        )
    except ValueError as error:
        raise InputError(f"these values make no protocol: {error}") from error
    return {
        "protocol": protocol.model_dump(mode="json", by_alias=True),
        "candidate": submission.candidate is not None,
    }


class RunWork:
    """Runs what the keeper claimed."""

    def __init__(
        self,
        engine: Engine,
        settings: KeeperSettings,
        server: str,
        now: Callable[[], str],
        clock: Callable[[], int],
    ) -> None:
        self._engine = engine
        self._registry = Registry(engine)
        self._settings = settings
        self._server = server
        self._now = now
        self._clock = clock

    def prepare(self, request: Mapping[str, Any], place: Path) -> Prepared:
        """Load a stored request and fix its plan.

        Raises:
            InputError: As ``retire.wiring.prepare``.
        """
        values = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in request["protocol"].items()
        }
        protocol = Protocol.model_validate(values)
        bundle = protocol.bundles[0]
        candidates = {}
        if request["candidate"]:
            candidates[bundle] = (place / "candidate.md").read_bytes()
        return prepare(
            Request(
                protocol,
                {bundle: place / "submitted"},
                place,
                self._settings.concurrency,
                candidates,
            )
        )

    async def carry(self, run: str) -> None:
        """Carry a claimed run to its end, or as far as this server holds its lease."""
        progress = Progress()
        work = asyncio.create_task(self._run(run, progress))
        beat = asyncio.create_task(self._beat(run, progress))
        await asyncio.wait({work, beat}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            # The lease is gone or the run was cancelled.
            work.cancel()
            await asyncio.wait({work})
            ended = {"state": str(RunState.CANCELLED), "ended_at": self._now()}
            await asyncio.to_thread(self._end_if_cancelled, run, ended)
            return
        beat.cancel()
        with suppress(asyncio.CancelledError):
            await beat
        await asyncio.to_thread(self._registry.release, run, self._server, _ended(work, self._now))

    def _end_if_cancelled(self, run: str, values: Mapping[str, Any]) -> None:
        row = self._registry.run(run)
        if row is not None and row.cancel:
            self._registry.release(run, self._server, values)

    async def _beat(self, run: str, progress: Progress) -> None:
        """Renew the lease and tell the registry how far the run is; returns when it is lost."""
        written = -1
        while True:
            until = self._clock() + self._settings.lease_seconds
            if not await asyncio.to_thread(self._registry.renew, run, self._server, until):
                return
            if progress.done != written:
                written = progress.done
                stages = await asyncio.to_thread(stage_counts, self._engine, run)
                values = {"cells_done": written, "stages": json.dumps(stages)}
                await asyncio.to_thread(self._registry.change, run, values)
            await asyncio.sleep(_TICK_SECONDS)

    async def _run(self, run: str, progress: Progress) -> dict[str, Any]:
        row = await asyncio.to_thread(self._registry.run, run)
        if row is None:
            raise KeyError(run)
        place = self._settings.data / "runs" / run
        prepared = await asyncio.to_thread(self.prepare, json.loads(row.request), place)
        finished = await self._try(run, prepared, progress)
        certified = finished.certified[0]
        key = certifier_key(self._settings.home)
        envelope = sign_statement(certified.statement, key)
        name = f"{certified.placement.deployment}-{certified.placement.condition}.json"
        write_whole(prepared.folder.certificates / name, json.dumps(envelope).encode())
        state = RunState.INCOMPLETE if finished.incomplete else RunState.COMPLETE
        return {
            "state": str(state),
            "verdict": str(certified.verdict),
            "certificate": json.dumps(envelope),
            "cells_done": len(finished.evidence.rows),
            "stages": json.dumps(stage_counts(self._engine, run)),
            "ended_at": self._now(),
        }

    async def _try(self, run: str, prepared: Prepared, progress: Progress) -> Finished:
        """Execute; a dead program is tried again, since every attempt so far is stored."""
        for attempt in range(1, _TRIES + 1):
            store = RunStore(self._settings.data, self._engine, run, self._fence(run))
            try:
                return await execute(prepared, progress, store)
            except IncompleteError as error:
                if attempt == _TRIES:
                    raise
                log.warning("run %s: %s; trying again", run, error)
                await asyncio.sleep(attempt)
        raise AssertionError

    def _fence(self, run: str) -> Callable[[Connection], None]:
        def check(connection: Connection) -> None:
            owner = connection.execute(select(RUNS.c.lease_owner).where(RUNS.c.id == run)).scalar()
            if owner != self._server:
                raise LeaseLostError(f"another server carries the run {run} now")

        return check

    def bundle_row(self, folder: Path) -> BundleRow:
        """Return what is listed of a bundle; raises InputError for a faulty one."""
        bundle = load_bundle(folder)
        digests = bundle.digests
        return BundleRow(
            id=bundle.id,
            title=bundle.card.title,
            family=bundle.card.family,
            clauses=len(bundle.skill.clauses),
            digests={name: getattr(digests, name) for name in digests.__slots__},
        )

    def verify(self, envelope: Mapping[str, Any], registry: Registry) -> dict[str, Any]:
        """Verify an envelope against the run it names by its plan's digest.

        Raises:
            InputError: No run of this service has that plan.
        """
        for row in registry.by_plan(plan_digest_of(envelope)):
            folder = RunFolder(self._settings.data / "runs" / row.id)
            if folder.seal.exists():
                result, kind = verify_envelope(envelope, "certificate", folder, None, [])
                return {
                    "run": row.id,
                    "intact": result.intact,
                    "verdict": result.verdict,
                    "evidence": kind,
                    "problems": list(result.problems),
                    "stale": list(result.stale),
                    "unknown_signers": list(result.unknown_signers),
                    "checked": list(result.checked),
                }
        raise InputError(
            "no run of this service has the certificate's plan",
            where="certificate",
            mend="Verify it with `retire verify` where its evidence is kept",
        )


def plan_digest_of(envelope: Mapping[str, Any]) -> str:
    """Return the plan digest that a certificate names; the signature is checked elsewhere.

    Raises:
        InputError: Not a certificate.
    """
    statement, _ = open_envelope(envelope, "certificate")
    try:
        return str(statement["predicate"]["plan"]["digest"])
    except (KeyError, TypeError) as error:
        raise InputError("this is no certificate", where="certificate") from error


def _ended(work: asyncio.Task[dict[str, Any]], now: Callable[[], str]) -> dict[str, Any]:
    """Return what the registry learns of a run's end."""
    error = work.exception()
    if error is None:
        return work.result()
    if isinstance(error, IncompleteError):
        return {"state": str(RunState.INCOMPLETE), "error": str(error), "ended_at": now()}
    if isinstance(error, RetireError):
        return {"state": str(RunState.FAILED), "error": str(error), "ended_at": now()}
    log.error("a run failed unexpectedly", exc_info=error)
    text = f"unexpected {type(error).__name__}; the server's log has the details"
    return {"state": str(RunState.FAILED), "error": text, "ended_at": now()}
