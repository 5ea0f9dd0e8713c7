"""One suite for the registry on both databases: queueing, keys, leases, tokens, migrations."""

from __future__ import annotations

import secrets
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import inspect, text

from retire.domain.errors import InputError
from retire.store import RunStore, database
from retire.store.database import migrate, open_database, writing
from retire.store.registry import NewRun, Registry, RepeatedKeyError
from tests.contract.test_store_of_runs import PLAN
from tests.databases import KINDS, fresh_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Engine

pytestmark = pytest.mark.contract

TABLES = {
    "alembic_version",
    "attempts",
    "idempotency_keys",
    "plans",
    "purges",
    "runs",
    "tokens",
    "traces",
    "trials",
}


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return fresh_database(request.param, tmp_path)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    opened = open_database(url)
    migrate(opened)
    yield opened
    opened.dispose()


def new(run: str | None = None, owner: str = "me") -> NewRun:
    name = run or secrets.token_hex(16)
    return NewRun(name, owner, f"plan-{name}", '{"a": 1}', "X", "plain", "B4", 8, "2026-01-01")


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """Call all from threads that begin together; an exception is a result."""
    barrier = threading.Barrier(len(calls))

    def one(call: Callable[[], Any]) -> Any:
        barrier.wait(20)
        try:
            return call()
        except (RepeatedKeyError, InputError) as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))


# -- runs ------------------------------------------------------------------------------------


def test_runs_are_listed_newest_first_and_paged_by_key(engine: Engine) -> None:
    registry = Registry(engine)
    for name in ("a", "b", "c"):
        registry.add(new(name), None)
    registry.add(new("d", owner="other"), None)
    assert [row.id for row in registry.runs("me", None, 2)] == ["c", "b"]
    assert [row.id for row in registry.runs("me", "b", 2)] == ["a"]
    assert [row.id for row in registry.runs(None, None, 9)] == ["d", "c", "b", "a"]
    for unknown in ("z", "d"):
        with pytest.raises(KeyError):
            registry.runs("me", unknown, 2)
    assert registry.run("z") is None
    assert registry.request("a") == '{"a": 1}'
    assert registry.by_plan("plan-a") == ["a"]
    for missing in ("a", "z"):
        with pytest.raises(KeyError):
            registry.certificate(missing)


def test_runs_queued_together_take_numbers_of_their_own(engine: Engine) -> None:
    registry = Registry(engine)
    at_once([lambda: registry.add(new(), None) for _ in range(12)])
    rows = registry.runs(None, None, 99)
    assert [row.number for row in rows] == list(range(12, 0, -1))


# -- idempotency keys ------------------------------------------------------------------------


def test_a_key_that_is_sent_twelve_times_at_once_makes_one_run(engine: Engine) -> None:
    registry = Registry(engine)
    given = [new() for _ in range(12)]
    told = at_once([lambda run=run: registry.add(run, ("key", "sha256:s")) for run in given])
    (made,) = registry.runs(None, None, 99)
    assert told.count(None) == 1
    repeated = [error for error in told if error is not None]
    assert {(error.run, error.same) for error in repeated} == {(made.id, True)}


def test_a_key_belongs_to_its_owner_and_its_submission(engine: Engine) -> None:
    registry = Registry(engine)
    registry.used_key("me", ("key", "sha256:s"))
    registry.add(new("a"), ("key", "sha256:s"))
    registry.add(new("b", owner="other"), ("key", "sha256:other"))
    with pytest.raises(RepeatedKeyError) as caught:
        registry.add(new("c"), ("key", "sha256:else"))
    assert (caught.value.run, caught.value.same) == ("a", False)
    with pytest.raises(RepeatedKeyError) as caught:
        registry.used_key("me", ("key", "sha256:s"))
    assert caught.value.same
    assert registry.run("c") is None


# -- leases ----------------------------------------------------------------------------------


def test_two_registries_that_claim_at_once_get_each_run_exactly_once(url: str) -> None:
    engines = [open_database(url) for _ in range(2)]
    migrate(engines[0])
    registries = [Registry(engine) for engine in engines]
    names = {f"run-{number}" for number in range(30)}
    for name in sorted(names):
        registries[0].add(new(name), None)

    def take(registry: Registry) -> list[str]:
        got = []
        misses = 0
        while misses < 3:
            run = registry.claim(secrets.token_hex(8), 100, 10)
            misses = 0 if run else misses + 1
            got += [run] if run else []
        return got

    claimed = at_once([lambda r=registry: take(r) for registry in registries * 2])
    assert sorted(name for some in claimed for name in some) == sorted(names)
    for engine in engines:
        engine.dispose()


def test_a_lease_is_kept_by_renewing_and_runs_out_otherwise(engine: Engine) -> None:
    registry = Registry(engine)
    registry.add(new("a"), None)
    assert registry.claim("one", 100, 10) == "a"
    assert registry.claim("two", 105, 10) is None
    assert registry.renew("a", "one", 120, {"cells_done": 3})
    assert registry.claim("two", 115, 10) is None
    assert registry.claim("three", 121, 10, held=("a",)) is None
    assert registry.claim("two", 121, 10) == "a"
    assert not registry.renew("a", "one", 140, {"cells_done": 9})
    assert not registry.release("a", "one", {"state": "complete"})
    row = registry.run("a")
    assert row is not None
    assert (row.state, row.cells_done, row.lease_owner) == ("running", 3, "two")
    assert registry.release("a", "two", {"state": "complete", "certificate": '{"a": 1}'})
    assert registry.claim("three", 999, 10) is None
    assert registry.certificate("a") == '{"a": 1}'
    row = registry.run("a")
    assert row is not None
    assert row.certified


