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
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from retire.bundle import read_files
from retire.certify.envelope import open_envelope
from retire.cli.client import Server, UnreachableError, check_token
from retire.cli.console import INTERRUPTED, LiveProgress
from retire.domain.digests import digest_of, sha256
from retire.domain.errors import EvidenceError, IncompleteError, InputError
from retire.pages.exports import read_judged, told_of
from retire.pages.exports.reading import SHAPE
from retire.pages.text import shortened
from retire.pages.traces import trace_words
from retire.runner.opening import bundle_digests, check_statement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.cli.asked import Asked
    from retire.pages.exports import Judged
    from retire.pages.words import Told

_GOING_ON = frozenset({"queued", "running"})
_WAITS = (0.5, 1.0, 1.5, 2.0, 2.5, 2.5)
"""Seconds between attempts to reach a server that has gone; a restart takes less than all."""

_PAUSE = 0.5
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Answered:
    """What a server's run gave; ``traces`` holds one leaking trace by member."""

    envelope: Mapping[str, Any]
    statement: Mapping[str, Any]
    judged: Judged
    traces: Mapping[str, Mapping[str, Any]]

    def told(self, bundle: Bundle, place: Path) -> Told:
        """Return what the words rest on; ``place`` is where the certificate was written."""
        return told_of(self.judged, bundle, self.traces, str(place))


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
        _note(f"run {row['id']} on {server.address}, plan {row['plan_digest']}")
        try:
            row = _follow(server, row, plain=plain)
            return _collect(server, row, asked)
        except KeyboardInterrupt:
            _note(f"run {row['id']} goes on without you. {_again(row['id'])}")
            raise typer.Exit(INTERRUPTED) from None


def _named(run: str) -> str:
    if not (run.isascii() and run.replace("-", "").replace("_", "").isalnum()):
        raise InputError("that is no run's id", where="--run", mend="The server gave one")
    return run


def _start(server: Server, asked: Asked) -> dict[str, Any]:
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


def _row(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Check that an answer is a run.

    Raises:
        InputError: It is not.
    """
    texts = all(isinstance(answer.get(name), str) for name in ("id", "state", "plan_digest"))
    counts = all(isinstance(answer.get(name), int) for name in ("cells_done", "cells_planned"))
    if not (texts and counts):
        raise InputError("the server's answer is no run", mend="Check --server")
    return {**answer, "id": _named(answer["id"])}


def _again(run: str) -> str:
    return f"Give the same command `--run {run}` to ask for it again"


class _Shown:
    """Moves the display to what the server tells."""

    def __init__(self, progress: LiveProgress, row: Mapping[str, Any]) -> None:
        self._progress = progress
        self._done = int(row["cells_done"])
        self.last = 0
        progress.begin("matrix", int(row["cells_planned"]), self._done)

    def move(self, done: object) -> None:
        """Show so many finished cells; never back, since a resumed run counts again."""
        while isinstance(done, int) and self._done < done:
            self._progress.advance("matrix")
            self._done += 1


def _follow(server: Server, row: Mapping[str, Any], *, plain: bool) -> dict[str, Any]:
    run = str(row["id"])
    current = dict(row)
    with LiveProgress(plain=plain) as progress:
        shown = _Shown(progress, row)
        while current["state"] in _GOING_ON:
            current = _patiently(lambda: _watch(server, run, shown), run)
            if current["state"] in _GOING_ON:
                time.sleep(_PAUSE)
        shown.move(current["cells_done"])
    return current


def _watch(server: Server, run: str, shown: _Shown) -> dict[str, Any]:
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


def _collect(server: Server, row: Mapping[str, Any], asked: Asked) -> Answered:
    run = str(row["id"])
    if not row.get("certificate"):
        why = shortened(str(row.get("error") or "no reason was given"), 600)
        raise IncompleteError(
            f"it ended without a certificate ({shortened(str(row['state']), 20)}): {why}",
            where=f"run {run}",
            mend="Run the same command again to start another",
        )
    envelope = _patiently(lambda: server.read(f"/certificates/{run}"), run)
    where = f"certificate of run {run}"
    statement, _ = open_envelope(envelope, where)
    check_statement(statement, where)
    check_about(statement, asked, str(row["plan_digest"]), where)
    judged = read_judged(statement, asked.bundle.skill)
    traces = {}
    for leak in judged.leaks:
        body = _patiently(lambda member=leak.member: _trace(server, run, asked, member), run)  # type: ignore[misc]  # a default binds the loop's value
        if body is not None:
            traces[leak.member] = body
    return Answered(envelope, statement, judged, traces)


def check_about(statement: Mapping[str, Any], asked: Asked, plan_digest: str, where: str) -> None:
    """Check that a statement is about what was asked: bundle, candidate, deployment and plan.

    Raises:
        EvidenceError: It is about something else.
    """
    plan = statement["predicate"]["plan"]
    unit = statement["predicate"]["unit"]
    stated, protocol, bundle = plan["statement"], asked.protocol, asked.bundle.id
    declared = stated.get("protocol", {})
    expected = {
        "plan": (plan["digest"], plan_digest),
        "plan's digest": (digest_of(stated), plan_digest),
        "bundle": (stated.get("bundles"), {bundle: bundle_digests(asked.bundle)}),
        "candidate": (stated.get("candidates"), {bundle: sha256(asked.candidate)}),
        "deployment": (unit["deployment"]["name"], asked.deployment),
        "placement": (unit["condition"], asked.placement),
        "margin": (declared.get("margin_points"), protocol.margin_points),
        "number of repetitions": (declared.get("repetitions"), protocol.repetitions),
        "seed": (declared.get("seed"), protocol.seed),
    }
    others = [name for name, (found, wanted) in expected.items() if found != wanted]
    if others:
        raise EvidenceError(
            f"it is about another {', another '.join(others)}",
            where=where,
            mend="Check --run; otherwise the server answered with somebody else's certificate",
        )


def _trace(server: Server, run: str, asked: Asked, member: str) -> Mapping[str, Any] | None:
    query = {"condition": asked.placement, "member": member, "protected": "true", "limit": "1"}
    answer = server.read(f"/runs/{run}/traces", query)
    try:
        if not answer["traces"]:
            return None
        body: Mapping[str, Any] = answer["traces"][0]["body"]
        trace_words(asked.bundle, body)
    except SHAPE as error:
        raise InputError("the server's answer is no trace", where=f"run {run}") from error
    return body


def _note(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
