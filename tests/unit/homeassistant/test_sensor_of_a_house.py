"""A house that lies does not fool the observer: what cannot be believed is unobservable."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from hardware.sense.homeassistant import HomeAssistantSensor
from hardware.sense.stub import StubWorldSensor
from hardware.world.store import WorldStore
from observer.port import SensorError
from tests.unit.homeassistant.small_house import BOLT, EPISODE, HAPPENED, LINK, access

DOOR, VIEW = "sha256:door", "sha256:view"


class Watched:
    """A sensor over a lying house, with an attempt begun."""

    def __init__(self, home, folder, contract=DOOR):
        self.home = home
        self.folder = folder
        self.store = WorldStore(folder / "world.sqlite")
        self.contract = contract
        self.open()

    def open(self):
        register = StubWorldSensor(self.folder / "world.sqlite")
        bundles = {DOOR: "DOOR", VIEW: "VIEW"}
        self.sensor = HomeAssistantSensor(
            access(self.home), register, bundles, self.folder / "journal.jsonl"
        )
        self.sensor.start()

    def begin(self, attempt):
        self.home.set(EPISODE, "resetting")
        self.home.set(EPISODE, attempt)
        self.store.add_episode((attempt, "t", "locked", None, "e", self.contract, "s"), b"{}")

    def after(self):
        return [entry.after for entry in self.sensor.journal("a")]

    def refused(self):
        with pytest.raises(SensorError) as caught:
            self.sensor.journal("a")
        return str(caught.value)

    def close(self):
        self.sensor.close()
        self.store.close()


@pytest.fixture
def watched(home, tmp_path):
    watched = Watched(home, tmp_path)
    watched.begin("a")
    yield watched
    watched.close()


@pytest.fixture
def viewed(home, tmp_path):
    viewed = Watched(home, tmp_path, VIEW)
    viewed.begin("a")
    yield viewed
    viewed.close()


def test_a_quiet_house_is_read(watched):
    assert watched.after() == []


def test_what_a_call_wrote_is_no_movement(watched):
    """The controlling entity shows it, the bolt reports otherwise: they are at odds."""
    watched.home.set("lock.front_door", "unlocked", user="u-sink")
    assert "shown as unlocked and reported as locked" in watched.refused()


def test_an_assumed_state_cannot_be_judged_and_not_for_later_either(watched):
    watched.home.set("lock.front_door", "unlocked", {"assumed_state": True}, user="u-sink")
    watched.home.set("lock.front_door", "locked", {})
    assert "assumed" in watched.refused()


def test_a_report_that_a_call_wrote_is_no_report(watched):
    watched.home.beating.discard(BOLT)
    watched.home.set(BOLT, "unlocked", user="u-sink")
    watched.home.set("lock.front_door", "unlocked")
    watched.home.beating.add(BOLT)
    assert "written by a call" in watched.refused()
    assert list(watched.sensor.journal_after(0, 10)) == []


def test_a_lock_that_relocked_while_it_is_shown_open_cannot_be_judged(watched):
    watched.home.set("lock.front_door", "unlocked", {"assumed_state": True}, user="u-sink")
    watched.home.set(BOLT, "unlocked")
    watched.home.set(BOLT, "locked")
    assert watched.refused()
    assert [entry.after for entry in watched.sensor.journal_after(0, 9)] == ["unlocked", "locked"]


@pytest.mark.parametrize("entity", ["lock.front_door", BOLT, "climate.den"])
def test_a_device_that_was_away_for_a_moment_cannot_be_judged(watched, entity):
    before = watched.home.states[entity]["state"]
    watched.home.set(entity, "unavailable")
    watched.home.set(entity, before)
    assert "unavailable" in watched.refused()


def test_a_device_of_another_bundle_may_be_away(watched):
    watched.home.set("camera.den", "unavailable")
    assert watched.after() == []


@pytest.mark.parametrize("entity", ["lock.front_door", BOLT])
def test_a_device_that_is_gone_cannot_be_judged(watched, entity):
    watched.home.remove(entity)
    watched.home.beating.discard(entity)
    assert "missing" in watched.refused()


@pytest.mark.parametrize("entity", ["lock.front_door", BOLT])
def test_a_state_from_before_a_restart_cannot_be_judged(watched, entity):
    watched.home.set(entity, "locked", {"restored": True})
    assert "restored" in watched.refused()


def test_a_device_that_reports_nothing_any_more_is_silent(watched):
    watched.home.beating.discard(BOLT)
    assert "did not report" in watched.refused()


def test_the_last_event_shown_again_is_no_event(viewed):
    now = datetime.now(UTC).isoformat()
    opened = {"event_type": "stream_opened", "recipient": "display.a"}
    viewed.home.set(HAPPENED, now, opened)
    viewed.home.set(HAPPENED, now, {**opened, "friendly_name": "Den"})
    [entry] = viewed.sensor.journal("a")
    assert entry.fields == {"recipient": "display.a"}


@pytest.mark.parametrize("earlier", [timedelta(hours=1), timedelta(0)])
def test_an_event_that_is_not_later_is_no_event_and_a_doubt(viewed, earlier):
    now = datetime.now(UTC)
    past = (now - earlier).isoformat()
    opened = {"event_type": "stream_opened", "recipient": "display.a"}
    viewed.home.set(HAPPENED, now.isoformat(), opened)
    viewed.home.set(HAPPENED, past, {**opened, "recipient": "display.b"})
    assert "not later" in viewed.refused()
    [entry] = viewed.sensor.journal_after(0, 10)
    assert entry.fields == {"recipient": "display.a"}


@pytest.mark.parametrize("told", ["unknown", "some day", "2026-05-04T18:00:00"])
def test_an_event_without_a_time_that_counts_is_a_doubt(viewed, told):
    opened = {"event_type": "stream_opened", "recipient": "display.a"}
    viewed.home.set(HAPPENED, told, opened)
    assert "not later" in viewed.refused()


def test_two_events_with_equal_fields_are_two(viewed):
    for _ in range(2):
        now = datetime.now(UTC).isoformat()
        viewed.home.set(HAPPENED, now, {"event_type": "stream_opened", "recipient": "display.a"})
        time.sleep(0.002)
    assert len(viewed.sensor.journal("a")) == 2


def test_an_event_that_a_call_wrote_is_no_event(viewed):
    now = datetime.now(UTC).isoformat()
    viewed.home.set(HAPPENED, now, {"event_type": "stream_opened"}, user="u-sink")
    assert "written by a call" in viewed.refused()


def test_a_device_without_variables_has_to_report_too(viewed):
    assert list(viewed.sensor.journal("a")) == []
    viewed.home.beating.discard(LINK)
    assert "did not report" in viewed.refused()


def test_a_connection_that_was_lost_for_a_moment_leaves_a_gap(watched):
    watched.home.cut_sockets()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            watched.sensor.journal_after(0, 1)
            break
        except SensorError:
            time.sleep(0.05)
    assert "connection" in watched.refused()
    watched.begin("b")
    assert list(watched.sensor.journal("b")) == []


def connected_again(watched):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            return watched.sensor.journal_after(0, 1)
        except SensorError:
            time.sleep(0.05)
    raise AssertionError("no connection")


def test_an_attempt_that_began_during_a_gap_cannot_be_judged_either(watched):
    assert watched.after() == []
    watched.home.cut_sockets()
    watched.begin("b")
    connected_again(watched)
    # The attributes of its entity change; it begins no second time.
    watched.home.set(EPISODE, "b", {"friendly_name": "Episode"})
    for attempt in ("a", "b"):
        with pytest.raises(SensorError):
            watched.sensor.journal(attempt)
    watched.begin("c")
    assert list(watched.sensor.journal("c")) == []


def test_an_attempt_that_was_not_set_up_is_not_seen_to_begin(watched):
    watched.home.set(EPISODE, "b")
    watched.store.add_episode(("b", "t", "locked", None, "e", DOOR, "s"), b"{}")
    with pytest.raises(SensorError, match="beginning"):
        watched.sensor.journal("b")


def test_what_moved_during_a_gap_is_found(watched):
    watched.home.cut_sockets()
    watched.home.set(BOLT, "unlocked")
    watched.home.set("lock.front_door", "unlocked")
    deadline = time.monotonic() + 10
    found = []
    while not found and time.monotonic() < deadline:
        with suppress(SensorError):
            found = [entry.after for entry in watched.sensor.journal_after(0, 9)]
        time.sleep(0.05)
    assert found == ["unlocked"]
    assert "connection" in watched.refused()


def test_an_attempt_that_began_before_the_observer_did_cannot_be_judged(watched):
    watched.sensor.close()
    watched.open()
    assert "beginning" in watched.refused()


def test_the_journal_outlives_the_observer(watched):
    watched.home.set(BOLT, "unlocked")
    watched.home.set("lock.front_door", "unlocked")
    assert watched.after() == ["unlocked"]
    watched.sensor.close()
    watched.open()
    [entry] = watched.sensor.journal_after(0, 10)
    assert (entry.attempt, entry.after, entry.seq) == ("a", "unlocked", 1)


def test_a_torn_last_line_is_dropped_and_anything_else_is_refused(watched):
    watched.home.set(BOLT, "unlocked")
    watched.home.set("lock.front_door", "unlocked")
    assert watched.after() == ["unlocked"]
    watched.sensor.close()
    path = watched.folder / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq": 2')
    watched.open()
    assert len(watched.sensor.journal_after(0, 10)) == 1
    watched.sensor.close()
    path.write_bytes(b"nonsense\n" + whole)
    with pytest.raises(SensorError):
        watched.open()


def test_a_house_in_another_attempt_tells_nothing_of_this_one(watched):
    watched.begin("b")
    assert "another attempt" in watched.refused()


def test_a_refused_token_is_not_tried_again(home, tmp_path):
    home.refuses = True
    watched = Watched(home, tmp_path)
    try:
        with pytest.raises(SensorError, match="token"):
            watched.sensor.episode("a")
        home.refuses = False
        time.sleep(1.2)
        with pytest.raises(SensorError, match="token"):
            watched.sensor.episode("a")
    finally:
        watched.close()


def test_a_token_that_ended_is_noticed_though_the_connection_stays(watched):
    assert watched.after() == []
    watched.home.refuses = True
    assert "401" in watched.refused()
    with pytest.raises(SensorError):
        watched.sensor.episode("a")


@pytest.mark.parametrize("status", [500, 503])
def test_a_house_in_trouble_cannot_be_judged(watched, status):
    watched.home.read_status = status
    assert str(status) in watched.refused()


def test_an_event_that_cannot_be_read_puts_the_attempt_in_doubt(watched):
    watched.home.set(BOLT, "locked", {}, user=None)
    watched.home.states[BOLT]["last_updated"] = "no time"
    watched.home.set(EPISODE, "a")
    with pytest.raises(SensorError):
        watched.sensor.journal("a")


def test_a_house_that_does_not_answer_is_an_error_in_bounded_time(watched):
    watched.home.deaf = True
    began = time.monotonic()
    assert watched.refused()
    assert time.monotonic() - began < 30
