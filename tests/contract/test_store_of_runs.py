"""One suite for the store of runs on both databases: chain, resume, append-only, fences."""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from retire.domain.cell import Cell, Condition, Sample
from retire.domain.digests import digest_of
from retire.domain.errors import InputError, RetireError
from retire.matrix import Protocol
from retire.service.port import PurgedTrace, TraceFilter
from retire.service.queries import TraceReader, purge_run, stage_counts
from retire.store import RunStore, StoredTrial
from retire.store.database import migrate, open_database, writing
from retire.store.registry import NewRun, Registry, hold
from retire.store.writer import StorageError
from retire.wiring import Request, prepare
from sink.proposal import RawAnswer
from tests.databases import KINDS, fresh_database
from tests.made_traces import door, made_trace, proposes, seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

    from retire.domain.trace import Trace, TraceRow

pytestmark = pytest.mark.contract

TRIAL = StoredTrial(completed=1, tasks=3)
PANEL = Path(__file__).parents[2] / "bundles" / "panel"
PROTOCOL = Protocol(
    schema="retire.protocol/v1", name="x", seed=1, bundles=("ACC_L01",), deployments=("plain",)
)
PLAN = prepare(Request(PROTOCOL, {"ACC_L01": PANEL / "ACC_L01"}, Path("none"))).plan


@pytest.fixture(params=KINDS)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    opened = open_database(fresh_database(request.param, tmp_path))
    migrate(opened)
    yield opened
    opened.dispose()


def trace(number: int, member: str = "authorized", reason: str = "") -> Trace:
    """A trace of the cell with this repetition."""
    cell = Cell(Sample.AUDIT, "m", "X", Condition.B1, member, number)
    answer = RawAnswer(mode="json", text=f"secret {number}", finish_reason="stop")
    d2 = door("deny" if reason else "allow", reason=reason)
    d3 = seen(protected=member != "authorized")
    return made_trace(cell, proposes("t", a="secret"), d2, d3, answer=answer)


def key(number: int) -> str:
    return trace(number).cell.cell.key


async def fill(store: RunStore, count: int, start: int = 1) -> None:
    store.bind(PLAN)
    async with store:
        for number in range(start, start + count):
            await store.started(secrets.token_hex(16), key(number))
            await store.traced(trace(number))


def numbers(store: RunStore) -> list[int]:
    return [row.body.cell.repetition for row in chain(store)]


def chain(store: RunStore) -> list[TraceRow]:
    """The rows, after every link was recomputed."""
    rows = list(store.traces())
    previous = "sha256:" + "0" * 64
    for seq, row in enumerate(rows, start=1):
        assert row.seq == seq
        assert row.prev == previous
        previous = digest_of({"seq": seq, "prev": row.prev, "body": row.body.as_json()})
        assert row.hash == previous
    return rows


# -- chain and resume ------------------------------------------------------------------------


async def test_rows_chain_within_their_run_and_a_resumed_store_goes_on(
    engine: Engine, tmp_path: Path
) -> None:
    await fill(RunStore(tmp_path, engine, "one"), 3)
    await fill(RunStore(tmp_path, engine, "two"), 2)
    again = RunStore(tmp_path, engine, "one")
    await fill(again, 2, start=4)
    assert numbers(again) == [1, 2, 3, 4, 5]
    assert len(chain(RunStore(tmp_path, engine, "two"))) == 2
    assert again.done() == {key(number) for number in range(1, 6)}
    assert again.attempts() == 5


async def test_what_is_written_together_stands_in_the_order_of_the_calls(
    engine: Engine, tmp_path: Path
) -> None:
    store = RunStore(tmp_path, engine, "one")
    store.bind(PLAN)
    async with store:
        await asyncio.gather(*(store.traced(trace(n)) for n in range(1, 61)))
    assert numbers(store) == list(range(1, 61))


async def test_a_cut_attempt_keeps_its_answer(engine: Engine, tmp_path: Path) -> None:
    store = RunStore(tmp_path, engine, "one")
    store.bind(PLAN)
    async with store:
        assert await store.started("a1", "c1") == 1
        await store.answered("a1", '"ja"', "sha256:p")
        assert await store.started("a2", "c1") == 2
        await store.ended("a2", "half a pair \ud800 and a zero \0 " + "x" * 400)
        await store.started("a3", key(1))
        await store.traced(trace(1))
        await store.tried("plain", "X", "sha256:d", TRIAL)
    again = RunStore(tmp_path, engine, "one")
    again.bind(PLAN)
    (first, second) = again.cut_attempts()["c1"]
    assert (first.answer, first.number) == ('"ja"', 1)
    assert second.answer is None
    assert second.ended is not None
    assert len(second.ended) == 300
    assert key(1) not in again.cut_attempts()
    assert again.attempt_cells() == {"a1": "c1", "a2": "c1", "a3": key(1)}
    assert again.trials("plain", "X") == {"sha256:d": TRIAL}
    async with again:
        assert await again.started("a4", "c1") == 3


