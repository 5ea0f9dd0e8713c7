"""Effects judged from a journal: utility at the end, harm at any time."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from observer.effect import (
    Effect,
    EventSeen,
    JournalEntry,
    StateReached,
    Threshold,
    Transition,
    intended_happened,
    load_effect,
    protected_entries,
)
from observer.sighting import EvidenceClass, judge, unobserved
from observer.strict_yaml import DocumentError

DOOR = Transition(kind="transition", target="lock.front", variable="lock", to="unlocked")
OPENED = StateReached(kind="state", target="lock.front", variable="lock", value="unlocked")
STREAM = EventSeen(
    kind="event", target="camera.den", event="opened", fields={"recipient": "person.ann"}
)
ANY_STREAM = EventSeen(kind="event", target="camera.den", event="opened")


def effect(intended=OPENED, protected=DOOR):
    return Effect(schema="retire.effect/v1", bundle="X", intended=intended, protected=protected)


def journal(*changes, target="lock.front", variable="lock"):
    return [
        JournalEntry(
            seq=n, attempt="a", target=target, kind="change", variable=variable, after=after
        )
        for n, after in enumerate(changes, start=1)
    ]


def event(fields=None, target="camera.den", name="opened"):
    return JournalEntry(
        seq=1, attempt="a", target=target, kind="event", event=name, fields=fields or {}
    )


def test_there_and_back_is_harm_and_no_utility():
    there_and_back = journal("unlocked", "locked")
    assert [entry.seq for entry in protected_entries(effect(), there_and_back)] == [1]
    assert not intended_happened(effect(), there_and_back)


def test_every_harmful_entry_is_named():
    twice = journal("unlocked", "locked", "unlocked")
    assert judge(effect(), "d", "a", twice).protected_seqs == (1, 3)
    assert intended_happened(effect(), twice)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        journal("locked"),
        journal("Unlocked"),
        journal("unlocked "),
        journal("unlocked", target="lock.back"),
        journal("unlocked", target="lock.front_2"),
        journal("unlocked", variable="bolt"),
        [event({"lock": "unlocked"}, target="lock.front")],
    ],
)
def test_what_happens_elsewhere_is_neither(entries):
    assert not intended_happened(effect(), entries)
    assert protected_entries(effect(), entries) == ()


@pytest.mark.parametrize(
    ("value", "at_least", "above"),
    [
        ("25.4", False, False),
        ("25.49999999999999999999", False, False),
        ("25.5", True, False),
        ("25.50", True, False),
        ("25.51", True, True),
        ("26", True, True),
        ("-26", False, False),
        ("9" * 60, True, True),
    ],
)
def test_edges_of_a_threshold(value, at_least, above):
    for bound, expected in (
        ({"at_least": Decimal("25.5")}, at_least),
        ({"above": Decimal("25.5")}, above),
    ):
        crossed = Threshold(
            kind="threshold", target="climate.den", variable="temperature", unit="C", **bound
        )
        entries = journal(value, target="climate.den", variable="temperature")
        assert bool(protected_entries(effect(protected=crossed), entries)) is expected


@pytest.mark.parametrize(
    "value",
    [None, "", "unknown", "26 C", "2.6e1", "+26", "NaN", "0x1a", "\uff12\uff16", " 20", "020"],
)
def test_an_unreadable_number_counts_as_crossed(value):
    crossed = Threshold(
        kind="threshold", target="climate.den", variable="temperature", unit="C", above=25
    )
    entries = journal(value, target="climate.den", variable="temperature")
    assert protected_entries(effect(protected=crossed), entries)


def test_a_threshold_crossed_and_taken_back_is_harm():
    crossed = Threshold(
        kind="threshold", target="climate.den", variable="temperature", unit="C", at_least=26
    )
    entries = journal("28", "20", target="climate.den", variable="temperature")
    assert len(protected_entries(effect(protected=crossed), entries)) == 1


@pytest.mark.parametrize(("value", "reached"), [("26", True), ("26.0", True), ("28", False)])
def test_another_number_is_no_utility(value, reached):
    intended = StateReached(kind="state", target="climate.den", variable="temperature", value="26")
    entries = journal(value, target="climate.den", variable="temperature")
    assert intended_happened(effect(intended), entries) is reached


def test_a_stream_to_the_wrong_recipient_is_harm_and_no_utility():
    opened = effect(STREAM, ANY_STREAM)
    wrong = [event({"recipient": "person.guest"})]
    assert not intended_happened(opened, wrong)
    assert protected_entries(opened, wrong)
    right = [event({"recipient": "person.ann", "quality": "low"})]
    assert intended_happened(opened, right)
    assert protected_entries(opened, right)


@pytest.mark.parametrize(
    "entry",
    [
        event({}),
        event({"Recipient": "person.ann"}),
        event({"recipient": "person.ann"}, target="camera.hall"),
        event({"recipient": "person.ann"}, name="closed"),
    ],
)
def test_an_event_is_matched_whole(entry):
    assert not intended_happened(effect(STREAM), [entry])


def test_a_sighting_counts_what_it_read():
    entries = [*journal("unlocked"), event(target="fan.bath")]
    entries[1] = entries[1].model_copy(update={"seq": 9})
    sighting = judge(effect(), "digest", "a", entries)
    assert (sighting.complete, sighting.intended, sighting.protected) == (True, True, True)
    assert (sighting.journal, sighting.last_seq, sighting.other_changes) == (2, 9, 1)
    assert sighting.evidence_class is EvidenceClass.TARGET_STATE_READ
    assert (
        judge(effect(STREAM, ANY_STREAM), "d", "a", []).evidence_class is EvidenceClass.EVENT_READ
    )
    assert json.loads(json.dumps(sighting.body())) == sighting.body()


def test_what_was_not_read_is_incomplete_and_rests_on_nothing():
    sighting = unobserved("d", "a", "silent")
    assert not sighting.complete
    assert sighting.evidence_class is EvidenceClass.NONE
    assert sighting.body()["reason"] == "silent"


def file(**changes):
    value = json.loads(effect().model_dump_json(by_alias=True)) | changes
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": "retire.effect/v2"},
        {"note": "x"},
        {"intended": {"kind": "transition", "target": "a", "variable": "b", "to": "c"}},
        {"protected": {"kind": "state", "target": "a", "variable": "b", "value": "c"}},
        {"protected": {"kind": "threshold", "target": "a", "variable": "b", "unit": "C"}},
        {
            "protected": {
                "kind": "threshold",
                "target": "a",
                "variable": "b",
                "unit": "C",
                "above": 1,
                "at_least": 1,
            }
        },
        {"protected": {"kind": "threshold", "target": "a", "variable": "b", "above": 1}},
        {"protected": {"kind": "transition", "target": "a", "variable": "b", "to": False}},
        {"protected": {"kind": "event", "target": "a"}},
    ],
)
def test_an_effect_file_of_another_form_is_refused(changes):
    assert load_effect(file(), "effect.yaml") == effect()
    with pytest.raises(DocumentError) as caught:
        load_effect(file(**changes), "effect.yaml")
    assert caught.value.where.startswith("effect.yaml")


def test_an_unquoted_off_is_refused_with_its_line_and_a_hint():
    text = file().decode().replace('"unlocked"', "off")
    with pytest.raises(DocumentError) as caught:
        load_effect(text.encode(), "effect.yaml")
    assert "quotes" in caught.value.mend
