"""``retire certify --server``: the same certification, carried by a server.

The bundle and the candidate go up, progress comes back, and so does the signed certificate. What
comes back is checked against what went up before anything is told of it.
"""

from __future__ import annotations

import gzip
import io
import secrets
import sys
import tarfile
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from retire.bundle import read_files
from retire.certify.envelope import open_certificate, read_envelope
from retire.cli.client import Server, UnreachableError, check_token
from retire.cli.console import INTERRUPTED, LiveProgress
from retire.domain.digests import digest_of, sha256
from retire.domain.errors import EvidenceError, IncompleteError, InputError
from retire.domain.run_state import OPEN_STATES
from retire.domain.trace import Trace
from retire.pages.exports.subject import bundle_of
from retire.pages.text import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from retire.certify.certificate import Certificate
    from retire.certify.envelope import SignedEnvelope
    from retire.cli.asked import Asked

_WAITS = (0.5, 1.0, 1.5, 2.0, 2.5, 2.5)
"""Seconds between attempts to reach a server that has gone; a restart takes less than all."""

_PAUSE = 0.5
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Answered:
    """What a server's run gave; ``traces`` holds one leaking trace by bundle and member."""

    envelope: SignedEnvelope
    certificate: Certificate
    traces: Mapping[tuple[str, str], Trace]


class _Told(BaseModel):
    """What is read of an answer; a newer server may tell more."""

    model_config = ConfigDict(strict=True, frozen=True)


class _Run(_Told):
    """A run, as far as it is followed."""

    id: str
    state: str
    plan_digest: str
    cells_done: int
    cells_planned: int
    certificate: str | None = None
    error: str | None = None

    @property
    def going_on(self) -> bool:
        """Whether it may still change by itself."""
        return self.state in OPEN_STATES


class _Purged(_Told):
    """A trace whose answer was removed at the server."""

    purged: Literal[True]


class _Row(_Told):
    """A trace in its chain."""

    body: Trace | _Purged


class _Page(_Told):
    """The first of some traces."""

    traces: list[_Row]


def certify_on_server(
    address: str,
    token: str | None,
    asked: Asked,
    run: str | None,
    *,
    plain: bool,
    insecure_http: bool = False,
) -> Answered:
    """Certify on a server, or follow a run that was started there before.

    Args:
        address: The server.
        token: Bearer token with scope ``certify``.
        asked: What is to be certified.
        run: Id of a run started before; None starts one.
        plain: Print plain lines instead of a live display.
        insecure_http: Send the token in the clear to another machine.

    Raises:
        InputError: The server cannot be reached or refuses, or the token would travel in the clear.
        IncompleteError: It was gone half way, or the run ended without a certificate.
        EvidenceError: The certificate does not verify or is not about what was asked.
        typer.Exit: Interrupted; the run goes on at the server.
    """
    with Server(address, check_token(token), insecure_http=insecure_http) as server:
        row = _row(server.read(f"/runs/{_named(run)}") if run else _start(server, asked))
        _note(f"run {row.id} on {server.address}, plan {row.plan_digest}")
        try:
            row = _follow(server, row, plain=plain)
            return _collect(server, row, asked)
        except KeyboardInterrupt:
            _note(f"run {row.id} goes on without you. {_again(row.id)}")
            raise typer.Exit(INTERRUPTED) from None


def _named(run: str) -> str:
    if not (run.isascii() and run.replace("-", "").replace("_", "").isalnum()):
        raise InputError("that is no run's id", where="--run", mend="The server gave one")
    return run


def _start(server: Server, asked: Asked) -> bytes:
    protocol = asked.protocol
    fields = {
        "deployment": asked.deployment,
        "placement": asked.placement,
        "margin": str(protocol.margin_points),
        "repetitions": str(protocol.repetitions),
        "seed": str(protocol.seed),
    }
    files = {
        "archive": ("bundle.tar.gz", packed(read_files(asked.folder))),
        "candidate": ("SKILL.md", asked.candidate),
    }
    key = f"retire-{secrets.token_hex(16)}"
    try:
        return server.start(fields, files, key)
    except UnreachableError:
        # The answer may have been lost on its way; the key gives the run that was started.
        time.sleep(_PAUSE)
        return server.start(fields, files, key)


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return files as a tar.gz, the same bytes every time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=0)


def _row(answer: bytes) -> _Run:
    """Read a run; raises InputError where the answer is none."""
    try:
        row = _Run.model_validate_json(answer)
    except ValidationError as error:
        raise InputError("the server's answer is no run", mend="Check --server") from error
    _named(row.id)
    return row


