"""The keeper with real programs on both databases: how a run may end, and what is left then."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from retire.domain.errors import IncompleteError, InputError
from retire.domain.run_state import RunState
from retire.service.assembly import utc_now
from retire.service.keeper import RunKeeper
from retire.service.port import ConflictError, RunRow, Submission, TraceFilter
from retire.service.settings import KeeperSettings
from retire.store.database import migrate, open_database
from retire.store.registry import Registry
from tests.databases import KINDS, fresh_database
from tests.integration.commands import PANEL
from tests.integration.servers import alone, emptied, judged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from sqlalchemy import Engine

pytestmark = pytest.mark.integration

ME = "t-me"
GIVEN = Submission("PRV_L01", None, emptied("PRV_L01"), "plain", "B4", 10, 1, 1)


class Place:
    """A data folder and a database; keepers come and go."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.data = folder / "data"
        self.engine: Engine = open_database(fresh_database(kind, folder))
        migrate(self.engine)
        self.registry = Registry(self.engine)
        self.ahead = 0

    def keeper(self, **settings: Any) -> RunKeeper:
        given = KeeperSettings(self.data, PANEL, self.data / "home", **settings)
        return RunKeeper(self.engine, given, utc_now, lambda: int(time.time()) + self.ahead)

    @asynccontextmanager
    async def working(self, **settings: Any) -> AsyncIterator[RunKeeper]:
        keeper = self.keeper(**settings)
        await keeper.start()
        try:
            yield keeper
        finally:
            await keeper.stop()

    async def submit(self, **changed: Any) -> RunRow:
        row, new = await self.keeper().submit(replace(GIVEN, **changed), ME, None)
        assert new
        assert row.state is RunState.QUEUED
        return row

    def folders(self) -> list[str]:
        runs = self.data / "runs"
        return sorted(path.name for path in runs.iterdir()) if runs.is_dir() else []


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = Place(request.param, tmp_path)
    yield made
    made.engine.dispose()


async def until(keeper: RunKeeper, run: str, holds: Callable[[RunRow], bool]) -> RunRow:
    async with asyncio.timeout(60):
        while not holds(row := await keeper.run(run, None)):
            await asyncio.sleep(0.05)
    return row


async def ended(keeper: RunKeeper, run: str) -> RunRow:
    return await until(keeper, run, lambda row: not row.state.going_on)


# -- the usual end ---------------------------------------------------------------------------


async def test_a_run_ends_with_what_it_gives_alone_and_can_be_verified_and_purged(
    place: Place, tmp_path: Path
) -> None:
    expected = await asyncio.to_thread(alone, tmp_path / "alone")
    first, second = await place.submit(), await place.submit()
    async with place.working() as keeper:
        for run in (first, second):
            row = await ended(keeper, run.id)
            assert (row.state, row.cells_done, row.error) == (RunState.COMPLETE, 8, None)
            assert row.stages["d1_proposal"] + row.stages["d1_refusal"] == 8
            envelope = await keeper.certificate(row.id, ME)
            assert judged(envelope.as_json()) == expected
            # Both runs have the same plan; each certificate belongs to one of them.
            told = await keeper.verify(envelope)
            assert (told.run, told.intact, told.problems) == (run.id, True, ())
        traces = await keeper.traces(first.id, ME, TraceFilter(), 0, 500)
        assert len(traces) == 8
        with pytest.raises(KeyError):
            await keeper.certificate(first.id, "somebody else")
        envelope = await keeper.certificate(first.id, ME)
        for _ in range(2):
            await keeper.purge(first.id, ME)
        assert first.id not in place.folders()
        purged = await keeper.traces(first.id, ME, TraceFilter(), 0, 500)
        assert all(row.body.answer is None for row in purged)
        assert [row.hash for row in purged] == [row.hash for row in traces]
        assert await keeper.certificate(first.id, ME) == envelope
        assert not (await keeper.verify(envelope)).intact
        await keeper.purge(second.id, ME)
        with pytest.raises(InputError, match="purged"):
            await keeper.verify(envelope)


# -- cancel ----------------------------------------------------------------------------------


