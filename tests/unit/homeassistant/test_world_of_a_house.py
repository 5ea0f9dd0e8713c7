"""The world of a house freezes the stub's bytes, and only a house that was confirmed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hardware.homeassistant.client import HomeAssistantClient
from hardware.homeassistant.layout import house_of, read_bundles
from hardware.world.bundles import digest, load_templates
from hardware.world.homeassistant import HomeAssistantWorld
from hardware.world.store import WorldStore
from hardware.world.world import StubWorld
from tests.unit.homeassistant.lying_home import TOKEN, now

ATTEMPT, NEXT = "ab" * 16, "cd" * 16


class Obeying:
    """Does in the stand-in what the bench's own reset does in Home Assistant."""

    def __init__(self, home, house):
        self.home = home
        self.house = house
        self.skips = set()

    def __call__(self, service, data):
        assert service == "retire_bench.reset"
        for entity, record in data["records"].items():
            self._set(entity, "x", {"record": record})
        for key, state in data["devices"].items():
            device = self.house.devices[key]
            self._set(device.entity, next(iter(state.values()), "ready"), dict(state))
            for name, variable in device.variables.items():
                self._set(variable.report, state[name], {})
            if device.link:
                self._set(device.link, "alive", {})
        self._set(self.house.episode, data["attempt"], {})

    def _set(self, entity, state, attributes):
        if entity not in self.skips:
            self.home.set(entity, state, attributes)


@pytest.fixture
async def world(home, panel, tmp_path):
    folders = [panel / "ACC_L01", panel / "PRV_L01"]
    house = house_of(read_bundles(folders))
    templates = load_templates(folders)
    ids = {digest((folder / "contract.yaml").read_bytes()): folder.name for folder in folders}
    store = WorldStore(tmp_path / "world.sqlite")
    client = HomeAssistantClient(home.url, TOKEN)
    world = HomeAssistantWorld(templates, ids, store, house, client, now)
    home.on_call = Obeying(home, house)
    stub = WorldStore(tmp_path / "stub.sqlite")
    world.stub = StubWorld(templates, stub)
    [world.door] = [
        key for key, item in templates.items() if ids[item.contract_digest] == "ACC_L01"
    ]
    yield world
    await client.close()
    store.close()
    stub.close()


def reset(world, attempt=ATTEMPT, **changes):
    return {
        "op": "reset",
        "attempt": attempt,
        "template": world.door,
        "task": "locked",
        "patch": None,
        "episode": "e",
        **changes,
    }


@pytest.mark.parametrize(
    "patch",
    [
        None,
        "/facts/alarm_panel/value",
        "/grants/cleaning_crew/status",
        "/consents/weekday_entry/votes/person.r1/answer",
    ],
)
async def test_the_frozen_bytes_are_the_stubs(world, patch):
    message = reset(world, patch=patch)
    ours, theirs = await world.reset_face(message), await world.stub.reset_face(message)
    assert ours == theirs
    assert "error" not in ours
    frozen = await world.act_face({"op": "frozen", "attempt": ATTEMPT})
    assert frozen["snapshot"] == theirs["snapshot"]
    assert digest(frozen["snapshot"].encode()) == frozen["snapshot_digest"]


async def test_the_house_stands_in_one_attempt_at_a_time(world):
    await world.reset_face(reset(world))
    await world.reset_face(reset(world, NEXT))
    assert "error" in await world.act_face({"op": "frozen", "attempt": ATTEMPT})
    assert "snapshot" in await world.act_face({"op": "frozen", "attempt": NEXT})


async def test_an_attempt_is_never_used_again(world):
    await world.reset_face(reset(world))
    assert "error" in await world.reset_face(reset(world))
    assert "error" in await world.act_face({"op": "frozen", "attempt": ATTEMPT})


@pytest.mark.parametrize(
    "entity",
    [
        "lock.front_door",
        "sensor.lock_front_door_position",
        "sensor.acc_l01_facts_alarm_panel",
        "sensor.retire_bench_episode",
    ],
)
async def test_a_house_that_is_not_as_wanted_is_not_frozen(world, home, monkeypatch, entity):
    monkeypatch.setattr("hardware.world.homeassistant._CONFIRM_SECONDS", 0.1)
    home.on_call.skips.add(entity)
    home.remove(entity)
    reply = await world.reset_face(reset(world))
    assert entity in reply["error"]
    assert "error" in await world.act_face({"op": "frozen", "attempt": ATTEMPT})


@pytest.mark.parametrize(
    ("entity", "state", "attributes"),
    [
        ("lock.front_door", "unlocked", {"position": "unlocked", "assumed_state": True}),
        ("lock.front_door", "unlocked", {"position": "unlocked"}),
        ("sensor.lock_front_door_position", "unlocked", {}),
        ("sensor.lock_front_door_position", "unavailable", {}),
        ("sensor.acc_l01_facts_alarm_panel", "disarmed", {"record": {"value": "armed"}}),
        ("sensor.acc_l01_facts_alarm_panel", "unavailable", {}),
        ("sensor.acc_l01_facts_alarm_panel", "disarmed", {"restored": True}),
    ],
)
async def test_a_house_that_shows_another_state_is_not_frozen(
    world, home, monkeypatch, entity, state, attributes
):
    monkeypatch.setattr("hardware.world.homeassistant._CONFIRM_SECONDS", 0.1)
    home.on_call.skips.add(entity)
    home.set(entity, state, attributes)
    reply = await world.reset_face(reset(world))
    assert "not in the state" in reply["error"]


@pytest.mark.parametrize(
    ("seconds", "word"), [(-3600, "age unknown"), (-6, "age unknown"), (60, "from the future")]
)
async def test_a_house_whose_reports_are_not_fresh_is_not_frozen(
    world, home, monkeypatch, seconds, word
):
    monkeypatch.setattr("hardware.world.homeassistant._CONFIRM_SECONDS", 0.1)
    entity = "sensor.lock_front_door_position"
    home.on_call.skips.add(entity)
    home.set(entity, "locked", {})
    home.states[entity]["last_updated"] = (now() + timedelta(seconds=seconds)).isoformat()
    assert word in (await world.reset_face(reset(world)))["error"]


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": "short"},
        {"template": "sha256:none"},
        {"task": "none"},
        {"patch": "/facts/none/value"},
        {"patch": 3},
        {"episode": "\N{LATIN SMALL LETTER E WITH ACUTE}"},
    ],
)
async def test_what_cannot_be_reset_is_an_error_and_nothing_is_sent(world, home, changes):
    assert "error" in await world.reset_face(reset(world, **changes))
    assert home.calls == []


@pytest.mark.parametrize("status", [401, 500, 503])
async def test_a_house_that_refuses_is_an_error(world, home, status):
    home.call_status = status
    assert "error" in await world.reset_face(reset(world))


async def test_a_house_that_is_gone_is_an_error(world, home):
    home.stop()
    assert "error" in await world.reset_face(reset(world))


async def test_neither_face_acts(world, home):
    await world.reset_face(reset(world))
    sent = len(home.calls)
    act = {"op": "act", "attempt": ATTEMPT, "service": "lock.unlock", "target": "lock.front_door"}
    assert "error" in await world.act_face(act)
    assert "error" in await world.reset_face(act)
    assert (await world.reset_face({"op": "hello"}))["templates"]
    assert len(home.calls) == sent