async def test_a_run_is_tied_to_its_plan(engine: Engine, tmp_path: Path) -> None:
    RunStore(tmp_path, engine, "one").bind(PLAN)
    RunStore(tmp_path, engine, "one").bind(PLAN)
    with pytest.raises(InputError, match="another plan"):
        RunStore(tmp_path, engine, "one").bind(replace(PLAN, digest="other"))


async def test_a_cell_has_one_trace_and_nothing_follows_a_lost_row(
    engine: Engine, tmp_path: Path
) -> None:
    store = RunStore(tmp_path, engine, "one")
    store.bind(PLAN)
    async with store:
        await store.traced(trace(1))
        with pytest.raises(StorageError):
            await store.traced(trace(1))
        with pytest.raises(StorageError):
            await store.traced(trace(3))
    again = RunStore(tmp_path, engine, "one")
    await fill(again, 1, start=4)
    assert numbers(again) == [1, 4]


async def test_nobody_waits_for_a_writer_that_died(engine: Engine, tmp_path: Path) -> None:
    """An error that no database makes must not leave every other writer waiting for ever."""

    def unforeseen(_: Connection) -> None:
        raise ZeroDivisionError

    store = RunStore(tmp_path, engine, "one", unforeseen)
    store.bind(PLAN)
    async with asyncio.timeout(10), store:
        told = await asyncio.gather(
            *(store.traced(trace(n)) for n in range(1, 4)), return_exceptions=True
        )
    assert all(isinstance(error, RetireError) for error in told)
    assert RunStore(tmp_path, engine, "one").done() == set()


async def test_a_commit_under_way_is_over_before_the_store_is_left(
    engine: Engine, tmp_path: Path
) -> None:
    """Who opens the run next must find the end of the chain where it will stay."""
    begun = threading.Event()

    def slow(_: Connection) -> None:
        begun.set()
        time.sleep(0.3)

    store = RunStore(tmp_path, engine, "one", slow)
    store.bind(PLAN)

    async def work() -> None:
        async with store:
            await store.traced(trace(1))

    task = asyncio.create_task(work())
    assert await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert RunStore(tmp_path, engine, "one").done() == {key(1)}
    again = RunStore(tmp_path, engine, "one")
    await fill(again, 1, start=2)
    assert len(chain(again)) == 2


# -- append-only -----------------------------------------------------------------------------

CHANGES = (
    "UPDATE traces SET body = '{}' WHERE seq = 2",
    "UPDATE traces SET protected = 0",
    "UPDATE traces SET seq = 9 WHERE seq = 3",
    "DELETE FROM traces WHERE seq = 3",
    "DELETE FROM traces",
)
OF_ONE_KIND = {
    "sqlite": (
        """
        INSERT OR REPLACE INTO traces
        SELECT run, seq, cell, bundle, condition, member, d1, d2, reason, 0, '{}', prev, hash
        FROM traces WHERE seq = 2
        """,
        "UPDATE OR REPLACE traces SET seq = 2 WHERE seq = 3",
    ),
    "postgresql": (
        "TRUNCATE traces",
        """
        INSERT INTO traces SELECT * FROM traces WHERE seq = 2
        ON CONFLICT (run, seq) DO UPDATE SET body = '{}'
        """,
    ),
}


async def test_the_database_refuses_to_change_or_delete_a_trace(
    engine: Engine, tmp_path: Path
) -> None:
    store = RunStore(tmp_path, engine, "one")
    await fill(store, 3)
    before = chain(store)
    for change in (*CHANGES, *OF_ONE_KIND[engine.dialect.name]):
        with pytest.raises(DBAPIError, match="append-only"), writing(engine) as connection:
            connection.execute(text(change))
    assert chain(store) == before


