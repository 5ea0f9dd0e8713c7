"""What the observer says of a journal agrees with a slow reading of the same journal."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observer.effect import JournalEntry, load_effect
from observer.sighting import judge

pytestmark = pytest.mark.property

TARGETS = st.sampled_from(["lock.front", "lock.back"])
VARIABLES = st.sampled_from(["lock", "level"])
VALUES = st.sampled_from(
    ["open", "Open", "shut", "26", "26.0", "25.9", "26.1", "", "26 C", "\uff12"]
)
FIELDS = st.dictionaries(
    st.sampled_from(["who", "how"]), st.sampled_from(["ann", "bo", "1", "1.0"])
)
ENTRIES = st.one_of(
    st.builds(
        dict,
        kind=st.just("change"),
        target=TARGETS,
        variable=VARIABLES,
        before=VALUES,
        after=st.one_of(VALUES, st.none()),
    ),
    st.builds(
        dict,
        kind=st.just("event"),
        target=TARGETS,
        event=st.sampled_from(["opened", "closed"]),
        fields=FIELDS,
    ),
)
EVENTS = st.builds(
    dict,
    kind=st.just("event"),
    target=TARGETS,
    event=st.sampled_from(["opened", "closed"]),
    fields=FIELDS,
)
INTENDED = st.one_of(
    st.builds(dict, kind=st.just("state"), target=TARGETS, variable=VARIABLES, value=VALUES), EVENTS
)
BOUND = st.sampled_from([{"at_least": 26}, {"above": 26}, {"above": 25.9}])
PROTECTED = st.one_of(
    st.builds(dict, kind=st.just("transition"), target=TARGETS, variable=VARIABLES, to=VALUES),
    st.builds(
        dict, kind=st.just("threshold"), target=TARGETS, variable=VARIABLES, unit=st.just("C")
    ).flatmap(lambda item: BOUND.map(lambda bound: {**item, **bound})),
    EVENTS,
)


def as_number(text):
    plain = text is not None and text.isascii() and text.replace(".", "", 1).isdigit()
    return Fraction(text) if plain else None


def equal(left, right):
    if as_number(left) is not None and as_number(right) is not None:
        return as_number(left) == as_number(right)
    return left == right


def event_matches(entry, wanted):
    if (entry["kind"], entry["target"]) != ("event", wanted["target"]):
        return False
    if entry["event"] != wanted["event"]:
        return False
    return all(equal(entry["fields"].get(key), value) for key, value in wanted["fields"].items())


def change_of(entry, wanted):
    named = (entry["kind"], entry["target"], entry.get("variable"))
    return named == ("change", wanted["target"], wanted["variable"])


def harmful(entry, wanted):
    if wanted["kind"] == "event":
        return event_matches(entry, wanted)
    if not change_of(entry, wanted):
        return False
    if wanted["kind"] == "transition":
        return equal(entry["after"], wanted["to"])
    number = as_number(entry["after"])
    if number is None:
        return True
    if "above" in wanted:
        return number > Fraction(str(wanted["above"]))
    return number >= Fraction(str(wanted["at_least"]))


def reached(entries, wanted):
    if wanted["kind"] == "event":
        return any(event_matches(entry, wanted) for entry in entries)
    changes = [entry for entry in entries if change_of(entry, wanted)]
    return bool(changes) and equal(changes[-1]["after"], wanted["value"])


@settings(max_examples=400, deadline=None)
@given(INTENDED, PROTECTED, st.lists(ENTRIES, max_size=6))
def test_both_readings_of_a_journal_agree(intended, protected, entries):
    file = {
        "schema": "retire.effect/v1",
        "bundle": "X",
        "intended": intended,
        "protected": protected,
    }
    effect = load_effect(json.dumps(file).encode(), "effect.yaml")
    journal = [
        JournalEntry.model_validate({"seq": seq, "attempt": "a", **entry})
        for seq, entry in enumerate(entries, start=1)
    ]
    sighting = judge(effect, "d", "a", journal)
    expected = tuple(seq for seq, entry in enumerate(entries, start=1) if harmful(entry, protected))
    assert sighting.protected_seqs == expected
    assert sighting.protected == bool(expected)
    assert sighting.intended == reached(entries, intended)
    assert sighting.complete
