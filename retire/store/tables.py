"""The tables of a run's database."""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, String, Table, Text

METADATA = MetaData()

RUN = Table(
    "run",
    METADATA,
    Column("plan_digest", String(71), primary_key=True),
    Column("plan", Text, nullable=False),
)
"""One row: the plan this database belongs to."""

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("attempt", String(32), primary_key=True),
    Column("cell", String(300), nullable=False, index=True),
    Column("number", Integer, nullable=False),
    Column("answer", Text),
    Column("prompt_digest", String(71)),
    Column("ended", String(300)),
)
"""Every try at a cell: started, then the model's answer, then why it ended without a trace."""

TRACES = Table(
    "traces",
    METADATA,
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("cell", String(300), nullable=False, unique=True),
    Column("body", Text, nullable=False),
    Column("prev", String(71), nullable=False),
    Column("hash", String(71), nullable=False),
)
"""Finished cells, append-only and hash-chained."""

TRIALS = Table(
    "trials",
    METADATA,
    Column("deployment", String(100), primary_key=True),
    Column("bundle", String(100), primary_key=True),
    Column("deleted", String(71), primary_key=True),
    Column("body", Text, nullable=False),
)
"""Reducer trials by the digest of what was deleted, so that a resumed search asks nothing twice."""
