"""Group commit: what arrives together is committed together, in order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from retire.domain.errors import InputError, RetireError
from retire.store.database import writing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sqlalchemy import Connection, Engine

_Write = tuple["Callable[[Connection], object]", "asyncio.Future[None]"]


class StorageError(InputError):
    """The database failed: nothing that was stored is lost, nothing more can be stored now."""


class GroupWriter:
    """Writes in the order of their calls; each call returns after its commit.

    Args:
        engine: The database.
        path: Where the database is, for messages.
        lease: Called first within every transaction; raises when nothing may be written any more.
    """

    def __init__(
        self, engine: Engine, path: Path, lease: Callable[[Connection], None] | None = None
    ) -> None:
        self._engine = engine
        self._path = path
        self._lease = lease
        self._queue: list[_Write] = []
        self._under_way: list[_Write] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._fault: RetireError | None = None

    def start(self) -> None:
        """Begin to commit, on the running event loop."""
        self._wake = asyncio.Event()
        self._closing = False
        self._task = asyncio.create_task(self._commit_all())
        self._task.add_done_callback(self._ended)

    async def finish(self) -> None:
        """Commit what waits, then stop.

        A cancelled caller waits too: a commit that is under way cannot be called back, and whoever
        opens the run next must find the chain's end where this one left it.
        """
        task, self._task = self._task, None
        if task is None:
            return
        self._closing = True
        self._wake.set()
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def write(self, operation: Callable[[Connection], object]) -> None:
        """Commit an operation.

        Raises:
            StorageError: The database failed, now or at an earlier write.
        """
        if self._fault is not None:
            raise self._fault
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((operation, future))
        self._wake.set()
        await future

    async def _commit_all(self) -> None:
        while not (self._closing and not self._queue):
            await self._wake.wait()
            self._wake.clear()
            batch, self._queue = self._queue, []
            if not batch:
                continue
            self._under_way = batch
            try:
                await asyncio.to_thread(self._commit, [operation for operation, _ in batch])
            except SQLAlchemyError as error:
                self._stop(storage_fault(self._path, error))
                return
            except RetireError as error:
                self._stop(error)
                return
            for _, future in batch:
                if not future.done():
                    future.set_result(None)

    def _stop(self, fault: RetireError) -> None:
        """Refuse everything from here on: a row behind a lost one would chain to nothing."""
        self._fault = fault
        for _, future in [*self._under_way, *self._queue]:
            if not future.done():
                future.set_exception(fault)
        self._under_way, self._queue = [], []

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Let nobody wait for a writer that is gone, whatever ended it."""
        if task.cancelled() or task.exception() is not None:
            self._stop(StorageError("the writer of the run's database has ended"))

    def _commit(self, operations: list[Callable[[Connection], object]]) -> None:
        with writing(self._engine) as connection:
            if self._lease is not None:
                self._lease(connection)
            for operation in operations:
                operation(connection)


def storable(text: str) -> str:
    """Return text that every database can hold: no NUL, no half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def in_short(error: SQLAlchemyError) -> str:
    """Return the database's own words in one line."""
    return str(getattr(error, "orig", None) or error).strip().split("\n", 1)[0]


def storage_fault(path: Path, error: SQLAlchemyError) -> StorageError:
    """Return the error that a person can act on: full disk, read-only folder, foreign file."""
    text = str(getattr(error, "orig", error))
    if "full" in text or "disk I/O" in text or "No space left" in text:
        mend = "Free some space and run the same command again; nothing stored is lost"
    elif "readonly" in text or "unable to open" in text:
        mend = "Choose an --out folder that can be written"
    elif "not a database" in text or "malformed" in text:
        mend = "The file is damaged or foreign; choose another --out and keep it as evidence"
    else:
        mend = "Nothing stored is lost; run the same command again"
    return StorageError(f"the run's database failed: {text}", where=str(path), mend=mend)
