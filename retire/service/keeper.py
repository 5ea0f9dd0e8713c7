"""Keeps and runs certifications: the port on a database, folders and real programs.

Every run has a folder of its own under the data folder, and a row in the registry. A background
task claims queued runs by lease, carries them as far as they go, and signs. A server that was
killed leaves a lease behind that runs out; whoever claims the run next resumes it, with the
answers that were stored, and every attempt that was cut is observed first.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from retire.deployments import EMBEDDED, Catalog
from retire.domain.errors import IncompleteError, RetireError
from retire.service.debris import arriving, sweep_runs, sweep_uploads, under_way
from retire.service.port import (
    BundleRow,
    ConflictError,
    Event,
    RunRow,
    RunState,
    Submission,
    TraceFilter,
)
from retire.service.queries import TraceReader, purge_run
from retire.service.shelf import Shelf
from retire.service.stored import prepare_stored, request_json, submission_digest
from retire.service.work import RunWork
from retire.store.registry import NewRun, Registry, RepeatedKeyError
from retire.store.writer import in_short

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Engine, Row

_POLL_SECONDS = 0.2
_CLAIM_SECONDS = 0.3
_SWEEP_SECONDS = 2.0

_T = TypeVar("_T")

log = logging.getLogger("retire.service")


@dataclass(frozen=True, slots=True)
class KeeperSettings:
    """What the operator configured.

    Attributes:
        data: Folder for runs and uploaded bundles.
        bundles: Folder of bundles registered by the operator.
        home: Where the certifier's key is kept.
        runs_at_once: Runs carried at the same time by this server.
        concurrency: Attempts under way at once within a run.
        lease_seconds: How long a silent server keeps a run.
        catalog: The deployments that may be named.
    """

    data: Path
    bundles: Path
    home: Path
    runs_at_once: int = 2
    concurrency: int = 16
    lease_seconds: int = 10
    catalog: Catalog = EMBEDDED

    @property
    def uploads(self) -> Path:
        """Where uploads are unpacked unless the operator named another folder."""
        return self.data / "uploads"


class RunKeeper:
    """Implements ``retire.service.port.Keeper``."""

    def __init__(
        self,
        engine: Engine,
        settings: KeeperSettings,
        now: Callable[[], str],
        clock: Callable[[], int],
    ) -> None:
        self._engine = engine
        self._registry = Registry(engine)
        self._traces = TraceReader(engine)
        self._settings = settings
        self._now = now
        self._clock = clock
        self._server = secrets.token_hex(8)
        self._shelf = Shelf(settings.bundles, settings.data)
        self._work = RunWork(engine, settings, self._server, now, clock)
        self._loop: asyncio.Task[None] | None = None
        self._sweep: asyncio.Task[None] | None = None
        self._running: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Begin to work on queued runs, and on those a killed server left behind."""
        self._loop = asyncio.create_task(self._claim_runs())
        self._sweep = asyncio.create_task(self._sweep_debris())

    async def stop(self) -> None:
        """Stop; runs under way stay stored and are resumed by the next server."""
        # The loop first: it must not claim what nobody will carry.
        own = [task for task in (self._loop, self._sweep) if task is not None]
        for tasks in (own, list(self._running.values())):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(SQLAlchemyError):
            await asyncio.to_thread(self._registry.let_go, f"{self._server}/")
        self._work.close()

    async def _claim_runs(self) -> None:
        told = False
        while True:
            try:
                while len(self._running) < self._settings.runs_at_once:
                    if not await self._claim_one():
                        break
            except SQLAlchemyError as error:
                if not told:
                    log.warning("no run can be claimed until further notice: %s", in_short(error))
                told = True
            else:
                if told:
                    log.info("runs can be claimed again")
                told = False
            await asyncio.sleep(_CLAIM_SECONDS)

    async def _sweep_debris(self) -> None:
        """Remove once what an earlier server left half made, when nobody is taking anything in."""
        while True:
            try:
                runs = await asyncio.to_thread(sweep_runs, self._settings.data, self._knows)
                if runs and await asyncio.to_thread(sweep_uploads, self._settings.uploads):
                    return
            except (SQLAlchemyError, IncompleteError) as error:
                log.warning("what was left half made is not removed yet: %s", error)
            await asyncio.sleep(_SWEEP_SECONDS)

    def _knows(self, run: str) -> bool:
        return self._registry.run(run) is not None

    async def _claim_one(self) -> bool:
        lease = f"{self._server}/{secrets.token_hex(8)}"
        run = await asyncio.to_thread(
            self._registry.claim,
            lease,
            self._clock(),
            self._settings.lease_seconds,
            tuple(self._running),
        )
        if run is None:
            return False
        task = asyncio.create_task(self._work.carry(run, lease))
        self._running[run] = task
        task.add_done_callback(lambda _: self._running.pop(run))
        return True

    async def _ask(self, call: Callable[..., _T], *arguments: Any) -> _T:  # noqa: ANN401
        """Call in a thread; a database that does not answer is nobody's request's fault.

        Raises:
            IncompleteError: The database failed.
        """
        try:
            return await asyncio.to_thread(call, *arguments)
        except SQLAlchemyError as error:
            log.warning("the database failed: %s", in_short(error))
            raise IncompleteError(
                "the service's database does not answer", mend="Try again later"
            ) from error

    # -- runs ------------------------------------------------------------------------------

    async def submit(
        self, submission: Submission, owner: str, idempotency_key: str | None
    ) -> tuple[RunRow, bool]:
        """Fix the plan and queue the run."""
        return await self._ask(self._submit, submission, owner, idempotency_key)

    def _submit(
        self, submission: Submission, owner: str, idempotency_key: str | None
    ) -> tuple[RunRow, bool]:
        run = secrets.token_hex(16)
        source = submission.folder or self._shelf.folder(str(submission.bundle))
        place = self._work.place(run)
        with under_way(self._settings.data):
            try:
                with arriving(place):
                    row, new = self._queue(run, place, source, submission, owner, idempotency_key)
            except (RetireError, ConflictError, SQLAlchemyError):
                shutil.rmtree(place, ignore_errors=True)
                raise
            if not new:
                shutil.rmtree(place, ignore_errors=True)
            return row, new

    def _queue(
        self,
        run: str,
        place: Path,
        source: Path,
        submission: Submission,
        owner: str,
        idempotency_key: str | None,
    ) -> tuple[RunRow, bool]:
        key = None
        if idempotency_key is not None:
            key = (idempotency_key, submission_digest(submission, source))
            repeated = self._repeated(owner, key)
            if repeated is not None:
                return repeated, False
        request = request_json(submission, source, place)
        prepared = prepare_stored(
            request, place, self._settings.concurrency, self._settings.catalog
        )
        row = NewRun(
            id=run,
            owner=owner,
            plan_digest=prepared.plan.digest,
            request=request,
            bundle=next(iter(prepared.bundles)),
            deployment=submission.deployment,
            placement=submission.placement,
            cells_planned=len(prepared.plan.cells),
            created_at=self._now(),
        )
        try:
            self._registry.add(row, key)
        except RepeatedKeyError:
            found = self._repeated(owner, key) if key is not None else None
            if found is None:
                raise
            return found, False
        return self._row(run, owner), True

    def _repeated(self, owner: str, key: tuple[str, str]) -> RunRow | None:
        try:
            self._registry.used_key(owner, key)
        except RepeatedKeyError as error:
            if not error.same:
                raise ConflictError(
                    f"the idempotency key was used for another submission (run {error.run})"
                ) from error
            return self._row(error.run, owner)
        return None

    def _row(self, run: str, owner: str | None) -> RunRow:
        row = self._registry.run(run)
        if row is None or (owner is not None and row.owner != owner):
            raise KeyError(run)
        return _run_row(row)

    async def run(self, run: str, owner: str | None) -> RunRow:
        """Return one run."""
        return await self._ask(self._row, run, owner)

    async def runs(self, owner: str | None, before: str | None, limit: int) -> Sequence[RunRow]:
        """Return runs, newest first."""
        rows = await self._ask(self._registry.runs, owner, before, limit)
        return [_run_row(row) for row in rows]

    async def events(self, run: str, after: int) -> AsyncIterator[Event]:
        """Yield progress until the run ends; the registry is asked, so any server can answer."""
        last = after
        while True:
            row = await self.run(run, None)
            ended = row.state not in {RunState.QUEUED, RunState.RUNNING}
            number = row.cells_planned + 1 if ended else row.cells_done
            if number > last:
                last = number
                yield Event(number, "end" if ended else "progress", _event_data(row))
            if ended:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def wait(self, run: str, seconds: float) -> RunRow:
        """Return the run when it has ended, or as it stands after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    row = await self.run(run, None)
                    if row.state not in {RunState.QUEUED, RunState.RUNNING}:
                        return row
                    await asyncio.sleep(_POLL_SECONDS)
        return await self.run(run, None)

    async def cancel(self, run: str, owner: str | None) -> RunRow:
        """Ask a run to stop; what it stored stays."""
        await self.run(run, owner)
        await self._ask(self._registry.ask_to_cancel, run, self._now())
        return await self.run(run, owner)

    async def purge(self, run: str, owner: str | None) -> None:
        """Remove prompts and answers of an ended run; digests stay."""
        row = await self.run(run, owner)
        if row.state in {RunState.QUEUED, RunState.RUNNING}:
            raise ConflictError("the run has not ended; cancel it first")
        await self._ask(purge_run, self._engine, self._work.place(run), run, self._now())

    # -- evidence --------------------------------------------------------------------------

    async def traces(
        self, run: str, owner: str | None, wanted: TraceFilter, after: int, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return trace rows with sequence numbers above ``after``, in their order."""
        await self.run(run, owner)
        return await self._ask(self._traces.page, run, wanted, after, limit)

    async def trace(self, trace: str, owner: str | None) -> Mapping[str, Any]:
        """Return one trace row by id (``<run>.<seq>``)."""
        run, _, seq = trace.partition(".")
        if not seq.isdecimal() or not seq.isascii() or len(seq) > 9:
            raise KeyError(trace)
        await self.run(run, owner)
        return await self._ask(self._traces.one, run, int(seq))

    async def certificate(self, certificate: str, owner: str | None) -> Mapping[str, Any]:
        """Return a DSSE envelope by certificate id, which is its run's."""
        await self.run(certificate, owner)
        return await self._ask(self._registry.certificate, certificate)

    async def verify(self, envelope: Mapping[str, Any]) -> Mapping[str, Any]:
        """Verify an envelope against the evidence kept here."""
        return await self._ask(self._work.verify, envelope)

    # -- bundles ---------------------------------------------------------------------------

    async def bundles(self) -> Sequence[BundleRow]:
        """Return the registered bundles."""
        return await self._ask(self._shelf.rows)

    async def register(self, folder: Path) -> BundleRow:
        """Register an unpacked bundle that lint found sound."""
        return await self._ask(self._shelf.register, folder)

    async def ready(self) -> Mapping[str, bool]:
        """Say what works: database, runner."""
        database = True
        try:
            await self._ask(self._registry.runs, None, None, 1)
        except IncompleteError:
            database = False
        return {"database": database, "runner": self._loop is not None and not self._loop.done()}


def _run_row(row: Row[Any]) -> RunRow:
    return RunRow(
        id=row.id,
        owner=row.owner,
        state=RunState(row.state),
        plan_digest=row.plan_digest,
        bundle=row.bundle,
        deployment=row.deployment,
        placement=row.placement,
        cells_planned=row.cells_planned,
        cells_done=row.cells_done,
        created_at=row.created_at,
        ended_at=row.ended_at,
        verdict=row.verdict,
        certificate=row.id if row.certified else None,
        error=row.error,
        stages=json.loads(row.stages),
    )


def _event_data(row: RunRow) -> dict[str, Any]:
    return {
        "run": row.id,
        "state": str(row.state),
        "cells_done": row.cells_done,
        "cells_planned": row.cells_planned,
        "stages": dict(row.stages),
        "verdict": row.verdict,
        "error": row.error,
    }
