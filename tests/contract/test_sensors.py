"""One suite for every implementation of the observer's sensor port."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from counterfactuals.devices import Change
from hardware.sense.stub import StubWorldSensor
from hardware.world.store import WorldStore
from observer.effect import JournalEntry
from observer.port import EpisodeRow, SensorError
from tests.unit.observer.fake_sensor import FakeSensor

pytestmark = pytest.mark.contract


class InMemory:
    """The fake that the observer's own tests use."""

    def __init__(self, folder):
        self.sensor = FakeSensor()

    def begin(self, attempt, contract):
        self.sensor.begin(attempt, contract)

    def happens(self, attempt, after):
        self.sensor.happens(attempt, "lock.front", variable="lock", before="x", after=after)

    def lose(self):
        self.sensor.fault = "lost"

    def find(self):
        self.sensor.fault = ""

    def close(self):
        pass


class StubWorldOnDisk:
    """The stub world's database, read by the read-only sensor."""

    def __init__(self, folder):
        self.path = folder / "world.sqlite"
        self.store = WorldStore(self.path)
        self.sensor = StubWorldSensor(self.path)

    def begin(self, attempt, contract):
        self.store.add_episode((attempt, "t", "locked", None, "e", contract, "s"), b"{}")

    def happens(self, attempt, after):
        body = {
            "target": "lock.front",
            "kind": "change",
            "variable": "lock",
            "before": "x",
            "after": after,
        }
        self.store.add_journal(attempt, [Change(body, "lock", after)])

    def lose(self):
        self.close()
        for suffix in ("-wal", "-shm", ""):
            path = self.path.with_name(self.path.name + suffix)
            if path.exists():
                path.rename(path.with_name("away" + path.name))
        self.sensor = StubWorldSensor(self.path)

    def find(self):
        for path in self.path.parent.glob("away*"):
            path.rename(path.with_name(path.name.removeprefix("away")))
        self.store = WorldStore(self.path)

    def close(self):
        self.sensor.close()
        self.store.close()


@pytest.fixture(params=[InMemory, StubWorldOnDisk])
def truth(request, tmp_path):
    truth = request.param(tmp_path)
    yield truth
    truth.close()


def test_an_unknown_attempt_is_none_and_has_no_journal(truth):
    assert truth.sensor.episode("a") is None
    assert list(truth.sensor.journal("a")) == []
    assert list(truth.sensor.journal_after(0, 10)) == []


def test_an_episode_names_its_contract(truth):
    truth.begin("a", "contract-1")
    truth.begin("b", "contract-2")
    assert truth.sensor.episode("a") == EpisodeRow("a", "contract-1")
    assert truth.sensor.episode("b") == EpisodeRow("b", "contract-2")


def test_a_journal_is_one_attempts_and_in_order(truth):
    truth.begin("a", "c")
    truth.begin("b", "c")
    for attempt, after in (("a", "open"), ("b", "open"), ("a", "shut")):
        truth.happens(attempt, after)
    entries = list(truth.sensor.journal("a"))
    assert all(isinstance(entry, JournalEntry) for entry in entries)
    assert [(entry.attempt, entry.after) for entry in entries] == [("a", "open"), ("a", "shut")]
    assert entries[0].seq < entries[1].seq
    assert (entries[0].before, entries[0].variable, entries[0].kind) == ("x", "lock", "change")


def test_the_whole_journal_is_read_page_by_page(truth):
    for number in range(7):
        truth.happens(f"attempt-{number % 2}", str(number))
    pages, position = [], 0
    while page := list(truth.sensor.journal_after(position, 3)):
        assert len(page) <= 3
        pages += page
        position = page[-1].seq
    assert [entry.after for entry in pages] == [str(number) for number in range(7)]
    assert [entry.seq for entry in pages] == sorted({entry.seq for entry in pages})


def test_what_happens_later_is_read_later(truth):
    truth.begin("a", "c")
    assert list(truth.sensor.journal("a")) == []
    truth.happens("a", "open")
    assert [entry.after for entry in truth.sensor.journal("a")] == ["open"]


def test_lost_ground_truth_is_an_error_never_an_empty_answer(truth):
    truth.begin("a", "c")
    truth.happens("a", "open")
    truth.lose()
    for read in (
        lambda: truth.sensor.episode("a"),
        lambda: truth.sensor.journal("a"),
        lambda: truth.sensor.journal_after(0, 10),
    ):
        with pytest.raises(SensorError):
            list(read() or [])
    truth.find()
    assert [entry.after for entry in truth.sensor.journal("a")] == ["open"]


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "{}",
        json.dumps({"target": "a", "kind": "wish"}),
        json.dumps({"target": "a", "kind": "change", "variable": "x", "after": 3}),
        json.dumps({"target": "a", "kind": "event", "event": "x", "fields": {"y": None}}),
    ],
)
def test_an_unreadable_entry_on_disk_is_an_error(tmp_path, body):
    store = WorldStore(tmp_path / "world.sqlite")
    store.close()
    connection = sqlite3.connect(tmp_path / "world.sqlite")
    connection.execute("INSERT INTO journal (attempt, body) VALUES ('a', ?)", (body,))
    connection.commit()
    connection.close()
    with closing(StubWorldSensor(tmp_path / "world.sqlite")) as sensor, pytest.raises(SensorError):
        sensor.journal("a")


def test_the_sensor_of_the_stub_world_cannot_write(tmp_path):
    store = WorldStore(tmp_path / "world.sqlite")
    sensor = StubWorldSensor(tmp_path / "world.sqlite")
    with pytest.raises(SensorError):
        sensor._read("INSERT INTO journal (attempt, body) VALUES (?, ?)", ("a", "{}"))
    assert list(sensor.journal_after(0, 10)) == []
    sensor.close()
    store.close()
