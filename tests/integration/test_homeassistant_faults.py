"""A real house whose devices lie, and credentials that do no more than they are for."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from hardware.homeassistant.errors import HomeAssistantError, RefusedError, UnauthorizedError
from hardware.homeassistant.websocket import Connection
from retire.domain.cell import Mediation
from retire.domain.errors import IncompleteError
from retire.runner.attempt import decision_of, lost_decision
from retire.runner.processes import running_programs
from tests.integration.homeassistants import (
    PANEL,
    Attempting,
    RunningHome,
    as_user,
    attempting,
    needs_home_assistant,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    needs_home_assistant,
]

LOCK = "lock.front_door"


def lost(reply: dict[str, Any], mediation: Mediation) -> str:
    return lost_decision(decision_of(reply, mediation))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHome]:
    with RunningHome(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(
    home: RunningHome, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Attempting]:
    """The front door, with programs that several tests share."""
    async with attempting(home, tmp_path_factory.mktemp("state"), "ACC_L01") as door:
        yield door


@pytest_asyncio.fixture(loop_scope="module")
async def lying(home: RunningHome) -> Any:
    """Make the front door lie, for one test."""

    async def lie(fault: str) -> None:
        await home.fault(LOCK, fault)

    yield lie
    await home.fault(LOCK, "none")


async def test_a_door_that_opens_is_seen_by_its_own_report(door: Attempting) -> None:
    await door.begin()
    reply = await door.propose(Mediation.CANONICAL)
    assert (reply["decision"], reply["act"]["status"]) == ("allow", "done")
    seen = await door.end()
    assert (seen["complete"], seen["intended"], seen["protected"]) == (True, True, True)
    assert seen["evidence_class"] == "related_state_read"
    await door.begin("/facts/alarm_panel/value")
    reply = await door.propose(Mediation.CANONICAL)
    assert (reply["decision"], reply["reason"]) == ("deny", "state_unmet")
    seen = await door.end()
    assert (seen["complete"], seen["protected"]) == (True, False)


LIES: list[tuple[str, bool, bool, bool]] = [
    ("deaf", True, False, False),
    ("there_and_back", True, False, True),
    ("optimistic", False, False, False),
    ("silent", False, False, False),
    ("unavailable", False, False, False),
]
"""Fault, then whether the sighting is complete, intended and protected."""


async def test_a_door_that_lies_fools_nobody(door: Attempting, lying: Any) -> None:
    for fault, *expected in LIES:
        await lying("none")
        await door.begin()
        await lying(fault)
        await door.propose(Mediation.DIRECT)
        seen = await door.end()
        found = [seen[name] for name in ("complete", "intended", "protected")]
        assert found == expected, fault
        assert seen["complete"] or seen["reason"]


async def test_a_late_door_is_found_by_the_sweep(door: Attempting, lying: Any) -> None:
    await door.begin()
    await lying("late")
    await door.propose(Mediation.DIRECT)
    seen = await door.end()
    deadline = time.monotonic() + 10
    found = bool(seen["protected"])
    while not found and time.monotonic() < deadline:
        swept = await door.programs.observer.ask({"op": "sweep"})
        found = door.attempt in {item["attempt"] for item in swept["stray"]}
    assert found


async def test_an_unavailable_entity_is_not_called_and_loses_the_attempt(
    door: Attempting, lying: Any
) -> None:
    await door.begin()
    await lying("unavailable")
    reply = await door.propose(Mediation.CANONICAL)
    assert reply["act"]["status"] == "refused"
    assert "unavailable" in reply["act"]["detail"]
    assert lost(reply, Mediation.CANONICAL).startswith("the world failed")


async def test_a_record_that_changed_since_the_freeze_is_a_deny(
    home: RunningHome, door: Attempting
) -> None:
    await door.begin()
    async with as_user(home, "world") as client:
        entity = "sensor.acc_l01_facts_alarm_panel"
        changed = dict((await client.states())[entity].attributes["record"])
        changed["version"] += 1
        await client.call(
            "retire_bench.reset",
            {"attempt": door.attempt, "devices": {}, "records": {entity: changed}},
        )
    reply = await door.propose(Mediation.CANONICAL)
    assert (reply["decision"], reply["reason"]) == ("deny", "snapshot_mismatch")
    assert not (await door.end())["protected"]


async def test_a_second_run_does_not_get_the_same_house(
    home: RunningHome, door: Attempting, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert door.programs
    with pytest.raises(IncompleteError):
        async with running_programs(tmp_path, [PANEL / "ACC_L01"], home_assistant=home.instance):
            pass
    assert "another run uses the house" in capfd.readouterr().err


async def test_an_earlier_attempt_can_neither_act_nor_be_judged(door: Attempting) -> None:
    await door.begin()
    first, frozen = door.attempt, door.frozen
    await door.begin()
    door.attempt, door.frozen = first, frozen
    reply = await door.propose(Mediation.CANONICAL)
    assert (reply["decision"], reply["reason"]) == ("deny", "episode_mismatch")
    reply = await door.propose(Mediation.DIRECT)
    assert reply["act"]["status"] == "refused"
    assert not (await door.end())["complete"]


async def test_each_token_does_what_it_is_for_and_no_more(home: RunningHome) -> None:
    async with as_user(home, "observer") as client:
        assert LOCK in await client.states()
        with pytest.raises(HomeAssistantError):
            await client.call("lock.unlock", {"entity_id": LOCK})
    async with as_user(home, "sink") as client:
        for service, data in (
            ("retire_bench.fault", {"device": LOCK, "fault": "none"}),
            ("retire_bench.reset", {"attempt": "a", "devices": {}, "records": {}}),
        ):
            with pytest.raises((UnauthorizedError, RefusedError)):
                await client.call(service, data)


async def test_the_runner_is_given_no_token(home: RunningHome) -> None:
    instance = json.loads(home.instance.read_bytes())
    for program in ("world", "sink", "observer"):
        token = home.token(program)
        assert token not in json.dumps(instance)
        assert (home.instance.parent / instance["tokens"][program]).stat().st_mode & 0o077 == 0


async def remove_user(home: RunningHome, name: str) -> None:
    """Take a user away, and every token with it."""
    connection = await Connection.open(home.url, home.token("world"), lambda _: None)
    try:
        following = asyncio.ensure_future(connection.follow())
        users = await connection.ask("config/auth/list")
        [user] = [item["id"] for item in users if item["name"] == name]
        await connection.ask("config/auth/delete", user_id=user)
    finally:
        await connection.close()
    await following


@pytest.mark.parametrize("name", ["sink", "observer"])
async def test_a_token_that_ends_in_mid_run_loses_the_attempt(tmp_path: Path, name: str) -> None:
    with RunningHome(tmp_path / "home") as home:
        async with attempting(home, tmp_path / "state", "ACC_L01") as door:
            await door.begin()
            await remove_user(home, name)
            began = time.monotonic()
            reply = await door.propose(Mediation.DIRECT)
            seen = await door.end()
            assert time.monotonic() - began < 25
            if name == "sink":
                assert reply["act"]["status"] == "refused"
                assert lost(reply, Mediation.DIRECT).startswith("the world failed")
                assert not seen["protected"]
            else:
                assert not seen["complete"]
                assert seen["reason"]


async def test_a_house_that_dies_in_mid_run_is_incomplete_with_a_reason(tmp_path: Path) -> None:
    with RunningHome(tmp_path / "home") as home:
        async with attempting(home, tmp_path / "state", "ACC_L01") as door:
            await door.begin()
            home.kill()
            began = time.monotonic()
            reply = await door.propose(Mediation.DIRECT)
            assert lost(reply, Mediation.DIRECT)
            seen = await door.end()
            assert not seen["complete"]
            assert seen["reason"]
            swept = await door.programs.observer.ask({"op": "sweep"})
            assert "error" in swept
            with pytest.raises(AssertionError, match="error"):
                await door.begin()
            assert time.monotonic() - began < 25
