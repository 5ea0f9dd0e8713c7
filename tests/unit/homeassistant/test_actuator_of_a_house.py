"""The actuator sends one request for one literal entity, or nothing at all."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from hardware.actuate.homeassistant import WORLD_FAILED, HomeAssistantActuator
from hardware.homeassistant.client import HomeAssistantClient
from hardware.homeassistant.errors import HomeAssistantError
from hardware.homeassistant.websocket import check_token, registry
from sink.decision import Action
from sink.ports import ActStatus
from tests.unit.homeassistant.lying_home import TOKEN, LyingHome
from tests.unit.homeassistant.small_house import BOLT, EPISODE, RECORD, access, described

ATTEMPT = "ab" * 16
UNLOCK = Action("lock.unlock", "lock.front_door", {})


class FrozenWorld:
    """Answers as the world's act face does."""

    def __init__(self, facts):
        self.facts = facts

    async def ask(self, message):
        if message["attempt"] != ATTEMPT:
            return {"error": "no such attempt"}
        sections = {"grants": {}, "consents": {}, "versions": {}, "facts": self.facts}
        return {
            "snapshot": json.dumps(sections),
            "snapshot_digest": "sha256:0",
            "episode": "e",
            "contract": "sha256:c",
            "revision": 1,
        }


class Acting:
    """An actuator over a house, with the episode frozen."""

    def __init__(self, home, *, approved=False, **changes):
        self.home = home
        self.approved = approved
        self.changes = changes
        self.facts = {"alarm": RECORD}

    async def __aenter__(self):
        given = access(self.home, self.changes)
        self.client = HomeAssistantClient(given.url, given.token, 0.5)
        pinned = await registry(given.url, given.token)
        world = FrozenWorld(self.facts)
        self.actuator = HomeAssistantActuator(
            world, given, self.client, {"sha256:c": "DOOR"}, pinned, approved=self.approved
        )
        self.home.set(EPISODE, ATTEMPT)
        await self.actuator.frozen(ATTEMPT)
        return self.actuator

    async def __aexit__(self, *_):
        await self.client.close()


async def test_an_act_is_one_call_for_one_entity_and_proves_nothing(home):
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.DONE
    assert "acknowledged only" in result.detail
    assert "records read at most" in result.detail
    assert home.calls == [("lock.unlock", {"entity_id": "lock.front_door"})]
    assert home.states["lock.front_door"]["state"] == "locked"


async def test_an_unknown_attempt_is_a_lookup_error(home):
    async with Acting(home) as actuator:
        with pytest.raises(LookupError):
            await actuator.frozen("cd" * 16)
        result = await actuator.act("cd" * 16, 1, UNLOCK)
    assert (result.status, result.detail, home.calls) == (ActStatus.REFUSED, "revision", [])


@pytest.mark.parametrize(
    "target",
    [
        "",
        "ALL",
        "all",
        "LOCK.Front_Door",
        "loc\u212a.front_door",
        "lock.front_door\n",
        "lock.front_\uff11",
        "lock.fr\u043ent_door",
        "lock.front\u200b_door",
        "lock.front_door/../light.a",
        "lock.frnt_door",
        "lock.a, lock.b",
        "lock.*",
        "group.front",
        "['lock.front_door']",
        "climate.den",
        "ground_floor",
    ],
)
async def test_a_target_that_is_not_the_one_literal_id_is_never_sent(home, target):
    async with Acting(home) as actuator:
        for result in (
            await actuator.act(ATTEMPT, 1, Action("lock.unlock", target, {})),
            await actuator.act_unmonitored(ATTEMPT, "lock.unlock", target, {}),
        ):
            assert result.status is ActStatus.REFUSED
    assert home.calls == []


@pytest.mark.parametrize(
    ("service", "parameters"),
    [
        ("homeassistant.turn_on", {}),
        ("lock.open", {}),
        ("climate.set_temperature", {"temperature": 21}),
        ("lock.unlock", {"entity_id": "lock.b"}),
        ("lock.unlock", {"entity_id ": "lock.b"}),
        ("lock.unlock", {"area_id": "ground_floor"}),
        ("lock.unlock", {"device_id": "d"}),
        ("lock.unlock", {"code": 42}),
    ],
)
async def test_a_service_that_the_house_does_not_list_is_never_sent(home, service, parameters):
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, Action(service, "lock.front_door", parameters))
    assert result.status is ActStatus.REFUSED
    assert home.calls == []