async def test_a_purge_is_the_one_exception(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "processes").mkdir(parents=True)
    store = RunStore(tmp_path, engine, "one")
    await fill(store, 3)
    other = RunStore(tmp_path, engine, "two")
    await fill(other, 2)
    before = list(store.traces())
    purge_run(engine, folder, "one", "2026-01-01T00:00:00Z")
    purge_run(engine, folder, "one", "2026-01-02T00:00:00Z")
    assert not folder.exists()
    after = TraceReader(engine).page("one", TraceFilter(), 0, 9)
    assert "secret" not in str(after)
    for old, new in zip(before, after, strict=True):
        assert (new.seq, new.prev, new.hash) == (old.seq, old.prev, old.hash)
        assert isinstance(new.body, PurgedTrace)
        assert new.body.d1.as_json() == {"outcome": "proposal", "rule": ""}
        assert new.body.d2 == old.body.d2
    with engine.connect() as connection:
        assert connection.execute(text("SELECT run, purged_at FROM purges")).all() == [
            ("one", "2026-01-01T00:00:00Z")
        ]
        assert not connection.execute(
            text("SELECT answer FROM attempts WHERE run = 'one' AND answer IS NOT NULL")
        ).all()
    chain(other)
    # Of a purged run, too, nothing but bodies may be changed.
    for change in ("UPDATE traces SET hash = 'x' WHERE run = 'one'", "DELETE FROM traces"):
        with pytest.raises(DBAPIError, match="append-only"), writing(engine) as connection:
            connection.execute(text(change))


async def test_what_is_purged_is_no_longer_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    engine = open_database(f"sqlite:///{path}")
    migrate(engine)
    await fill(RunStore(tmp_path, engine, "one"), 40)
    assert b"secret 7" in b"".join(file.read_bytes() for file in tmp_path.glob("kept.sqlite*"))
    purge_run(engine, tmp_path / "none", "one", "2026-01-01T00:00:00Z")
    assert b"secret 7" not in b"".join(file.read_bytes() for file in tmp_path.glob("kept.sqlite*"))
    engine.dispose()


# -- reading ---------------------------------------------------------------------------------


async def test_pages_are_cut_by_key_and_filtered(engine: Engine, tmp_path: Path) -> None:
    store = RunStore(tmp_path, engine, "one")
    store.bind(PLAN)
    async with store:
        for number in range(1, 8):
            invalid = number % 2 == 0
            given = trace(
                number,
                "invalid_state" if invalid else "authorized",
                "state_unmet" if number == 4 else "",
            )
            await store.traced(given)
    reader = TraceReader(engine)

    def seqs(after: int = 0, limit: int = 100, **wanted: Any) -> list[int]:
        rows = reader.page("one", TraceFilter(**wanted), after, limit)
        return [row.seq for row in rows]

    assert seqs(limit=3) == [1, 2, 3]
    assert seqs(after=3, limit=3) == [4, 5, 6]
    assert seqs(after=2**53 - 1) == []
    assert seqs(member="invalid_state") == [2, 4, 6]
    assert seqs(member="invalid_state", after=2, limit=1) == [4]
    assert seqs(reason="state_unmet", d2="deny") == [4]
    assert seqs(protected=False, condition="B1", bundle="X") == [1, 3, 5, 7]
    assert seqs(bundle="Y") == []
    assert reader.one("one", 3).body == trace(3)
    with pytest.raises(KeyError):
        reader.one("one", 8)
    assert stage_counts(engine, "one") == {
        "d1_proposal": 7,
        "d2_allow": 6,
        "d2_deny": 1,
        "d3_protected": 3,
    }
    assert stage_counts(engine, "none") == {"d3_protected": 0}


# -- fences ----------------------------------------------------------------------------------


async def test_who_lost_the_lease_writes_nothing_more(engine: Engine, tmp_path: Path) -> None:
    registry = Registry(engine)
    registry.add(NewRun("one", "me", "plan", "{}", "X", "plain", "B4", 8, "2026-01-01"), None)
    assert registry.claim("first", 0, 5) == "one"

    def fence(connection: Connection) -> None:
        if not hold(connection, "one", "first"):
            raise RetireError("lost")

    store = RunStore(tmp_path, engine, "one", fence)
    store.bind(PLAN)
    async with store:
        await store.traced(trace(1))
        assert registry.claim("second", 6, 5) == "one"
        with pytest.raises(RetireError, match="lost"):
            await store.traced(trace(2))
        with pytest.raises(RetireError, match="lost"):
            await store.started("t", "c")
    again = RunStore(tmp_path, engine, "one")
    assert again.done() == {key(1)}
    assert again.attempts() == 0


def test_a_lease_cannot_be_taken_between_the_look_at_it_and_the_commit(engine: Engine) -> None:
    registry = Registry(engine)
    registry.add(NewRun("one", "me", "plan", "{}", "X", "plain", "B4", 8, "2026-01-01"), None)
    assert registry.claim("first", 0, 5) == "one"
    order: list[str] = []
    taking = threading.Thread(
        target=lambda: order.append(f"claimed {registry.claim('second', 99, 5)}")
    )
    with writing(engine) as connection:
        assert hold(connection, "one", "first")
        taking.start()
        taking.join(0.5)
        order.append("written")
    taking.join(30)
    assert order == ["written", "claimed one"]
    with writing(engine) as connection:
        assert not hold(connection, "one", "first")
