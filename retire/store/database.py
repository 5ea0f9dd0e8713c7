"""Opening a database: SQLite in WAL mode or PostgreSQL, brought to the present schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url

_MIGRATIONS = Path(__file__).parent / "migrations"


def open_database(url: str) -> Engine:
    """Return an engine; SQLite waits up to 30 s for another writer, PostgreSQL pings first.

    Args:
        url: An SQLAlchemy URL, such as ``sqlite:///runs/service.sqlite`` or
            ``postgresql+psycopg://user@host/name``.
    """
    if make_url(url).get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": 30})

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _: object) -> None:  # noqa: ANN401  # the driver's type
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    return engine


def migrate(engine: Engine) -> None:
    """Bring a database to the present schema; an empty one is created.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: The database cannot be read or written.
        alembic.util.CommandError: It was written by a newer version.
    """
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