async def set_to(home, value, **changes):
    async with Acting(home, **changes) as actuator:
        action = Action("climate.set_temperature", "climate.den", {"temperature": value})
        return await actuator.act(ATTEMPT, 1, action)


async def test_a_number_goes_out_as_it_is(home):
    assert (await set_to(home, Decimal("22.5"))).status is ActStatus.DONE
    sent = {"entity_id": "climate.den", "temperature": 22.5}
    assert home.calls == [("climate.set_temperature", sent)]


@pytest.mark.parametrize("value", [Decimal(200), Decimal(29), Decimal("22.7"), "21", True])
async def test_a_number_out_of_bounds_is_refused_by_us(home, value):
    """29 lies in the contract's bounds and beyond what the entity itself says it takes."""
    assert (await set_to(home, value)).status is ActStatus.REFUSED
    assert home.calls == []


async def test_a_unit_is_bound_to_its_number(home):
    home.unit = "\N{DEGREE SIGN}F"
    result = await set_to(home, Decimal(21))
    assert result.status is ActStatus.REFUSED
    assert result.detail.startswith(WORLD_FAILED)
    assert home.calls == []


@pytest.mark.parametrize(
    ("attributes", "state", "word"),
    [({}, "unavailable", "unavailable"), ({"restored": True}, "locked", "restored")],
)
async def test_an_entity_that_is_not_there_is_not_called(home, attributes, state, word):
    home.set("lock.front_door", state, attributes)
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.REFUSED
    assert result.detail.startswith(WORLD_FAILED)
    assert word in result.detail
    assert home.calls == []


async def test_a_ghost_is_missing(home):
    home.remove("lock.front_door")
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.REFUSED
    assert "missing" in result.detail
    assert home.calls == []


async def test_an_id_that_now_names_another_device_is_not_called(home):
    async with Acting(home) as actuator:
        home.registry["lock.front_door"] = "another"
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
        del home.registry["lock.front_door"]
        gone = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert (result.status, gone.status) == (ActStatus.REFUSED, ActStatus.REFUSED)
    assert home.calls == []


@pytest.mark.parametrize(
    "record",
    [
        {**RECORD, "value": "on"},
        {**RECORD, "version": 2},
        {**RECORD, "reported_at": "2026-01-01T00:00:01Z"},
        {**RECORD, "extra": 1},
        None,
    ],
)
async def test_a_governed_record_that_changed_since_the_freeze_stops_the_act(home, record):
    async with Acting(home) as actuator:
        home.set("sensor.door_facts_alarm", "off", {"record": record})
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert (result.status, result.detail) == (ActStatus.REFUSED, "revision")
    assert home.calls == []


async def test_a_governed_record_that_cannot_be_read_stops_the_act(home):
    async with Acting(home) as actuator:
        home.set("sensor.door_facts_alarm", "unavailable")
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.REFUSED
    assert result.detail.startswith(WORLD_FAILED)
    assert home.calls == []


async def test_the_unmonitored_way_compares_nothing_and_needs_a_bench(home):
    async with Acting(home) as actuator:
        home.set("sensor.door_facts_alarm", "on", {"record": {}})
        result = await actuator.act_unmonitored(ATTEMPT, "lock.unlock", "lock.front_door", {})
    assert result.status is ActStatus.DONE
    async with Acting(home, bench=False) as actuator:
        result = await actuator.act_unmonitored(ATTEMPT, "lock.unlock", "lock.front_door", {})
    assert result.status is ActStatus.REFUSED
    assert len(home.calls) == 1


async def test_the_unmonitored_way_needs_an_attempt_in_which_the_house_stands(home):
    async with Acting(home) as actuator:
        result = await actuator.act_unmonitored("cd" * 16, "lock.unlock", "lock.front_door", {})
    assert result.status is ActStatus.REFUSED
    assert home.calls == []


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_server_error_leaves_the_act_in_doubt_and_is_sent_once(home, status):
    home.call_status = status
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.IN_DOUBT
    assert len(home.calls) == 1


