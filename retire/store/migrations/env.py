"""Alembic's entry: run the migrations on the connection that was handed over."""

from __future__ import annotations

from alembic import context

from retire.store import registry_tables  # noqa: F401  # declares its tables
from retire.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