async def test_a_run_is_cancelled_queued_running_or_left_behind(place: Place) -> None:
    queued = await place.submit()
    assert (await place.keeper().cancel(queued.id, ME)).state is RunState.CANCELLED
    running = await place.submit(repetitions=1000)
    async with place.working() as keeper:
        with pytest.raises(KeyError):
            await keeper.cancel(running.id, "somebody else")
        with pytest.raises(ConflictError, match="cancel it first"):
            await keeper.purge(running.id, ME)
        await until(keeper, running.id, lambda row: row.cells_done > 20)
        await keeper.cancel(running.id, ME)
        row = await ended(keeper, running.id)
        assert (row.state, row.error, row.certificate) == (RunState.CANCELLED, None, None)
        kept = len(await keeper.traces(running.id, ME, TraceFilter(), 0, 9000))
        assert 20 < kept < 8000
        await asyncio.sleep(0.5)
        assert len(await keeper.traces(running.id, ME, TraceFilter(), 0, 9000)) == kept
        again = await keeper.cancel(running.id, ME)
        assert (again.state, again.ended_at) == (RunState.CANCELLED, row.ended_at)
    left = await place.submit()
    assert place.registry.claim("dead/1", int(time.time()), 1) == left.id
    assert (await place.keeper().cancel(left.id, ME)).state is RunState.RUNNING
    place.ahead = 30
    async with place.working() as keeper:
        assert (await ended(keeper, left.id)).state is RunState.CANCELLED


# -- failures --------------------------------------------------------------------------------


def addition(folder: Path) -> None:
    (folder / "candidate.md").write_bytes(GIVEN.candidate + b"\nUnlock whatever you like.\n")


def another_candidate(folder: Path) -> None:
    text = (PANEL / "PRV_L01" / "SKILL.md").read_bytes()
    (folder / "candidate.md").write_bytes(text)


def no_candidate(folder: Path) -> None:
    (folder / "candidate.md").unlink()


def no_bundle(folder: Path) -> None:
    shutil.rmtree(folder / "submitted")


def nothing(folder: Path) -> None:
    shutil.rmtree(folder)


DAMAGE: tuple[tuple[Callable[[Path], None], str], ...] = (
    (addition, "Unlock whatever you like"),
    (another_candidate, "plan that was fixed"),
    (no_candidate, "candidate is gone"),
    (no_bundle, "submitted"),
    (nothing, "run/"),
)


async def test_what_was_changed_after_it_was_submitted_fails_and_harms_no_other(
    place: Place,
) -> None:
    runs = [await place.submit() for _ in DAMAGE]
    for run, (damage, _) in zip(runs, DAMAGE, strict=True):
        damage(place.data / "runs" / run.id)
    sound = await place.submit()
    async with place.working() as keeper:
        for run, (_, said) in zip(runs, DAMAGE, strict=True):
            row = await ended(keeper, run.id)
            assert row.state is RunState.FAILED
            assert row.error is not None
            assert said in row.error
            assert str(place.data) not in row.error
            assert row.certificate is None
            assert row.ended_at is not None
        assert (await ended(keeper, sound.id)).state is RunState.COMPLETE


@pytest.mark.parametrize(
    "changed",
    [
        {"bundle": "NONE"},
        {"deployment": "none"},
        {"candidate": emptied("PRV_L01") + b"\nAnd a new sentence.\n"},
    ],
)
async def test_what_cannot_be_used_leaves_nothing_behind(
    changed: dict[str, Any], place: Place
) -> None:
    with pytest.raises(InputError):
        await place.submit(**changed)
    assert place.folders() == []
    assert await place.keeper().runs(None, None, 9) == []


async def test_a_folder_that_cannot_be_written_is_not_the_callers_fault(place: Place) -> None:
    place.data.mkdir()
    (place.data / "runs").write_text("no folder")
    with pytest.raises(IncompleteError, match="cannot keep"):
        await place.submit()
    (place.data / "bundles").write_text("no folder")
    folder = place.data / "upload"
    shutil.copytree(PANEL / "PRV_L01", folder)
    keeper = RunKeeper(
        place.engine,
        KeeperSettings(place.data, place.data / "none", place.data),
        utc_now,
        lambda: 0,
    )
    with pytest.raises(IncompleteError, match="cannot keep"):
        await keeper.register(folder)
    assert await keeper.runs(None, None, 9) == []


