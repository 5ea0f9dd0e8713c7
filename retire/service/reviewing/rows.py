"""Where a run's traces are read from: its sealed file, or the database that a live run fills."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import create_engine, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from retire.certify.joining import OBSERVER, attempts_without_row
from retire.domain.errors import EvidenceError, IncompleteError, InputError
from retire.domain.trace import outcome_of
from retire.pages.html.index import Row, TraceIndex
from retire.runner.folder import read_json
from retire.service.reviewing.sightings import ProtectedAttempts
from retire.store.tables import ATTEMPTS, TRACES

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Engine

    from retire.runner.folder import RunFolder

_SHAPE = (LookupError, TypeError, ValueError, AttributeError)
"""What reading JSON of another shape raises."""

_CHUNK = 500
"""Attempts that are looked up at once."""


class Traces(Protocol):
    """A run's traces."""

    def index(self) -> TraceIndex:
        """Return the index as it stands now."""

    def trace(self, row: Row) -> Mapping[str, Any]:
        """Return one whole trace row."""

    def leaked(self, traced: Container[str]) -> Sequence[str]:
        """Return the keys of cells that leaked in an attempt, and are not among those traced."""


class SealedTraces:
    """The traces of a sealed run: the file is read through once, then by position."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._path = folder.traces
        self._index = self._read()
        self._leaked: Sequence[str] | None = None

    def index(self) -> TraceIndex:
        """Return the index."""
        return self._index

    def _read(self) -> TraceIndex:
        index = TraceIndex()
        place = 0
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    index.add(self._row(line, place, number))
                    place += len(line)
        except OSError as error:
            raise EvidenceError(
                f"the traces cannot be read: {error.strerror}", where=str(self._path)
            ) from error
        return index

    def _row(self, line: bytes, place: int, number: int) -> Row:
        try:
            row = json.loads(line)
            return Row(int(row["seq"]), place, outcome_of(row["body"]))
        except _SHAPE as error:
            raise EvidenceError(
                f"this is not what a run writes here ({type(error).__name__}: {str(error)[:120]})",
                where=f"{self._path}:{number}",
                mend="Restore the folder as the run left it, or run again in a new one",
            ) from error

    def trace(self, row: Row) -> Mapping[str, Any]:
        """Return one whole trace row.

        Raises:
            EvidenceError: The file was changed since it was read through.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(row.place)
                found: dict[str, Any] = json.loads(file.readline())
        except (OSError, ValueError) as error:
            raise EvidenceError(
                "the trace can no longer be read where it was", where=str(self._path)
            ) from error
        if found.get("seq") != row.seq:
            raise EvidenceError("the trace file was changed", where=str(self._path))
        return found

    def leaked(self, traced: Container[str]) -> Sequence[str]:
        """Return the keys of cells that leaked in an attempt, and are not among those traced.

        Raises:
            EvidenceError: The seal or the observer's record is damaged.
        """
        if self._leaked is None:
            unfinished = attempts_without_row(self._attempts(), traced)
            record = ProtectedAttempts(self._folder.records / f"{OBSERVER}.jsonl")
            seen = record.new() if unfinished else ()
            self._leaked = sorted({unfinished[it] for it in seen if it in unfinished})
        return self._leaked

    def _attempts(self) -> dict[str, str]:
        try:
            attempts: Mapping[object, object] = read_json(self._folder.seal)["attempts"]
            return {str(attempt): str(cell) for attempt, cell in attempts.items()}
        except (InputError, *_SHAPE) as error:
            raise EvidenceError(
                f"the seal cannot be read ({type(error).__name__})", where=str(self._folder.seal)
            ) from error


class StoredTraces:
    """The traces in a database; each look reads only what is new.

    Args:
        engine: The database.
        run: Which run of it.
        record: The observer's record while the run goes on.
    """

    def __init__(self, engine: Engine, run: str, record: Path) -> None:
        self._engine = engine
        self._run = run
        self._index = TraceIndex()
        self._sighted = ProtectedAttempts(record)
        self._unplaced: list[str] = []
        self._attempts: dict[str, str] = {}
        self._turn = threading.Lock()

    def index(self) -> TraceIndex:
        """Return the index, brought up to what is stored now.

        Raises:
            IncompleteError: The database does not answer.
        """
        with self._turn:
            query = (
                select(TRACES.c.seq, TRACES.c.body)
                .where(TRACES.c.run == self._run, TRACES.c.seq > self._index.last)
                .order_by(TRACES.c.seq)
            )
            try:
                with self._engine.connect() as connection:
                    for seq, body in connection.execute(query):
                        self._index.add(Row(seq, -1, outcome_of(json.loads(body))))
            except SQLAlchemyError as error:
                raise _silent(error) from error
        return self._index

    def trace(self, row: Row) -> Mapping[str, Any]:
        """Return one whole trace row.

        Raises:
            IncompleteError: The database does not answer.
        """
        query = select(TRACES).where(TRACES.c.run == self._run, TRACES.c.seq == row.seq)
        try:
            with self._engine.connect() as connection:
                found = connection.execute(query).one()
        except SQLAlchemyError as error:
            raise _silent(error) from error
        return {
            "seq": found.seq,
            "prev": found.prev,
            "hash": found.hash,
            "body": json.loads(found.body),
        }

    def leaked(self, traced: Container[str]) -> Sequence[str]:
        """Return the keys of cells that leaked in an attempt, and are not among those traced.

        Raises:
            IncompleteError: The database does not answer.
            EvidenceError: The observer's record cannot be read.
        """
        with self._turn:
            self._unplaced += self._sighted.new()
            while self._unplaced:
                self._attempts |= self._cells_of(self._unplaced[:_CHUNK])
                del self._unplaced[:_CHUNK]
            return sorted(set(attempts_without_row(self._attempts, traced).values()))

    def _cells_of(self, attempts: Sequence[str]) -> dict[str, str]:
        query = select(ATTEMPTS.c.attempt, ATTEMPTS.c.cell).where(
            ATTEMPTS.c.run == self._run, ATTEMPTS.c.attempt.in_(attempts)
        )
        try:
            with self._engine.connect() as connection:
                return {row.attempt: row.cell for row in connection.execute(query)}
        except SQLAlchemyError as error:
            raise _silent(error) from error


def read_only(path: Path) -> Engine:
    """Return an engine that reads a run's own database and can never change it."""
    return create_engine(f"sqlite:///file:{path.resolve()}?mode=ro&uri=true", poolclass=NullPool)


def stored_count(engine: Engine, run: str) -> int:
    """Return how many traces a database holds of a run; 0 while it cannot be read."""
    try:
        with engine.connect() as connection:
            query = select(func.count()).select_from(TRACES).where(TRACES.c.run == run)
            return int(connection.execute(query).scalar() or 0)
    except SQLAlchemyError:
        return 0


def _silent(error: SQLAlchemyError) -> IncompleteError:
    reason = str(getattr(error, "orig", error)).splitlines()[0]
    return IncompleteError(
        f"the run's traces cannot be read now: {reason}", mend="Load the page again in a moment"
    )
