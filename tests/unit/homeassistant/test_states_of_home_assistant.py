"""What a state says and whether it may be believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hardware.homeassistant.reading import (
    EntityState,
    Freshness,
    Usable,
    freshness,
    is_entity,
    state_of,
    text_of,
    usable,
)

NOW = datetime(2026, 3, 1, 18, 0, 0, tzinfo=UTC)


def at(text):
    return None if text is None else datetime.fromisoformat(f"2026-03-01T{text}+00:00")


@pytest.mark.parametrize(
    ("updated", "reported", "attributes", "expected"),
    [
        ("14:02:00", "17:59:50", {}, Freshness.FRESH),
        ("17:58:00", "17:58:00", {}, Freshness.STALE),
        ("17:58:01", "17:58:01", {}, Freshness.FRESH),
        ("17:59:40", None, {"restored": True}, Freshness.STALE),
        ("14:02:00", None, {}, Freshness.UNKNOWN),
        ("17:59:40", None, {}, Freshness.FRESH),
        ("09:00:00", None, {"source_type": "router"}, Freshness.UNKNOWN),
        (None, None, {}, Freshness.UNKNOWN),
        ("18:00:07", "18:00:07", {}, Freshness.FROM_THE_FUTURE),
        ("18:00:01", "18:00:01", {}, Freshness.FRESH),
    ],
)
def test_age_is_counted_from_the_report(updated, reported, attributes, expected):
    state = EntityState("sensor.x", "1", attributes, at(updated), at(reported))
    assert freshness(state, NOW, timedelta(seconds=120), timedelta(seconds=2)) is expected


@pytest.mark.parametrize(
    ("state", "attributes", "expected"),
    [
        ("locked", {}, Usable.YES),
        ("unavailable", {}, Usable.UNAVAILABLE),
        ("unavailable", {"restored": True}, Usable.RESTORED),
        ("unknown", {}, Usable.UNKNOWN),
        ("locked", {"assumed_state": True}, Usable.ASSUMED),
        ("locked", {"assumed_state": False, "restored": False}, Usable.YES),
    ],
)
def test_what_may_be_read(state, attributes, expected):
    assert usable(EntityState("lock.a", state, attributes)) is expected


def test_a_missing_state_is_missing():
    assert usable(None) is Usable.MISSING


@pytest.mark.parametrize(
    "text",
    [
        "LOCK.Front_Door",
        "loc\u212a.front_door",
        "lock.front_door\n",
        "lock.front_\uff11",
        "lock.fr\u043ent_door",
        "lock.front\u200b_door",
        "lock.front_door/../light.a",
        "lock.a, lock.b",
        "all",
        "ALL",
        "lock.*",
        "lock.",
        ".front",
        "lock",
        "",
        "lock.a.b",
    ],
)
def test_only_one_literal_id_is_an_entity(text):
    assert not is_entity(text)


@pytest.mark.parametrize("text", ["lock.front_door", "water_heater.main_tank", "sensor.a1"])
def test_a_literal_id_is_an_entity(text):
    assert is_entity(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (21.0, "21"),
        (22.5, "22.5"),
        ("26.0", "26"),
        ("-0.0", "0"),
        (True, "true"),
        ("locked", "locked"),
        ("1e3", "1e3"),
        (7, "7"),
        (None, "None"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_have_one_text(value, text):
    assert text_of(value) == text


def _json(**changes):
    return {
        "entity_id": "lock.a",
        "state": "locked",
        "attributes": {},
        "last_updated": "2026-03-01T18:00:00+00:00",
        "context": {"id": "c", "parent_id": None, "user_id": None},
        **changes,
    }


def test_a_state_without_report_time_has_none():
    state = state_of(_json())
    assert (state.updated, state.reported) == (NOW, None)
    assert state.report_time == NOW


@pytest.mark.parametrize(
    ("context", "by_call"),
    [
        ({"user_id": "u", "parent_id": None}, True),
        ({"user_id": None, "parent_id": "p"}, True),
        ({"user_id": None, "parent_id": None}, False),
        (None, False),
    ],
)
def test_who_wrote_a_state(context, by_call):
    assert state_of(_json(context=context)).by_call is by_call


@pytest.mark.parametrize(
    "changes",
    [
        {"state": 1},
        {"attributes": None},
        {"entity_id": None},
        {"context": "c"},
        {"last_updated": "yesterday"},
        {"last_updated": "2026-03-01T18:00:00"},
    ],
)
def test_a_state_of_another_form_is_refused(changes):
    with pytest.raises((TypeError, ValueError)):
        state_of(_json(**changes))
