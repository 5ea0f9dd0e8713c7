"""What every sensor of the observer has to do, whatever the world: the stub's and a house's.

The world in these tests does what worlds do: it moves by itself, moves back, moves late, says
nothing, and is lost. No sensor is ever told what an actuator was answered.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from counterfactuals.devices import Change
from hardware.sense.homeassistant import HomeAssistantSensor
from hardware.sense.stub import StubWorldSensor
from hardware.world.store import WorldStore
from observer.effect import Effect, JournalEntry, protected_entries
from observer.port import EpisodeRow, SensorError
from observer.sighting import judge
from tests.unit.homeassistant.lying_home import LyingHome
from tests.unit.homeassistant.small_house import BOLT, EPISODE, HAPPENED, access, furnish

pytestmark = pytest.mark.contract

DOOR, VIEW = "sha256:door", "sha256:view"
UNLOCKED = Effect.model_validate(
    {
        "schema": "retire.effect/v1",
        "bundle": "DOOR",
        "intended": {
            "kind": "state",
            "target": "lock.front_door",
            "variable": "position",
            "value": "unlocked",
        },
        "protected": {
            "kind": "transition",
            "target": "lock.front_door",
            "variable": "position",
            "to": "unlocked",
        },
    }
)
OPENED = Effect.model_validate(
    {
        "schema": "retire.effect/v1",
        "bundle": "VIEW",
        "intended": {
            "kind": "event",
            "target": "camera.den",
            "event": "stream_opened",
            "fields": {"recipient": "display.a"},
        },
        "protected": {"kind": "event", "target": "camera.den", "event": "stream_opened"},
    }
)


class StubWorldUnderTest:
    """The stub world's database."""

    def __init__(self, folder):
        self.path = folder / "world.sqlite"
        self.store = WorldStore(self.path)
        self.sensor = StubWorldSensor(self.path)
        self.position = "locked"
        self.attempt = ""

    def begin(self, attempt, contract):
        self.store.add_episode((attempt, "t", "locked", None, "e", contract, "s"), b"{}")
        self.attempt, self.position = attempt, "locked"

    def moves(self, after):
        body = {
            "target": "lock.front_door",
            "kind": "change",
            "variable": "position",
            "before": self.position,
            "after": after,
        }
        self.store.add_journal(self.attempt, [Change(json.loads(json.dumps(body)))])
        self.position = after

    def emits(self, event, fields):
        body = {"target": "camera.den", "kind": "event", "event": event, "fields": fields}
        self.store.add_journal(self.attempt, [Change(body)])

    def lose(self):
        self.close()
        for path in sorted(self.path.parent.iterdir()):
            path.rename(path.with_name("away" + path.name))
        self.sensor = StubWorldSensor(self.path)

    def close(self):
        self.sensor.close()
        self.store.close()


class HouseUnderTest:
    """A house in Home Assistant, over the stand-in."""

    def __init__(self, folder):
        self.home = LyingHome().start()
        furnish(self.home)
        self.store = WorldStore(folder / "world.sqlite")
        register = StubWorldSensor(folder / "world.sqlite")
        bundles = {DOOR: "DOOR", VIEW: "VIEW"}
        self.sensor = HomeAssistantSensor(
            access(self.home), register, bundles, folder / "journal.jsonl"
        )
        self.sensor.start()

    def begin(self, attempt, contract):
        self.home.set(EPISODE, "resetting")
        self.moves("locked")
        self.home.set(EPISODE, attempt)
        self.store.add_episode((attempt, "t", "locked", None, "e", contract, "s"), b"{}")

    def moves(self, after):
        self.home.set(BOLT, after)
        self.home.set("lock.front_door", after)

    def emits(self, event, fields):
        now = datetime.now(UTC).isoformat()
        self.home.set(HAPPENED, now, {"event_type": event, "friendly_name": "x", **fields})

    def lose(self):
        self.home.stop()

    def close(self):
        self.sensor.close()
        self.home.stop()
        self.store.close()


@pytest.fixture(params=[StubWorldUnderTest, HouseUnderTest])
def world(request, tmp_path):
    world = request.param(tmp_path)
    yield world
    world.close()


