"""Traces are append-only: the database itself refuses to change or delete one.

The one exception is declared: of a run that stands in ``purges`` the bodies may be replaced, and
nothing else of a row.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_KEPT = (
    "run",
    "seq",
    "cell",
    "bundle",
    "condition",
    "member",
    "d1",
    "d2",
    "reason",
    "protected",
    "prev",
    "hash",
)
_SAME = " AND ".join(f"NEW.{name} = OLD.{name}" for name in _KEPT)
_PURGE = f"EXISTS (SELECT 1 FROM purges WHERE run = OLD.run) AND {_SAME}"  # noqa: S608  # constants
_REFUSE = "SELECT RAISE(ABORT, 'traces are append-only');"

_KNOWN = """
    EXISTS (SELECT 1 FROM traces WHERE run = NEW.run AND seq = NEW.seq)
    OR EXISTS (SELECT 1 FROM traces WHERE run = NEW.run AND cell = NEW.cell)
"""

_SQLITE = (
    f"CREATE TRIGGER traces_delete BEFORE DELETE ON traces BEGIN {_REFUSE} END",
    f"CREATE TRIGGER traces_update BEFORE UPDATE ON traces WHEN NOT ({_PURGE}) BEGIN {_REFUSE} END",
    # INSERT OR REPLACE deletes a row without asking the trigger of deletions.
    f"CREATE TRIGGER traces_insert BEFORE INSERT ON traces WHEN {_KNOWN} BEGIN {_REFUSE} END",
)
_POSTGRESQL = (
    f"""
    CREATE FUNCTION keep_traces() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'UPDATE' THEN
            IF {_PURGE} THEN RETURN NEW; END IF;
        END IF;
        RAISE EXCEPTION 'traces are append-only' USING ERRCODE = 'restrict_violation';
    END $$
    """,
    """
    CREATE TRIGGER traces_rows BEFORE UPDATE OR DELETE ON traces
    FOR EACH ROW EXECUTE FUNCTION keep_traces()
    """,
    """
    CREATE TRIGGER traces_whole BEFORE TRUNCATE ON traces
    FOR EACH STATEMENT EXECUTE FUNCTION keep_traces()
    """,
)


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "purges",
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("purged_at", sa.String(length=20), nullable=False),
        sa.PrimaryKeyConstraint("run"),
    )
    for statement in _POSTGRESQL if _on_postgresql() else _SQLITE:
        op.execute(statement)


def downgrade() -> None:
    """Undo."""
    if _on_postgresql():
        op.execute("DROP TRIGGER traces_whole ON traces")
        op.execute("DROP TRIGGER traces_rows ON traces")
        op.execute("DROP FUNCTION keep_traces()")
    else:
        for name in ("traces_insert", "traces_update", "traces_delete"):
            op.execute(f"DROP TRIGGER {name}")
    op.drop_table("purges")


def _on_postgresql() -> bool:
    return op.get_bind().dialect.name == "postgresql"
