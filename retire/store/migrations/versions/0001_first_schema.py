"""First schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "attempts",
        sa.Column("attempt", sa.String(length=32), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("cell", sa.String(length=300), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.Column("prompt_digest", sa.String(length=71), nullable=True),
        sa.Column("ended", sa.String(length=300), nullable=True),
        sa.PrimaryKeyConstraint("attempt"),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index("attempts_by_cell", ["run", "cell"], unique=False)

    op.create_table(
        "idempotency_keys",
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("submission", sa.String(length=71), nullable=False),
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("owner", "key"),
    )
    op.create_table(
        "plans",
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("plan_digest", sa.String(length=71), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("owner", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("plan_digest", sa.String(length=71), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("bundle", sa.String(length=64), nullable=False),
        sa.Column("deployment", sa.String(length=100), nullable=False),
        sa.Column("placement", sa.String(length=4), nullable=False),
        sa.Column("cells_planned", sa.Integer(), nullable=False),
        sa.Column("cells_done", sa.Integer(), nullable=False),
        sa.Column("stages", sa.Text(), nullable=False),
        sa.Column("created_at", sa.String(length=20), nullable=False),
        sa.Column("ended_at", sa.String(length=20), nullable=True),
        sa.Column("verdict", sa.String(length=16), nullable=True),
        sa.Column("certificate", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("cancel", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=64), nullable=True),
        sa.Column("lease_until", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("number"),
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_runs_owner"), ["owner"], unique=False)
        batch_op.create_index("runs_by_state", ["state", "number"], unique=False)

    op.create_table(
        "tokens",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=71), nullable=False),
        sa.Column("scopes", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.String(length=20), nullable=False),
        sa.Column("revoked", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_table(
        "traces",
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cell", sa.String(length=300), nullable=False),
        sa.Column("bundle", sa.String(length=64), nullable=False),
        sa.Column("condition", sa.String(length=4), nullable=False),
        sa.Column("member", sa.String(length=100), nullable=False),
        sa.Column("d1", sa.String(length=16), nullable=False),
        sa.Column("d2", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("protected", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("prev", sa.String(length=71), nullable=False),
        sa.Column("hash", sa.String(length=71), nullable=False),
        sa.PrimaryKeyConstraint("run", "seq"),
        sa.UniqueConstraint("run", "cell", name="one_trace_a_cell"),
    )
    op.create_table(
        "trials",
        sa.Column("run", sa.String(length=32), nullable=False),
        sa.Column("deployment", sa.String(length=100), nullable=False),
        sa.Column("bundle", sa.String(length=100), nullable=False),
        sa.Column("deleted", sa.String(length=71), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("run", "deployment", "bundle", "deleted"),
    )


def downgrade() -> None:
    """Undo."""
    op.drop_table("trials")
    op.drop_table("traces")
    op.drop_table("tokens")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index("runs_by_state")
        batch_op.drop_index(batch_op.f("ix_runs_owner"))

    op.drop_table("runs")
    op.drop_table("plans")
    op.drop_table("idempotency_keys")
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_index("attempts_by_cell")

    op.drop_table("attempts")