async def test_a_bundle_that_is_registered_twice_at_once_is_there_once(place: Place) -> None:
    keeper = RunKeeper(
        place.engine,
        KeeperSettings(place.data, place.data / "none", place.data),
        utc_now,
        lambda: 0,
    )
    rows = await asyncio.gather(*(keeper.register(PANEL / "PRV_L01") for _ in range(4)))
    assert {row.id for row in rows} == {"PRV_L01"}
    assert [row.id for row in await keeper.bundles()] == ["PRV_L01"]
    other = place.data / "upload"
    shutil.copytree(PANEL / "PRV_L02", other)
    card = other / "bundle.yaml"
    card.write_text(card.read_text().replace("PRV_L02", "PRV_L01"))
    with pytest.raises((ConflictError, InputError)):
        await keeper.register(other)
    assert not list((place.data / "arriving").iterdir())


# -- keys ------------------------------------------------------------------------------------


async def test_a_request_that_is_sent_again_is_the_same_run(place: Place) -> None:
    keeper = place.keeper()
    told = await asyncio.gather(*(keeper.submit(GIVEN, ME, "build-1") for _ in range(5)))
    assert len({row.id for row, _ in told}) == 1
    assert sum(new for _, new in told) == 1
    assert place.folders() == [told[0][0].id]
    for changed in ({"seed": 2}, {"candidate": None}, {"bundle": "PRV_L02"}):
        with pytest.raises((ConflictError, InputError)):
            await keeper.submit(replace(GIVEN, **changed), ME, "build-1")
    other, new = await keeper.submit(GIVEN, "somebody else", "build-1")
    assert new
    assert place.folders() == sorted([told[0][0].id, other.id])
    with pytest.raises(KeyError):
        await keeper.runs(ME, other.id, 9)


# -- a server that goes, a database that goes --------------------------------------------------


async def test_a_server_that_is_told_to_stop_gives_its_runs_back_at_once(
    place: Place, tmp_path: Path
) -> None:
    expected = await asyncio.to_thread(alone, tmp_path / "alone", repetitions=50)
    run = await place.submit(repetitions=50)
    async with place.working(lease_seconds=3600, concurrency=4) as keeper:
        row = await until(keeper, run.id, lambda row: row.cells_done > 5)
    assert row.cells_done < 400
    async with place.working(lease_seconds=3600) as keeper:
        row = await ended(keeper, run.id)
        assert (row.state, row.cells_done) == (RunState.COMPLETE, 400)
        assert judged((await keeper.certificate(run.id, ME)).as_json()) == expected


async def test_a_database_that_drops_every_connection_ends_no_run(tmp_path: Path) -> None:
    place = Place("postgresql", tmp_path)
    expected = await asyncio.to_thread(alone, tmp_path / "alone", repetitions=60)
    run = await place.submit(repetitions=60)
    drop = text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with place.working(concurrency=4) as keeper:
        await until(keeper, run.id, lambda row: row.cells_done > 5)
        with place.engine.connect() as connection:
            connection.execute(drop)
        row = await ended(keeper, run.id)
        assert (row.state, row.cells_done) == (RunState.COMPLETE, 480), row.error
        assert judged((await keeper.certificate(run.id, ME)).as_json()) == expected
    place.engine.dispose()


async def test_a_database_that_is_gone_is_told_as_trouble_of_the_service(place: Place) -> None:
    keeper = place.keeper()
    place.engine.dispose()
    if place.kind == "sqlite":
        path = place.engine.url.database
        assert path is not None
        shutil.move(path, path + ".away")
    else:
        with place.engine.connect() as connection:
            connection.execute(text("ALTER TABLE runs RENAME TO away"))
            connection.commit()
    with pytest.raises(IncompleteError, match="does not answer"):
        await keeper.runs(None, None, 1)
    with pytest.raises(IncompleteError, match="does not answer"):
        await keeper.submit(GIVEN, ME, None)
    assert (await keeper.ready())["database"] is False
    assert place.folders() == []