async def test_a_call_without_an_answer_is_in_doubt_and_sent_once(home):
    home.call_seconds = 2.0
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.IN_DOUBT
    assert len(home.calls) == 1


@pytest.mark.parametrize("status", [400, 404])
async def test_a_clean_refusal_is_a_refusal(home, status):
    home.call_status = status
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.REFUSED
    assert not result.detail.startswith(WORLD_FAILED)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_token_is_the_worlds_failure_and_never_told(home, status):
    home.call_status = status
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.REFUSED
    assert result.detail.startswith(WORLD_FAILED)
    assert TOKEN not in result.detail
    assert len(home.calls) == 1


@pytest.mark.parametrize("status", [401, 404, 500, 503])
async def test_what_cannot_be_read_again_is_not_acted_on(home, status):
    async with Acting(home) as actuator:
        home.read_status = status
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.REFUSED
    assert result.detail.startswith(WORLD_FAILED)
    assert home.calls == []


async def test_a_house_that_is_gone_is_not_acted_on(home):
    async with Acting(home) as actuator:
        home.stop()
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.REFUSED
    assert result.detail.startswith(WORLD_FAILED)


async def test_a_refused_token_does_not_start(home):
    home.refuses = True
    with pytest.raises(HomeAssistantError) as caught:
        await registry(home.url, TOKEN)
    assert TOKEN not in str(caught.value)


async def test_report_times_that_were_not_sent_are_not_made_up(home):
    home.set(BOLT, "locked", {})
    client = HomeAssistantClient(home.url, TOKEN)
    found = (await client.states())[BOLT]
    await client.close()
    assert found.reported is None
    assert found.updated is not None


async def test_an_act_for_another_attempt_than_the_houses_is_not_sent(home):
    async with Acting(home) as actuator:
        for standing in ("cd" * 16, "resetting", "unavailable"):
            home.set(EPISODE, standing)
            for result in (
                await actuator.act(ATTEMPT, 1, UNLOCK),
                await actuator.act_unmonitored(ATTEMPT, "lock.unlock", "lock.front_door", {}),
            ):
                assert result.status is ActStatus.REFUSED
                assert result.detail.startswith(WORLD_FAILED)
    assert home.calls == []


async def test_an_approved_target_is_an_entity_and_no_name_of_the_house(home):
    devices = described()["devices"]
    devices["lock.side_door"] = devices.pop("lock.front_door")
    changes = {"devices": devices, "bundle_devices": {}, "approved": True}
    async with Acting(home, **changes) as actuator:
        by_name = await actuator.act(ATTEMPT, 1, Action("lock.unlock", "lock.side_door", {}))
        assert (by_name.status, home.calls) == (ActStatus.REFUSED, [])
        assert (await actuator.act(ATTEMPT, 1, UNLOCK)).status is ActStatus.DONE
    assert home.calls == [("lock.unlock", {"entity_id": "lock.front_door"})]


@pytest.fixture
def other_place():
    """Another home, where nothing may arrive."""
    other = LyingHome().start()
    yield other
    other.stop()


async def test_no_proxy_of_the_environment_sees_the_token_or_the_call(
    home, other_place, monkeypatch
):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other_place.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.DONE
    assert len(home.calls) == 1
    assert (other_place.paths, other_place.calls) == ([], [])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_call_that_is_sent_elsewhere_is_in_doubt_and_goes_nowhere(
    home, other_place, status
):
    home.call_status, home.elsewhere = status, other_place.url
    async with Acting(home) as actuator:
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
    assert result.status is ActStatus.IN_DOUBT
    assert len(home.calls) == 1
    assert (other_place.paths, other_place.calls) == ([], [])


async def test_a_reading_that_is_sent_elsewhere_is_no_reading(home, other_place):
    async with Acting(home) as actuator:
        home.read_status, home.elsewhere = 307, other_place.url
        result = await actuator.act(ATTEMPT, 1, UNLOCK)
        with pytest.raises(HomeAssistantError):
            await check_token(home.url, TOKEN)
        home.socket_elsewhere = True
        with pytest.raises(HomeAssistantError):
            await registry(home.url, TOKEN)
    assert result.status is ActStatus.REFUSED
    assert (home.calls, other_place.paths, other_place.calls) == ([], [], [])
    assert other_place.greeted == 0
