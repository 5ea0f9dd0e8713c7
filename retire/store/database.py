"""Opening a database: SQLite in WAL mode or PostgreSQL, brought to the present schema."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import make_url

from retire.domain.errors import InputError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    import psycopg
    from sqlalchemy import Connection, Engine

_MIGRATIONS = Path(__file__).parent / "migrations"
_WRITES = "retire_writes"
_MIGRATING = threading.Lock()
"""Alembic keeps its context in module globals."""

SCHEMA_LOCK = 0x7265_7469
"""Advisory lock (PostgreSQL) of whoever changes the schema."""
NUMBER_LOCK = 0x7265_746E
"""Advisory lock (PostgreSQL) of whoever gives a run its number."""


def open_database(url: str) -> Engine:
    """Return an engine; whoever waits for another writer gives up after 30 s.

    Args:
        url: An SQLAlchemy URL, such as ``sqlite:///runs/service.sqlite`` or
            ``postgresql+psycopg://user@host/name``.
    """
    if make_url(url).get_backend_name() != "sqlite":
        engine = create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=20)
        event.listen(engine, "connect", _bound_waits)
        return engine
    engine = create_engine(url, connect_args={"timeout": 30})

    @event.listens_for(engine, "connect")
    def _on_connect(connection: sqlite3.Connection, _: object) -> None:
        # The driver would begin transactions late, and none around a change of the schema.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        # A transaction that reads first and writes later fails at once when another has written
        # in between, so a writer takes the lock before it reads.
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _bound_waits(connection: psycopg.Connection, _: object) -> None:
    """Let no server that stands still in the middle of a transaction hold up the others."""
    with connection.cursor() as cursor:
        cursor.execute("SET idle_in_transaction_session_timeout = '10s'")
        cursor.execute("SET lock_timeout = '30s'")
    connection.commit()


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Give a connection within a transaction that will write; commit at the end."""
    with engine.connect() as plain:
        connection = plain.execution_options(**{_WRITES: True})
        with connection.begin():
            yield connection


def take_turns(connection: Connection, lock: int) -> None:
    """Wait for everybody else who takes this lock; held until the transaction ends.

    SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": lock})


def overwrite_deleted(connection: Connection) -> None:
    """Let SQLite overwrite what this connection removes, instead of leaving it in free pages."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA secure_delete=ON")


def empty_log(engine: Engine) -> None:
    """Let SQLite carry its log over into the file and empty it, where nobody reads from it."""
    if engine.dialect.name == "sqlite":
        raw = engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            raw.close()


def migrate(engine: Engine) -> None:
    """Bring a database to the present schema; an empty one is created.

    All or nothing: whoever is killed in between leaves the schema as it was.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: The database cannot be read or written.
        InputError: It was written by a newer version.
    """
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    with _MIGRATING, writing(engine) as connection:
        take_turns(connection, SCHEMA_LOCK)
        _refuse_newer(connection, config)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _refuse_newer(connection: Connection, config: Config) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    unknown = set(MigrationContext.configure(connection).get_current_heads()) - known
    if unknown:
        raise InputError(
            f"the database was written by a newer version (schema {min(unknown)}, "
            f"known up to {max(known)})",
            where=connection.engine.url.render_as_string(hide_password=True),
            mend="Use that version, or another database",
        )
