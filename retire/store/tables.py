"""The tables of runs: one database holds one run of the command line, or all of a service."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

METADATA = MetaData()

PLANS = Table(
    "plans",
    METADATA,
    Column("run", String(32), primary_key=True),
    Column("plan_digest", String(71), nullable=False),
    Column("plan", Text, nullable=False),
)
"""The plan that each run is tied to."""

ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("attempt", String(32), primary_key=True),
    Column("run", String(32), nullable=False),
    Column("cell", String(300), nullable=False),
    Column("number", Integer, nullable=False),
    Column("answer", Text),
    Column("prompt_digest", String(71)),
    Column("ended", String(300)),
    Column("served", Text),
    Index("attempts_by_cell", "run", "cell"),
)
"""Every try at a cell: started, then the model's answer, then why it ended without a trace.

``served`` is what a server reported beside its answer: model, fingerprint, usage, latency.
"""

TRACES = Table(
    "traces",
    METADATA,
    Column("run", String(32), primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("cell", String(300), nullable=False),
    Column("bundle", String(64), nullable=False),
    Column("condition", String(4), nullable=False),
    Column("member", String(100), nullable=False),
    Column("d1", String(16), nullable=False),
    Column("d2", String(16), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("protected", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("prev", String(71), nullable=False),
    Column("hash", String(71), nullable=False),
    UniqueConstraint("run", "cell", name="one_trace_a_cell"),
)
"""Finished cells, append-only and hash-chained within a run; what is filtered by stands apart."""

TRIALS = Table(
    "trials",
    METADATA,
    Column("run", String(32), primary_key=True),
    Column("deployment", String(100), primary_key=True),
    Column("bundle", String(100), primary_key=True),
    Column("deleted", String(71), primary_key=True),
    Column("body", Text, nullable=False),
)
"""Reducer trials by the digest of what was deleted, so that a resumed search asks nothing twice."""

PURGES = Table(
    "purges",
    METADATA,
    Column("run", String(32), primary_key=True),
    Column("purged_at", String(20), nullable=False),
)
"""Runs whose answers were removed: of their traces alone may a body be replaced."""
