"""Reading traces for the service, and removing what a purge removes."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, update

from retire.domain.document import DocumentFault, as_document, read_unique
from retire.domain.errors import EvidenceError, IncompleteError, InputError
from retire.runner.purging import leave_note
from retire.service.port import TraceAnswer
from retire.store.database import empty_log, overwrite_deleted, writing
from retire.store.tables import ATTEMPTS, PURGES, TRACES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sqlalchemy import Connection, Engine, Row

    from retire.service.port import TraceFilter


_CHUNK = 500
"""Trace bodies held in memory at once."""


_LARGEST = 2**31 - 1
"""Of an integer column; PostgreSQL refuses to compare it with more."""


class TraceReader:
    """Pages of a run's traces, by sequence number."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(self, run: str, wanted: TraceFilter, after: int, limit: int) -> Sequence[TraceAnswer]:
        """Return up to ``limit`` rows behind the sequence number ``after``."""
        query = (
            select(TRACES)
            .where(TRACES.c.run == run, TRACES.c.seq > min(after, _LARGEST))
            .order_by(TRACES.c.seq)
            .limit(limit)
        )
        for name in ("bundle", "condition", "member", "d1", "d2", "reason"):
            value = getattr(wanted, name)
            if value is not None:
                query = query.where(TRACES.c[name] == str(value))
        if wanted.protected is not None:
            query = query.where(TRACES.c.protected == int(wanted.protected))
        with self._engine.connect() as connection:
            return [_row(row) for row in connection.execute(query)]

    def one(self, run: str, seq: int) -> TraceAnswer:
        """Return one row; raises KeyError where there is none."""
        query = select(TRACES).where(TRACES.c.run == run, TRACES.c.seq == seq)
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise KeyError(f"{run}.{seq}")
        return _row(row)


def _row(row: Row[Any]) -> TraceAnswer:
    trace = f"{row.run}.{row.seq}"
    values = {name: getattr(row, name) for name in ("run", "seq", "prev", "hash")}
    try:
        return as_document(TraceAnswer, {"id": trace, **values, "body": read_unique(row.body)})
    except DocumentFault as fault:
        raise EvidenceError(
            f"this is not what a run writes here ({str(fault)[:200]})", where=f"trace {trace}"
        ) from fault


def stage_counts(engine: Engine, run: str) -> dict[str, int]:
    """Return how many finished cells had each outcome of the proposal and decision stages."""
    columns = (TRACES.c.d1, TRACES.c.d2, TRACES.c.protected)
    query = select(*columns, func.count().label("cells")).where(TRACES.c.run == run)
    counts: Counter[str] = Counter({"d3_protected": 0})
    with engine.connect() as connection:
        for row in connection.execute(query.group_by(*columns)):
            counts[f"d1_{row.d1}"] += row.cells
            counts[f"d2_{row.d2}"] += row.cells
            counts["d3_protected"] += row.cells if row.protected else 0
    return dict(counts)


def purge_run(engine: Engine, folder: Path, run: str, now: str) -> None:
    """Remove answers, bundle copies and records of a run; digests, outcomes and hashes stay.

    The chained hashes stay as they were, so a purged row can no longer be recomputed: it says so.

    Raises:
        IncompleteError: Files could not be removed; the same call again goes on.
    """
    with writing(engine) as connection:
        overwrite_deleted(connection)
        known = select(PURGES.c.run).where(PURGES.c.run == run)
        if connection.execute(known).first() is None:
            connection.execute(insert(PURGES), {"run": run, "purged_at": now})
        connection.execute(
            update(ATTEMPTS).where(ATTEMPTS.c.run == run).values(answer=None, served=None)
        )
        after = 0
        while rows := _bodies_behind(connection, run, after):
            for row in rows:
                _empty(connection, run, row.seq, row.body)
            after = rows[-1].seq
    empty_log(engine)
    _remove(folder, now)


def _bodies_behind(connection: Connection, run: str, after: int) -> Sequence[Row[Any]]:
    query = select(TRACES.c.seq, TRACES.c.body).where(TRACES.c.run == run, TRACES.c.seq > after)
    return list(connection.execute(query.order_by(TRACES.c.seq).limit(_CHUNK)))


def _empty(connection: Connection, run: str, seq: int, text: str) -> None:
    body = json.loads(text)
    body["answer"] = None
    body["d1"] = {key: body["d1"][key] for key in ("outcome", "rule")}
    body["purged"] = True
    values = {"body": json.dumps(body, separators=(",", ":"))}
    connection.execute(
        update(TRACES).where(TRACES.c.run == run, TRACES.c.seq == seq).values(values)
    )


def _remove(folder: Path, now: str) -> None:
    """Remove the folder, and leave a note beside it for whoever looks for it later."""
    try:
        leave_note(folder, now)
        if folder.exists():
            shutil.rmtree(folder)
    except (OSError, InputError) as error:
        why = error.what if isinstance(error, InputError) else error.strerror
        raise IncompleteError(
            f"answers are removed, but files of the run are left: {why}",
            mend="The operator makes the data folder writable; then purge again",
        ) from error
