"""Real servers that die, stand still or share the work: the outcome is that of a quiet run."""

from __future__ import annotations

import random
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from retire.store.database import open_database
from retire.store.registry import Registry
from tests.databases import KINDS, fresh_database
from tests.integration.servers import Server, alone, make_token

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine

pytestmark = pytest.mark.integration

LONG = {"repetitions": 50}
"""400 cells."""
SLOW = {"answer_milliseconds": 80, "concurrency": 3}
"""Some 35 cells a second: the run outlives ten kills."""
PACED = {"answer_milliseconds": 20, "concurrency": 3}
"""Some 100 cells a second."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return alone(tmp_path_factory.mktemp("alone") / "run", **LONG)


def written(database: str) -> tuple[int, int, int]:
    """How many attempts, answers and traces are stored."""
    engine = open_database(database)
    with engine.connect() as connection:
        found = connection.execute(
            text(
                "SELECT (SELECT count(*) FROM attempts), (SELECT count(answer) FROM attempts), "
                "(SELECT count(*) FROM traces)"
            )
        ).one()
    engine.dispose()
    return (found[0], found[1], found[2])


@pytest.mark.parametrize(("kind", "kills"), [("sqlite", 10), ("postgresql", 3)])
def test_kills_at_random_moments_leave_no_trace_in_the_outcome(
    kind: str, kills: int, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    draw = random.Random(f"kill the server on {kind}")
    database = fresh_database(kind, tmp_path)
    token = make_token(database)
    data = tmp_path / "data"
    run = ""
    reached: list[int] = []
    for _ in range(kills):
        # A slow machine needs longer to get to the first cell at all.
        longest = 2.5 if any(reached) else 2.5 * (1 + len(reached))
        with Server(data, database, token, **SLOW) as server:
            run = run or server.submit(**LONG)["id"]
            # From before the claim to the middle of the cells.
            time.sleep(draw.uniform(0, longest))
            reached.append(server.run(run)["cells_done"])
    assert 0 < max(reached) < 400, reached
    with Server(data, database, token) as server:
        # And once about the time when the run is sealed and judged.
        server.until(run, "running", "complete", cells=300)
        time.sleep(draw.uniform(0, 0.5))
    with Server(data, database, token) as server:
        assert server.outcome(run) == undisturbed
        told = server.run(run)
        assert (told["cells_done"], told["error"]) == (400, None)
    engine = open_database(database)
    with engine.connect() as connection:
        seqs = connection.execute(text("SELECT seq FROM traces ORDER BY seq")).scalars().all()
    engine.dispose()
    assert seqs == list(range(1, 401))


def test_a_killed_server_of_the_command_line_is_resumed_by_the_next(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    database = fresh_database("sqlite", tmp_path)
    token = make_token(database)
    with Server(tmp_path / "data", database, token, script=True) as server:
        run = server.submit(**LONG)["id"]
        server.until(run, "running", cells=1)
    with Server(tmp_path / "data", database, token, script=True) as server:
        assert server.outcome(run) == undisturbed


def test_two_servers_share_what_is_queued(tmp_path: Path) -> None:
    database = fresh_database("postgresql", tmp_path)
    token = make_token(database)
    expected = alone(tmp_path / "alone")
    settings: dict[str, Any] = {"script": True, "runs_at_once": 1}
    with (
        Server(tmp_path / "data", database, token, **settings) as one,
        Server(tmp_path / "data", database, token, **settings) as two,
    ):
        runs = [one.submit()["id"] for _ in range(6)]
        # Either server answers for every run.
        outcomes = [server.outcome(run) for run, server in zip(runs, [one, two] * 3, strict=True)]
        assert outcomes == [expected] * 6
        carried = [
            {run for run in runs if f"run {run}: server" in server.said()} for server in (one, two)
        ]
        assert carried[0] | carried[1] == set(runs)
        assert carried[0].isdisjoint(carried[1])
        assert all(carried), carried
        assert one.stop() == two.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_stood_still_past_its_lease_writes_nothing_more(
    kind: str, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    database = fresh_database(kind, tmp_path)
    token = make_token(database)
    with Server(tmp_path / "data", database, token, **PACED) as server:
        run = server.submit(**LONG)["id"]
        server.until(run, "running", cells=20)
        before = stand_still(server, database)
        engine = open_database(database)
        registry = Registry(engine)
        # Another server takes the run, and carries it for longer than this one lives.
        later = int(time.time()) + 1000
        assert registry.claim("another/1", later, 100_000) == run
        server.process.send_signal(signal.SIGCONT)
        time.sleep(2)
        assert written(database) == before
        assert "cells_done" in server.run(run)
        row = registry.run(run)
        assert row is not None
        assert (row.state, row.lease_owner) == ("running", "another/1")
        registry.let_go("another/")
        engine.dispose()
        assert server.outcome(run) == undisturbed


def stand_still(server: Server, database: str) -> tuple[int, int, int]:
    """Stop a server at a moment when it holds no lock of the database."""
    engine = open_database(database)
    while True:
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        if not locked(engine):
            break
        server.process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
    engine.dispose()
    return written(database)


def locked(engine: Engine) -> bool:
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            query = (
                "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' "
                "AND datname = current_database() AND pid <> pg_backend_pid()"
            )
            return bool(connection.execute(text(query)).scalar())
        connection.exec_driver_sql("PRAGMA busy_timeout=50")
        try:
            connection.exec_driver_sql("UPDATE runs SET number = number")
        except OperationalError:
            return True
        return False


def test_another_server_waits_for_the_programs_of_one_that_stands_still(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    database = fresh_database("postgresql", tmp_path)
    token = make_token(database)
    with (
        Server(tmp_path / "data", database, token, **PACED) as first,
        Server(tmp_path / "data", database, token, runs_at_once=1) as second,
    ):
        run = first.submit(**LONG)["id"]
        deadline = time.monotonic() + 60
        carrier, other = first, second
        while f"run {run}: server" not in carrier.said():
            carrier, other = other, carrier
            assert time.monotonic() < deadline
            time.sleep(0.02)
        other.until(run, "running", cells=1)
        before = stand_still(carrier, database)
        while f"run {run} waits" not in other.said():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        # The other has the run, but nothing acts in a world that somebody else holds.
        assert written(database) == before
        assert other.run(run)["state"] == "running"
        carrier.process.send_signal(signal.SIGCONT)
        assert other.outcome(run) == undisturbed
        assert carrier.run(run)["state"] == "complete"


# -- disks that fill up ------------------------------------------------------------------------


def limited(size: int) -> list[str]:
    """Let no file of a server and of its programs grow beyond so many bytes."""
    return ["prlimit", f"--fsize={size}"]


def test_a_run_goes_on_once_its_database_has_room_again(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    database = fresh_database("sqlite", tmp_path)
    token = make_token(database)
    data = tmp_path / "data"
    with Server(data, database, token, before=limited(300_000)) as server:
        run = server.submit(**LONG)["id"]
        server.until(run, "running")
        deadline = time.monotonic() + 60
        # Whichever write meets the full disk first: the run's own, or its lease's.
        noticed = ("is left to the next claim", "could not be renewed")
        while not any(words in server.said() for words in noticed):
            assert time.monotonic() < deadline, server.said()
            time.sleep(0.1)
        assert server.run(run)["state"] == "running"
    with Server(data, database, token) as server:
        assert server.outcome(run) == undisturbed


def test_programs_without_room_give_no_evidence_and_the_run_says_so(tmp_path: Path) -> None:
    database = fresh_database("postgresql", tmp_path)
    token = make_token(database)
    with Server(tmp_path / "data", database, token, before=limited(60_000)) as server:
        told = server.until(server.submit()["id"], "incomplete", "failed")
        assert told["verdict"] in {None, "incomplete"}
        assert "no evidence" in told["error"]
        assert server.client.get("/readyz").status_code == 200
