"""What a server reported of itself and of its answer stands beside the answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.add_column(sa.Column("served", sa.Text(), nullable=True))


def downgrade() -> None:
    """Undo."""
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_column("served")
