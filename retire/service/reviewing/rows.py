"""The traces of a run that goes on, from the database that it fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from retire.certify.joining import attempts_without_row, protected_attempt
from retire.domain.document import DocumentFault, read_document
from retire.domain.errors import EvidenceError, IncompleteError
from retire.domain.trace import Trace, TraceRow
from retire.pages.html.index import TraceIndex
from retire.store.tables import ATTEMPTS, TRACES
from retire.verify.inputs import damaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sqlalchemy import Engine, Row, Select

_CHUNK = 500
"""Attempts that are looked up at once."""


class StoredTraces:
    """The traces in a database; each look reads only what is new.

    Args:
        engine: The database.
        run: Which run of it.
        record: The observer's record while the run goes on. It need not be there yet, and it may be
            another user's, who lets nobody read it before the run is sealed.
    """

    def __init__(self, engine: Engine, run: str, record: Path) -> None:
        self.index = TraceIndex()
        self._engine = engine
        self._run = run
        self._record = record
        self._read_to = 0
        self._unplaced: list[str] = []
        self._attempts: dict[str, str] = {}

    def look(self) -> tuple[str, ...]:
        """Bring the index up to what is stored now.

        Returns:
            The keys of cells that leaked in an attempt, and have no trace.

        Raises:
            IncompleteError: The database does not answer.
            EvidenceError: A trace, or the observer's record, cannot be read.
        """
        query = select(TRACES.c.seq, TRACES.c.body).where(
            TRACES.c.run == self._run, TRACES.c.seq > len(self.index)
        )
        for row in self._rows(query.order_by(TRACES.c.seq)):
            self.index.add(_trace(row).outcome())
        self._unplaced += self._sighted()
        while self._unplaced:
            wanted = ATTEMPTS.c.attempt.in_(self._unplaced[:_CHUNK])
            places = select(ATTEMPTS.c.attempt, ATTEMPTS.c.cell)
            for row in self._rows(places.where(ATTEMPTS.c.run == self._run, wanted)):
                self._attempts[row.attempt] = row.cell
            del self._unplaced[:_CHUNK]
        traced = {row.cell.key for row in self.index}
        return tuple(sorted(set(attempts_without_row(self._attempts, traced).values())))

    def trace(self, seq: int) -> TraceRow:
        """Return one whole trace row; otherwise as :meth:`look`."""
        query = select(TRACES).where(TRACES.c.run == self._run, TRACES.c.seq == seq)
        (row,) = self._rows(query)
        return TraceRow(seq=row.seq, prev=row.prev, hash=row.hash, body=_trace(row))

    def _rows(self, query: Select[Any]) -> Iterator[Row[Any]]:
        try:
            with self._engine.connect() as connection:
                yield from connection.execute(query)
        except SQLAlchemyError as error:
            reason = str(getattr(error, "orig", error)).splitlines()[0]
            raise IncompleteError(
                f"the run's traces cannot be read now: {reason}",
                mend="Load the page again in a moment",
            ) from error

    def _sighted(self) -> Sequence[str]:
        """Return the attempts in which the observer newly saw a protected effect."""
        found = []
        try:
            with self._record.open("rb") as file:
                file.seek(self._read_to)
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    self._read_to += len(line)
                    if attempt := protected_attempt(line):
                        found.append(attempt)
        except (FileNotFoundError, PermissionError):
            return []
        except OSError as error:
            raise EvidenceError(
                f"the observer's record cannot be read: {error.strerror}", where=str(self._record)
            ) from error
        return found


def _trace(row: Row[Any]) -> Trace:
    try:
        return read_document(Trace, row.body)
    except DocumentFault as fault:
        raise damaged(f"trace {row.seq} of the run's database", fault) from fault


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
