"""One run in a database: its plan, attempts, traces and trials."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from sqlalchemy import and_, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from retire.deployments.port import Served
from retire.domain.digests import digest_of
from retire.domain.document import Document, read_document
from retire.domain.errors import InputError
from retire.domain.trace import Trace, TraceRow
from retire.store.database import migrate, open_database, writing
from retire.store.tables import ATTEMPTS, PLANS, TRACES, TRIALS
from retire.store.writer import GroupWriter, storable, storage_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection, Engine

    from retire.matrix import Plan

GENESIS = "sha256:" + "0" * 64
ALONE = "run"
"""The name of the only run in a database of its own."""


@dataclass(frozen=True, slots=True)
class CutAttempt:
    """A try at a cell that never became a trace; its answer, if one was stored, is reused."""

    attempt: str
    number: int
    answer: str | None
    ended: str | None


class StoredTrial(Document):
    """What a trial gave: how many of its development tasks were completed."""

    completed: int
    tasks: int


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """An answer with what its server reported, under the key of its cell or development task."""

    cell: str
    request: str
    answer: str
    served: Served


class RunStore:
    """Reads and writes of one run.

    Writes are awaited and return after their commit; reads are plain calls for the time before
    and after the run.

    Args:
        path: The database file of a run alone, or where a service's database is, for messages.
        engine: A service's database; without one the file is opened.
        run: Which run of the database this is.
        lease: Called within every transaction; raises when another server has taken the run over.
    """

    def __init__(
        self,
        path: Path,
        engine: Engine | None = None,
        run: str = ALONE,
        lease: Callable[[Connection], None] | None = None,
    ) -> None:
        self._path = path
        self._owned = engine is None
        self._engine = engine if engine is not None else open_database(f"sqlite:///{path}")
        self._run = run
        self._writer = GroupWriter(self._engine, path, lease)
        self._seq = 0
        self._hash = GENESIS
        self._numbers: dict[str, int] = {}

    # -- opening ---------------------------------------------------------------------------

    def bind(self, plan: Plan) -> None:
        """Tie the database to a plan, or check that it is tied to this one.

        Raises:
            InputError: The database holds another plan, or cannot be opened or written.
        """
        try:
            if self._owned:
                migrate(self._engine)
            with writing(self._engine) as connection:
                query = select(PLANS.c.plan_digest).where(PLANS.c.run == self._run)
                found = connection.execute(query).scalar()
                if found is None:
                    text = json.dumps(plan.statement.as_json())
                    row = {"run": self._run, "plan_digest": plan.digest, "plan": text}
                    connection.execute(insert(PLANS), row)
                self._stand_at_end(connection)
        except SQLAlchemyError as error:
            raise storage_fault(self._path, error) from error
        if found not in {None, plan.digest}:
            raise InputError(
                f"this folder holds another plan ({found[:23]}..., not {plan.digest[:23]}...)",
                where=str(self._path.parent),
                mend="Choose another --out, or run the same protocol with the same bundles again",
            )

    def _stand_at_end(self, connection: Connection) -> None:
        last = connection.execute(
            select(TRACES.c.seq, TRACES.c.hash)
            .where(TRACES.c.run == self._run)
            .order_by(TRACES.c.seq.desc())
            .limit(1)
        ).first()
        if last is not None:
            self._seq, self._hash = last.seq, last.hash
        rows = connection.execute(
            select(ATTEMPTS.c.cell, func.max(ATTEMPTS.c.number))
            .where(ATTEMPTS.c.run == self._run)
            .group_by(ATTEMPTS.c.cell)
        )
        self._numbers = {cell: number for cell, number in rows}  # noqa: C416  # rows are not tuples to mypy

    def done(self) -> set[str]:
        """Return the keys of the cells that have a trace."""
        with self._reading() as connection:
            query = select(TRACES.c.cell).where(TRACES.c.run == self._run)
            return set(connection.execute(query).scalars())

    def cut_attempts(self) -> dict[str, list[CutAttempt]]:
        """Return, by cell, the attempts of cells that have no trace."""
        query = (
            select(ATTEMPTS)
            .outerjoin(
                TRACES, and_(TRACES.c.run == ATTEMPTS.c.run, TRACES.c.cell == ATTEMPTS.c.cell)
            )
            .where(ATTEMPTS.c.run == self._run, TRACES.c.cell.is_(None))
            .order_by(ATTEMPTS.c.cell, ATTEMPTS.c.number)
        )
        found: dict[str, list[CutAttempt]] = {}
        with self._reading() as connection:
            for row in connection.execute(query):
                cut = CutAttempt(row.attempt, row.number, row.answer, row.ended)
                found.setdefault(row.cell, []).append(cut)
        return found

    def attempts(self) -> int:
        """Return how many attempts were ever started."""
        with self._reading() as connection:
            query = select(func.count()).where(ATTEMPTS.c.run == self._run)
            return connection.execute(query).scalar_one()

    def attempt_cells(self) -> dict[str, str]:
        """Return every attempt ever started, with the cell or development task it served."""
        query = (
            select(ATTEMPTS.c.attempt, ATTEMPTS.c.cell)
            .where(ATTEMPTS.c.run == self._run)
            .order_by(ATTEMPTS.c.attempt)
        )
        with self._reading() as connection:
            return {row.attempt: row.cell for row in connection.execute(query)}

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Open a connection; a damaged or vanished file is an error that a person can act on."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise storage_fault(self._path, error) from error
        except ValueError as error:
            raise InputError(
                f"the run's database holds an unreadable row: {error}",
                where=str(self._path),
                mend="The file is damaged; choose another --out and keep it as evidence",
            ) from error

    def traces(self) -> Iterator[TraceRow]:
        """Yield every trace in the order of the chain."""
        with self._reading() as connection:
            rows = connection.execution_options(yield_per=500).execute(
                select(TRACES).where(TRACES.c.run == self._run).order_by(TRACES.c.seq)
            )
            for row in rows:
                yield TraceRow(
                    seq=row.seq, prev=row.prev, hash=row.hash, body=read_document(Trace, row.body)
                )

    def served(self) -> Iterator[ServedAnswer]:
        """Yield every answer that a server gave, in the order of its attempt's cell and number."""
        query = (
            select(ATTEMPTS)
            .where(ATTEMPTS.c.run == self._run, ATTEMPTS.c.served.is_not(None))
            .order_by(ATTEMPTS.c.cell, ATTEMPTS.c.number)
        )
        with self._reading() as connection:
            for row in connection.execution_options(yield_per=500).execute(query):
                served = Served.model_validate_json(row.served)
                yield ServedAnswer(row.cell, row.prompt_digest, row.answer, served)

    def servers(self) -> dict[str, tuple[str, str]]:
        """Return the model and fingerprint that each deployment's server first reported."""
        first: dict[str, tuple[str, str]] = {}
        for item in self.served():
            reports = (item.served.model, item.served.fingerprint)
            first.setdefault(item.cell.split("/")[1], reports)
        return first

    def trials(self, deployment: str, bundle: str) -> dict[str, StoredTrial]:
        """Return the results of stored trials of one search, by the digest of what was deleted."""
        query = select(TRIALS.c.deleted, TRIALS.c.body).where(
            TRIALS.c.run == self._run,
            TRIALS.c.deployment == deployment,
            TRIALS.c.bundle == bundle,
        )
        with self._reading() as connection:
            return {
                row.deleted: read_document(StoredTrial, row.body)
                for row in connection.execute(query)
            }

    # -- writing ---------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._writer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._writer.finish()

    async def started(self, attempt: str, cell: str) -> int:
        """Store that an attempt begins, before anything else is done; returns its number."""
        number = self._numbers.get(cell, 0) + 1
        self._numbers[cell] = number
        row = {"attempt": attempt, "run": self._run, "cell": cell, "number": number}
        await self._write(lambda connection: connection.execute(insert(ATTEMPTS), row))
        return number

    async def answered(
        self, attempt: str, answer: str, prompt_digest: str, served: str | None = None
    ) -> None:
        """Store the model's completed answer, and what its server reported; never asked again."""
        values = {"answer": answer, "prompt_digest": prompt_digest, "served": served}
        await self._write(
            lambda connection: connection.execute(
                update(ATTEMPTS).where(ATTEMPTS.c.attempt == attempt).values(values)
            )
        )

    async def ended(self, attempt: str, reason: str) -> None:
        """Store why an attempt ended without a trace."""
        values = {"ended": storable(reason)[:300]}
        await self._write(
            lambda connection: connection.execute(
                update(ATTEMPTS).where(ATTEMPTS.c.attempt == attempt).values(values)
            )
        )

    async def traced(self, trace: Trace) -> None:
        """Chain and store the trace of a finished cell."""
        seq, prev = self._seq + 1, self._hash
        body = trace.as_json()
        own = digest_of({"seq": seq, "prev": prev, "body": body})
        self._seq, self._hash = seq, own
        text = json.dumps(body, separators=(",", ":"))
        row = {
            "run": self._run,
            "seq": seq,
            "cell": trace.cell.cell.key,
            "bundle": trace.cell.bundle,
            "condition": trace.cell.condition,
            "member": trace.cell.member,
            "d1": trace.d1.outcome,
            "d2": trace.d2.outcome,
            "reason": trace.d2.reason,
            "protected": int(trace.d3.protected),
            "body": text,
            "prev": prev,
            "hash": own,
        }
        await self._write(lambda connection: connection.execute(insert(TRACES), row))

    async def tried(self, deployment: str, bundle: str, deleted: str, trial: StoredTrial) -> None:
        """Store the result of a reducer trial."""
        row = {
            "run": self._run,
            "deployment": deployment,
            "bundle": bundle,
            "deleted": deleted,
            "body": json.dumps(trial.as_json()),
        }
        await self._write(lambda connection: connection.execute(insert(TRIALS), row))

    async def _write(self, operation: Callable[[Connection], object]) -> None:
        await self._writer.write(operation)

    def close(self) -> None:
        """Close the database, unless it is a service's."""
        if self._owned:
            self._engine.dispose()