def test_a_server_gives_back_what_it_holds_and_nothing_else(engine: Engine) -> None:
    registry = Registry(engine)
    for name in ("a", "b", "c"):
        registry.add(new(name), None)
    assert registry.claim("one/1", 100, 10) == "a"
    assert registry.claim("one/2", 100, 10) == "b"
    assert registry.claim("two/1", 100, 10) == "c"
    registry.let_go("one/")
    assert registry.claim("three/1", 101, 10) == "a"
    assert registry.claim("three/2", 101, 10) == "b"
    assert registry.claim("three/3", 101, 10) is None


def test_a_queued_run_is_cancelled_at_once_and_a_running_one_when_its_server_hears(
    engine: Engine,
) -> None:
    registry = Registry(engine)
    for name in ("a", "b"):
        registry.add(new(name), None)
    assert registry.claim("one", 100, 10) == "a"
    for name in ("a", "b"):
        registry.ask_to_cancel(name, "2026-01-02")
    running, queued = registry.run("a"), registry.run("b")
    assert running is not None
    assert queued is not None
    assert (queued.state, queued.ended_at) == ("cancelled", "2026-01-02")
    assert running.state == "running"
    assert not registry.renew("a", "one", 200)
    assert registry.release("a", "one", {"state": "complete"})
    registry.ask_to_cancel("a", "2026-01-03")
    ended = registry.run("a")
    assert ended is not None
    assert (ended.state, ended.ended_at) == ("complete", None)


# -- tokens ----------------------------------------------------------------------------------


def test_a_token_is_found_by_its_digest_and_stays_revoked(engine: Engine) -> None:
    registry = Registry(engine)
    registry.add_token("t1", "sha256:1", "certify read", "2026-01-01")
    registry.add_token("t2", "sha256:2", "admin", "2026-01-02")
    assert registry.token_by_digest("sha256:3") is None
    assert registry.revoke("t1")
    assert registry.revoke("t1")
    assert not registry.revoke("t9")
    assert [(row.id, row.scopes, row.revoked) for row in registry.tokens()] == [
        ("t1", "certify read", 1),
        ("t2", "admin", 0),
    ]
    found = registry.token_by_digest("sha256:1")
    assert found is not None
    assert found.revoked


# -- migrations ------------------------------------------------------------------------------


def old_database(url: str) -> None:
    """A database as the first version left it, with a run and a trace."""
    engine = open_database(url)
    config = Config()
    config.set_main_option("script_location", str(database._MIGRATIONS))
    with writing(engine) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(
            text(
                "INSERT INTO traces VALUES "
                "('one', 1, 'c', 'X', 'B1', 'm', 'proposal', 'allow', '', 0, '{}', 'p', 'h')"
            )
        )
    engine.dispose()


def test_an_older_database_is_brought_up_and_keeps_its_rows(url: str, tmp_path: Path) -> None:
    old_database(url)
    engine = open_database(url)
    assert "purges" not in inspect(engine).get_table_names()
    for _ in range(2):
        migrate(engine)
    assert set(inspect(engine).get_table_names()) == TABLES
    assert RunStore(tmp_path, engine, "one").done() == {"c"}
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused_and_left_alone(
    engine: Engine, tmp_path: Path
) -> None:
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InputError, match="newer version") as caught:
        migrate(engine)
    assert "9999" in str(caught.value)
    assert "another database" in caught.value.mend
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).all() == [
            ("9999",)
        ]


def test_a_run_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    store = RunStore(path)
    store.bind(PLAN)
    store.close()
    engine = open_database(f"sqlite:///{path}")
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    store = RunStore(path)
    with pytest.raises(InputError, match="newer version"):
        store.bind(PLAN)
    store.close()


MIGRATE = "import sys; from retire.store.database import *; migrate(open_database(sys.argv[1]))"


def test_servers_that_start_together_bring_an_empty_database_up_once(url: str) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, url], stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    for process in started:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said.decode()
    engine = open_database(url)
    assert set(inspect(engine).get_table_names()) == TABLES
    engine.dispose()


def test_a_migration_that_is_cut_leaves_the_schema_as_it_was(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_database(url)
    engine = open_database(url)

    class CutError(Exception):
        """The process is gone."""

    upgrade = command.upgrade

    def cut(*arguments: Any) -> None:
        upgrade(*arguments)
        raise CutError

    with monkeypatch.context() as patched:
        patched.setattr(command, "upgrade", cut)
        with pytest.raises(CutError):
            migrate(engine)
    assert "purges" not in inspect(engine).get_table_names()
    migrate(engine)
    assert set(inspect(engine).get_table_names()) == TABLES
    engine.dispose()
