"""Reading traces for the service, and removing what a purge removes."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, update

from retire.store.tables import ATTEMPTS, TRACES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sqlalchemy import Engine, Row

    from retire.service.port import TraceFilter


class TraceReader:
    """Pages of a run's traces, by sequence number."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(
        self, run: str, wanted: TraceFilter, after: int, limit: int
    ) -> Sequence[Mapping[str, Any]]:
        """Return up to ``limit`` rows behind the sequence number ``after``."""
        query = (
            select(TRACES)
            .where(TRACES.c.run == run, TRACES.c.seq > after)
            .order_by(TRACES.c.seq)
            .limit(limit)
        )
        for name in ("bundle", "condition", "member", "d1", "d2", "reason"):
            value = getattr(wanted, name)
            if value is not None:
                query = query.where(TRACES.c[name] == value)
        if wanted.protected is not None:
            query = query.where(TRACES.c.protected == int(wanted.protected))
        with self._engine.connect() as connection:
            return [_row(row) for row in connection.execute(query)]

    def one(self, run: str, seq: int) -> Mapping[str, Any]:
        """Return one row; raises KeyError where there is none."""
        query = select(TRACES).where(TRACES.c.run == run, TRACES.c.seq == seq)
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise KeyError(f"{run}.{seq}")
        return _row(row)


def _row(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": f"{row.run}.{row.seq}",
        "run": row.run,
        "seq": row.seq,
        "prev": row.prev,
        "hash": row.hash,
        "body": json.loads(row.body),
    }


def stage_counts(engine: Engine, run: str) -> dict[str, int]:
    """Return how many finished cells had each outcome of the proposal and decision stages."""
    counts: dict[str, int] = {}
    with engine.connect() as connection:
        for stage in ("d1", "d2"):
            column = TRACES.c[stage]
            query = select(column, func.count()).where(TRACES.c.run == run).group_by(column)
            counts |= {f"{stage}_{name}": count for name, count in connection.execute(query)}
        query = select(func.count()).where(TRACES.c.run == run, TRACES.c.protected == 1)
        counts["d3_protected"] = connection.execute(query).scalar_one()
    return counts


def purge_run(engine: Engine, folder: Path, run: str) -> None:
    """Remove answers, bundle copies and records of a run; digests, outcomes and hashes stay.

    The chained hashes stay as they were, so a purged row can no longer be recomputed: it says so.
    """
    query = select(TRACES.c.seq, TRACES.c.body).where(TRACES.c.run == run)
    with engine.begin() as connection:
        connection.execute(update(ATTEMPTS).where(ATTEMPTS.c.run == run).values(answer=None))
        for row in connection.execute(query).all():
            body = json.loads(row.body)
            body["answer"] = None
            body["d1"] = {key: body["d1"][key] for key in ("outcome", "rule")}
            body["purged"] = True
            connection.execute(
                update(TRACES)
                .where(TRACES.c.run == run, TRACES.c.seq == row.seq)
                .values(body=json.dumps(body, separators=(",", ":")))
            )
    shutil.rmtree(folder, ignore_errors=True)
