"""The tables of the certification service: runs, tokens, and what ties a retried request to one."""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, String, Table, Text, UniqueConstraint

from retire.store.tables import METADATA

RUNS = Table(
    "runs",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("number", Integer, nullable=False, unique=True),
    Column("owner", String(64), nullable=False, index=True),
    Column("state", String(16), nullable=False),
    Column("plan_digest", String(71), nullable=False),
    Column("request", Text, nullable=False),
    Column("bundle", String(64), nullable=False),
    Column("deployment", String(100), nullable=False),
    Column("placement", String(4), nullable=False),
    Column("cells_planned", Integer, nullable=False),
    Column("cells_done", Integer, nullable=False, default=0),
    Column("stages", Text, nullable=False, default="{}"),
    Column("created_at", String(20), nullable=False),
    Column("ended_at", String(20)),
    Column("verdict", String(16)),
    Column("certificate", Text),
    Column("error", Text),
    Column("cancel", Integer, nullable=False, default=0),
    Column("lease_owner", String(64)),
    Column("lease_until", Integer),
    Index("runs_by_state", "state", "number"),
)
"""A certification. ``number`` orders runs; a lease says which server works on one, until when."""

KEYS = Table(
    "idempotency_keys",
    METADATA,
    Column("owner", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("submission", String(71), nullable=False),
    Column("run", String(32), nullable=False),
)
"""A retried request finds the run of the first; ``submission`` is the digest of what was asked."""

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", String(64), primary_key=True),
    Column("digest", String(71), nullable=False),
    Column("scopes", String(64), nullable=False),
    Column("created_at", String(20), nullable=False),
    Column("revoked", Integer, nullable=False, default=0),
    UniqueConstraint("digest"),
)
"""Bearer tokens by the digest of their secret; the secret itself is never stored."""