def _again(run: str) -> str:
    return f"Give the same command `--run {run}` to ask for it again"


class _Shown:
    """Moves the display to what the server tells."""

    def __init__(self, progress: LiveProgress, row: _Run) -> None:
        self._progress = progress
        self._done = row.cells_done
        self.last = 0
        progress.begin("matrix", row.cells_planned, self._done)

    def move(self, done: object) -> None:
        """Show so many finished cells; never back, since a resumed run counts again."""
        while isinstance(done, int) and self._done < done:
            self._progress.advance("matrix")
            self._done += 1


def _follow(server: Server, row: _Run, *, plain: bool) -> _Run:
    run = row.id
    with LiveProgress(plain=plain) as progress:
        shown = _Shown(progress, row)
        while row.going_on:
            row = _patiently(lambda: _watch(server, run, shown), run)
            if row.going_on:
                time.sleep(_PAUSE)
        shown.move(row.cells_done)
    return row


def _watch(server: Server, run: str, shown: _Shown) -> _Run:
    for event in server.events(run, shown.last):
        shown.last = event.number
        shown.move(event.data.get("cells_done"))
    return _row(server.read(f"/runs/{run}"))


def _patiently(ask: Callable[[], _Result], run: str) -> _Result:
    """Ask again for a while when the server is gone; a restarted one goes on with the run.

    Raises:
        IncompleteError: It stays gone.
    """
    for seconds in _WAITS:
        try:
            return ask()
        except UnreachableError:
            time.sleep(seconds)
    try:
        return ask()
    except UnreachableError as error:
        raise IncompleteError(
            f"{error.what}, and the run may still be going on", where=f"run {run}", mend=_again(run)
        ) from error


def _collect(server: Server, row: _Run, asked: Asked) -> Answered:
    run = row.id
    if not row.certificate:
        why = shortened(row.error or "no reason was given", 600)
        raise IncompleteError(
            f"it ended without a certificate ({shortened(row.state, 20)}): {why}",
            where=f"run {run}",
            mend="Run the same command again to start another",
        )
    where = f"certificate of run {run}"
    answer = _patiently(lambda: server.read(f"/certificates/{run}"), run)
    envelope = read_envelope(answer, where)
    certificate, _ = open_certificate(envelope, where)
    check_about(certificate, asked, row.plan_digest, where)
    bundle = bundle_of(certificate, asked.bundle.skill)
    traces = {}
    for leak in certificate.predicate.beside_the_verdict.leaks:
        trace = _patiently(partial(_trace, server, run, asked, leak.member), run)
        if trace is not None:
            traces[bundle, leak.member] = trace
    return Answered(envelope, certificate, traces)


def check_about(certificate: Certificate, asked: Asked, plan_digest: str, where: str) -> None:
    """Check that a certificate is about what was asked: bundle, candidate, deployment and plan.

    Raises:
        EvidenceError: It is about something else.
    """
    plan, bundle = certificate.predicate.plan, asked.bundle.id
    stated, declared, protocol = plan.statement, plan.statement.protocol, asked.protocol
    alike = {
        "plan": plan.digest == plan_digest,
        "plan's digest": digest_of(stated.as_json()) == plan_digest,
        "bundle": stated.bundles == {bundle: asked.bundle.digests},
        "candidate": stated.candidates == {bundle: sha256(asked.candidate)},
        "deployment": certificate.deployment == asked.deployment,
        "placement": certificate.condition == asked.placement,
        "margin": declared.margin_points == protocol.margin_points,
        "number of repetitions": declared.repetitions == protocol.repetitions,
        "seed": declared.seed == protocol.seed,
    }
    others = [name for name, same in alike.items() if not same]
    if others:
        raise EvidenceError(
            f"it is about another {', another '.join(others)}",
            where=where,
            mend="Check --run; otherwise the server answered with somebody else's certificate",
        )


def _trace(server: Server, run: str, asked: Asked, member: str) -> Trace | None:
    """Return one leaking trace of a member; None where the server keeps none whole."""
    query = {"condition": asked.placement, "member": member, "protected": "true", "limit": "1"}
    answer = server.read(f"/runs/{run}/traces", query)
    try:
        page = _Page.model_validate_json(answer)
    except ValidationError as error:
        raise InputError("the server's answer is no trace", where=f"run {run}") from error
    bodies = [row.body for row in page.traces if isinstance(row.body, Trace)]
    if not bodies:
        return None
    cell = bodies[0].cell
    if (cell.bundle, cell.member) != (asked.bundle.id, member):
        raise InputError("the server's answer is no trace", where=f"run {run}")
    return bodies[0]


def _note(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
