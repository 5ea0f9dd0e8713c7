"""Carrying one run of the service: from its stored request to a signed certificate."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from retire.certify.envelope import sign_certificate
from retire.domain.errors import EvidenceError, IncompleteError, RetireError
from retire.domain.run_state import RunState
from retire.runner.folder import RunFolder, write_whole
from retire.service.apart import apart
from retire.service.queries import stage_counts
from retire.service.stored import StoredRequest, prepare_stored
from retire.store import RunStore
from retire.store.keys import certifier_key
from retire.store.registry import Registry, hold
from retire.store.writer import StorageError, in_short, storable
from retire.wiring import execute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import Connection, Engine

    from retire.service.settings import KeeperSettings
    from retire.store.registry import Columns
    from retire.wiring import Finished, Prepared

_TICK_SECONDS = 0.5
_TRIES = 3

_T = TypeVar("_T")

log = logging.getLogger("retire.service")


class LeaseLostError(RetireError):
    """Another server took the run over; nothing more of it is written here."""


class Progress:
    """Counts finished cells for the registry.

    ``lost`` says that the work found its lease gone, and is ending by itself.
    """

    def __init__(self, done: int = 0) -> None:
        self.done = done
        self.lost = False

    def begin(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins; only cells of the plan are counted."""
        del total
        if stage == "matrix":
            self.done = done

    def advance(self, stage: str, note: str = "") -> None:
        """One more is finished."""
        del note
        self.done += stage == "matrix"


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
        self._runs = ThreadPoolExecutor(settings.runs_at_once, "retire-run")
        self._beats = ThreadPoolExecutor(2, "retire-beat")

    async def carry(self, run: str, lease: str) -> None:
        """Carry a claimed run to its end, or as far as this server holds its lease."""
        try:
            row = await self._ask(self._registry.run, run)
            if row is None:
                return
            progress = Progress(row.cells_done)
            ended = await self._work_and_beat(run, lease, progress)
            if ended is None:
                row = await self._ask(self._registry.run, run)
                if row is None or not row.cancel:
                    log.warning("run %s is left to the next claim: its lease was lost", run)
                    return
                ended = {"state": str(RunState.CANCELLED), "ended_at": self._now()}
            await self._ask(self._registry.release, run, lease, ended)
        except SQLAlchemyError as error:
            # The lease runs out, and whoever claims the run next finds everything stored.
            log.warning("run %s is left to the next claim: %s", run, in_short(error))

    async def _work_and_beat(self, run: str, lease: str, progress: Progress) -> Columns | None:
        """Return what the registry learns of the run's end; None if it was cut."""
        work = asyncio.create_task(apart(self._runs, lambda: self._run(run, lease, progress)))
        beat = asyncio.create_task(self._beat(run, lease, progress))
        try:
            await asyncio.wait({work, beat}, return_when=asyncio.FIRST_COMPLETED)
            cut = not work.done()
        finally:
            beat.cancel()
            # Work that is ending must not be disturbed while it ends its programs.
            if not progress.lost:
                work.cancel()
            await asyncio.wait({work, beat})
        if work.cancelled() or (cut and work.exception() is not None):
            return None
        if isinstance(error := work.exception(), SQLAlchemyError):
            raise error
        return self._ended(run, work)

    async def _beat(self, run: str, lease: str, progress: Progress) -> None:
        """Renew the lease and say how far the run is; returns when the lease is lost."""
        written = progress.done
        held_until = self._clock() + self._settings.lease_seconds
        while True:
            until = self._clock() + self._settings.lease_seconds
            try:
                values: Columns = {}
                if progress.done != written:
                    written = progress.done
                    stages = await self._ask(stage_counts, self._engine, run)
                    values = {"cells_done": written, "stages": json.dumps(stages)}
                if not await self._ask(self._registry.renew, run, lease, until, values):
                    return
                held_until = until
            except SQLAlchemyError as error:
                log.warning("the lease of run %s could not be renewed: %s", run, in_short(error))
                if self._clock() > held_until:
                    return
            await asyncio.sleep(_TICK_SECONDS)

    async def _ask(self, call: Callable[..., _T], *arguments: object) -> _T:
        """Call the database from threads that no request can occupy: leases must not run out."""
        return await asyncio.get_running_loop().run_in_executor(self._beats, call, *arguments)

    def close(self) -> None:
        """End the threads."""
        self._runs.shutdown()
        self._beats.shutdown()

    async def _run(self, run: str, lease: str, progress: Progress) -> Columns:
        row = self._registry.run(run)
        if row is None:
            raise KeyError(run)
        prepared = prepare_stored(
            StoredRequest.model_validate_json(self._registry.request(run)),
            self._settings.place(run),
            self._settings.concurrency,
            self._settings.catalog,
            self._settings.launcher,
        )
        if prepared.plan.digest != row.plan_digest:
            raise EvidenceError(
                "what was submitted no longer gives the plan that was fixed before the first cell",
                where="submitted",
                mend="Its files or the deployment were changed since; submit it again",
            )
        # Before anything is spent: a certificate that cannot be signed is worth nothing.
        key = certifier_key(self._settings.home)
        log.info("run %s: server %s carries it", run, lease.partition("/")[0])
        finished = await self._try(run, lease, prepared, progress)
        certificate = finished.certificates[0]
        envelope = json.dumps(sign_certificate(certificate, key).as_json())
        path = prepared.folder.certificates / f"{certificate.name}.json"
        write_whole(path, envelope.encode())
        state = RunState.INCOMPLETE if finished.incomplete else RunState.COMPLETE
        return {
            "state": str(state),
            "verdict": str(certificate.verdict),
            "error": _missing(finished.incomplete),
            "certificate": envelope,
            "cells_done": len(finished.run.traces),
            "stages": json.dumps(stage_counts(self._engine, run)),
            "ended_at": self._now(),
        }

    async def _try(self, run: str, lease: str, prepared: Prepared, progress: Progress) -> Finished:
        """Execute; what failed is tried again, since every attempt so far is stored."""
        tries = 0
        while True:
            await self._until_free(run, prepared.folder)
            store = RunStore(
                self._settings.data, self._engine, run, self._fence(run, lease, progress)
            )
            try:
                return await execute(prepared, progress, store)
            except (IncompleteError, StorageError) as error:
                # Programs of a server that was stopped can come back between the look and the
                # start; that is nobody's failure.
                tries += not in_use(prepared.folder)
                if tries == _TRIES:
                    raise
                log.warning("run %s: %s; trying again", run, error)
                await asyncio.sleep(tries)

    async def _until_free(self, run: str, folder: RunFolder) -> None:
        """Wait for the programs of an earlier carrier: they end with it, or when it goes on."""
        told = False
        while await asyncio.to_thread(in_use, folder):
            if not told:
                told = True
                log.warning("run %s waits: programs of an earlier server still hold it", run)
            await asyncio.sleep(_TICK_SECONDS)

    def _fence(self, run: str, lease: str, progress: Progress) -> Callable[[Connection], None]:
        def check(connection: Connection) -> None:
            if not hold(connection, run, lease):
                progress.lost = True
                raise LeaseLostError(f"another server carries the run {run} now")

        return check

    def _ended(self, run: str, work: asyncio.Task[Columns]) -> Columns:
        """Return what the registry learns of a run's end."""
        error = work.exception()
        if error is None:
            return work.result()
        state = RunState.FAILED
        if isinstance(error, RetireError):
            # Whoever submitted the run has no use for the server's folders.
            text = str(error).replace(str(self._settings.place(run)), "run")
            text = text.replace(str(self._settings.data), "data")
            if isinstance(error, IncompleteError):
                state = RunState.INCOMPLETE
            log.warning("run %s ended as %s: %s", run, state, error)
        else:
            log.error("run %s failed unexpectedly", run, exc_info=error)
            text = f"unexpected {type(error).__name__}; the server's log has the details"
        return {"state": str(state), "error": storable(text), "ended_at": self._now()}


def _missing(incomplete: Mapping[str, str]) -> str | None:
    """Return how many cells have no evidence, and why the first has none."""
    if not incomplete:
        return None
    cell = min(incomplete)
    return storable(f"{len(incomplete)} cells have no evidence; {cell}: {incomplete[cell]}")


def in_use(folder: RunFolder) -> bool:
    """Whether programs hold the records of a run's folder."""
    for record in folder.processes.glob("*/record.jsonl"):
        try:
            with record.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            # Whoever opens it next says what is wrong with it.
            continue
    return False
