"""Keeps and runs certifications: the port on a database, folders and real programs.

Every run has a folder of its own under the data folder, and a row in the registry. A background
task claims queued runs by lease, carries them as far as they go, and signs. A server that was
killed leaves a lease behind that runs out; whoever claims the run next resumes it, with the
answers that were stored, and every attempt that was cut is observed first.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from retire.certify.envelope import read_envelope
from retire.domain.errors import IncompleteError
from retire.runner.folder import RunFolder
from retire.runner.launching import remove_launched
from retire.service.claiming import RunClaims
from retire.service.port import (
    BundleRow,
    ConflictError,
    Event,
    RunRow,
    Submission,
    TraceAnswer,
    TraceFilter,
    Verified,
)
from retire.service.queries import TraceReader, purge_run
from retire.service.queueing import RunQueue, run_row
from retire.service.shelf import Shelf
from retire.service.verifying import Verifier
from retire.service.work import RunWork
from retire.store.registry import Registry
from retire.store.writer import in_short

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Engine

    from retire.certify.envelope import SignedEnvelope
    from retire.service.settings import KeeperSettings

_POLL_SECONDS = 0.2
_TOLD = {"state", "cells_done", "cells_planned", "stages", "verdict", "error"}
"""What an event tells of its run."""

_T = TypeVar("_T")

log = logging.getLogger("retire.service")


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
        server = secrets.token_hex(8)
        self._shelf = Shelf(settings.bundles, settings.data)
        self._queue = RunQueue(self._registry, settings, self._shelf, now)
        work = RunWork(engine, settings, server, now, clock)
        self._claims = RunClaims(self._registry, settings, work, server, clock)
        self._verifier = Verifier(self._registry, settings)

    async def start(self) -> None:
        """Begin to work on queued runs, and on those a killed server left behind."""
        await self._claims.start()

    async def stop(self) -> None:
        """Stop; runs under way stay stored and are resumed by the next server."""
        await self._claims.stop()

    async def _ask(self, call: Callable[..., _T], *arguments: object) -> _T:
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
        return await self._ask(self._queue.submit, submission, owner, idempotency_key)

    async def run(self, run: str, owner: str | None) -> RunRow:
        """Return one run."""
        return await self._ask(self._queue.row, run, owner)

    async def runs(self, owner: str | None, before: str | None, limit: int) -> Sequence[RunRow]:
        """Return runs, newest first."""
        rows = await self._ask(self._registry.runs, owner, before, limit)
        return [run_row(row) for row in rows]

    async def events(self, run: str, after: int) -> AsyncIterator[Event]:
        """Yield progress until the run ends; the registry is asked, so any server can answer."""
        last = after
        while True:
            row = await self.run(run, None)
            going_on = row.state.going_on
            number = row.cells_done if going_on else row.cells_planned + 1
            if number > last:
                last = number
                data = {"run": run, **row.model_dump(mode="json", include=_TOLD)}
                yield Event(number, "progress" if going_on else "end", data)
            if not going_on:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def wait(self, run: str, seconds: float) -> RunRow:
        """Return the run when it has ended, or as it stands after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    row = await self.run(run, None)
                    if not row.state.going_on:
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
        if row.state.going_on:
            raise ConflictError("the run has not ended; cancel it first")
        place = self._settings.place(run)
        await self._ask(remove_launched, self._settings.launcher, RunFolder(place).processes)
        await self._ask(purge_run, self._engine, place, run, self._now())

    # -- evidence --------------------------------------------------------------------------

    async def traces(
        self, run: str, owner: str | None, wanted: TraceFilter, after: int, limit: int
    ) -> Sequence[TraceAnswer]:
        """Return trace rows with sequence numbers above ``after``, in their order."""
        await self.run(run, owner)
        return await self._ask(self._traces.page, run, wanted, after, limit)

    async def trace(self, trace: str, owner: str | None) -> TraceAnswer:
        """Return one trace row by id (``<run>.<seq>``)."""
        run, _, seq = trace.partition(".")
        if not seq.isdecimal() or not seq.isascii() or len(seq) > 9:
            raise KeyError(trace)
        await self.run(run, owner)
        return await self._ask(self._traces.one, run, int(seq))

    async def certificate(self, certificate: str, owner: str | None) -> SignedEnvelope:
        """Return a DSSE envelope by certificate id, which is its run's."""
        await self.run(certificate, owner)
        text = await self._ask(self._registry.certificate, certificate)
        return read_envelope(text.encode(), f"certificate {certificate}")

    async def verify(self, envelope: SignedEnvelope) -> Verified:
        """Verify an envelope against the evidence kept here."""
        return await self._ask(self._verifier.verify, envelope)

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
        return {"database": database, "runner": self._claims.alive}