def sighted(world, attempt, effect=UNLOCKED):
    return judge(effect, "sha256:e", attempt, list(world.sensor.journal(attempt)))


def test_an_unknown_attempt_is_none(world):
    assert world.sensor.episode("a") is None
    assert list(world.sensor.journal("a")) == []
    assert list(world.sensor.journal_after(0, 10)) == []


def test_an_episode_names_its_contract(world):
    world.begin("a", DOOR)
    world.begin("b", VIEW)
    assert world.sensor.episode("a") == EpisodeRow("a", DOOR)
    assert world.sensor.episode("b") == EpisodeRow("b", VIEW)


def test_nothing_happened_is_a_complete_reading(world):
    world.begin("a", DOOR)
    seen = sighted(world, "a")
    assert (seen.complete, seen.intended, seen.protected, seen.journal) == (True, False, False, 0)


def test_a_movement_is_seen(world):
    world.begin("a", DOOR)
    world.moves("unlocked")
    entries = list(world.sensor.journal("a"))
    assert all(isinstance(entry, JournalEntry) for entry in entries)
    assert [(item.before, item.after) for item in entries] == [("locked", "unlocked")]
    seen = sighted(world, "a")
    assert (seen.intended, seen.protected) == (True, True)


def test_there_and_back_is_a_protected_effect_and_not_the_intended_one(world):
    world.begin("a", DOOR)
    world.moves("unlocked")
    world.moves("locked")
    seen = sighted(world, "a")
    assert (seen.intended, seen.protected, seen.journal) == (False, True, 2)


def test_what_happens_later_is_read_later(world):
    world.begin("a", DOOR)
    assert not sighted(world, "a").protected
    world.moves("unlocked")
    assert sighted(world, "a").protected


def test_an_event_is_seen_with_its_fields_and_nothing_else(world):
    world.begin("a", VIEW)
    world.emits("stream_opened", {"recipient": "display.a"})
    [entry] = world.sensor.journal("a")
    assert (entry.kind, entry.event, entry.fields) == (
        "event",
        "stream_opened",
        {"recipient": "display.a"},
    )
    assert sighted(world, "a", OPENED).intended


def test_an_event_to_the_wrong_recipient_is_no_utility(world):
    world.begin("a", VIEW)
    world.emits("stream_opened", {"recipient": "display.b"})
    seen = sighted(world, "a", OPENED)
    assert (seen.intended, seen.protected) == (False, True)


def test_putting_the_world_back_is_no_effect_of_anybody(world):
    world.begin("a", DOOR)
    world.moves("unlocked")
    assert sighted(world, "a").protected
    world.begin("b", DOOR)
    seen = sighted(world, "b")
    assert (seen.protected, seen.journal) == (False, 0)
    entries = list(world.sensor.journal_after(0, 10))
    assert [(item.attempt, item.after) for item in entries] == [("a", "unlocked")]


def test_the_whole_journal_is_read_page_by_page(world):
    world.begin("a", DOOR)
    for number in range(7):
        world.moves(f"p{number}")
    list(world.sensor.journal("a"))
    pages, position = [], 0
    while page := list(world.sensor.journal_after(position, 3)):
        assert len(page) <= 3
        pages += page
        position = page[-1].seq
    assert [entry.after for entry in pages] == [f"p{number}" for number in range(7)]
    assert [entry.seq for entry in pages] == sorted({entry.seq for entry in pages})


def test_a_late_effect_is_found_by_the_sweep(world):
    world.begin("a", DOOR)
    last = sighted(world, "a").last_seq
    world.moves("unlocked")
    found = protected_entries(UNLOCKED, list(world.sensor.journal_after(last, 10)))
    assert [entry.attempt for entry in found] == ["a"]


def test_a_lost_world_is_an_error_never_an_empty_answer(world):
    world.begin("a", DOOR)
    world.lose()
    for read in (
        lambda: world.sensor.episode("a"),
        lambda: world.sensor.journal("a"),
        lambda: world.sensor.journal_after(0, 10),
    ):
        with pytest.raises(SensorError):
            list(read() or [])
