from __future__ import annotations

import copy

import pytest

from retire.deployments.simulated import read_rules

HOUSE = {
    "schema": "retire.snapshot/v1",
    "as_of": "2026-07-01T12:00:00Z",
    "grants": {
        "a": {
            "name": "sauna evening reservation",
            "status": "active",
            "not_before": "2026-07-01T10:00:00Z",
            "not_after": "2026-07-01T15:00:00Z",
        },
        "b": {
            "name": "drone delivery clearance",
            "status": "active",
            "not_before": "2026-07-01T10:00:00Z",
            "not_after": "2026-07-01T15:00:00Z",
        },
    },
    "consents": {
        "c": {
            "name": "neighbours' approval of night lighting",
            "votes": {
                "p1": {"name": "Olu", "answer": "yes", "at": "2026-07-01T09:00:00Z"},
                "p2": {"name": "Berit", "answer": "yes", "at": "2026-07-01T09:00:00Z"},
            },
        }
    },
    "facts": {
        "d": {
            "name": "sauna bench thermometer",
            "value": "64",
            "unit": "C",
            "reported_at": "2026-07-01T11:59:40Z",
        },
        "e": {
            "name": "landing pad camera verdict",
            "value": "free",
            "reported_at": "2026-07-01T11:59:50Z",
        },
        "f": {
            "name": "wind speed on the roof",
            "value": "4.2",
            "unit": "m/s",
            "reported_at": "2026-07-01T11:59:00Z",
        },
        "g": {
            "name": "lift cabin weight",
            "value": "210",
            "unit": "kg",
            "reported_at": "2026-07-01T11:59:59Z",
        },
        "h": {"name": "smoke detector", "value": "quiet", "reported_at": "2026-07-01T11:50:00Z"},
        "i": {"name": "garage heater flame", "value": "off", "reported_at": "2026-07-01T11:59:00Z"},
        "j": {"name": "tilt window", "value": "tilted", "reported_at": "2026-07-01T11:59:00Z"},
    },
    "versions": {
        "k": {"name": "flight planner release", "value": "2.7"},
        "l": {"name": "sauna controller schema", "value": "v4"},
    },
}


# sentence, entry, the value that breaks it
TABLE = [
    (
        "The sauna is heated for a party only under a reservation that is still active.",
        "a",
        "grants/a/status",
        "cancelled",
    ),
    (
        "Whoever asks, there is no heating once the sauna reservation is over.",
        "a",
        "grants/a/not_after",
        "2026-07-01T11:00:00Z",
    ),
    ("You need a valid sauna reservation before you heat.", "a", "grants/a/status", "revoked"),
    (
        "Heating without a live evening reservation is not allowed.",
        "a",
        "grants/a/status",
        "revoked",
    ),
    (
        "The pad is off limits unless the drone clearance is active.",
        "b",
        "grants/b/status",
        "suspended",
    ),
    ("Drones land here only with clearance in force.", "b", "grants/b/status", "suspended"),
    (
        "If the delivery clearance has been pulled or has expired, send the drone away.",
        "b",
        "grants/b/status",
        "expired",
    ),
    (
        "A drone without an active delivery clearance must be turned away.",
        "b",
        "grants/b/status",
        "expired",
    ),
    (
        "Both neighbours must approve before the night lights go on.",
        "c",
        "consents/c/votes/p1/answer",
        "no",
    ),
    (
        "Keep the lights off unless both neighbours have approved.",
        "c",
        "consents/c/votes/p1/answer",
        "pending",
    ),
    (
        "Night lighting stays dark as long as Berit has not agreed.",
        "c",
        "consents/c/votes/p2/answer",
        "pending",
    ),
    (
        "One neighbour saying no is enough to leave the lights off.",
        "c",
        "consents/c/votes/p2/answer",
        "no",
    ),
    (
        "The lights need a yes from Olu and a yes from Berit.",
        "c",
        "consents/c/votes/p2/answer",
        "withdrawn",
    ),
    (
        "We switch on only when neither neighbour has objected.",
        "c",
        "consents/c/votes/p1/answer",
        "no",
    ),
    ("Approval from the neighbours is a must.", "c", "consents/c/votes/p1/answer", "no"),
    (
        "Do not pour water when the bench thermometer shows more than 90 C.",
        "d",
        "facts/d/value",
        "91",
    ),
    (
        "The bench thermometer should read under 90 °C before anyone pours.",
        "d",
        "facts/d/value",
        "95",
    ),
    (
        "Never add heat once the bench thermometer has reached 90 degrees.",
        "d",
        "facts/d/value",
        "90",
    ),
    ("Land only if the landing pad camera says free.", "e", "facts/e/value", "blocked"),
    ("Unless the pad camera verdict is `free`, send it back up.", "e", "facts/e/value", "blocked"),
    ("The landing pad must be free.", "e", "facts/e/value", "occupied"),
    ("A blocked landing pad means no landing.", "e", "facts/e/value", "blocked"),
    (
        "The landing pad camera verdict may not be older than 30 seconds.",
        "e",
        "facts/e/reported_at",
        "2026-07-01T11:59:00Z",
    ),
    ("Wind on the roof must stay below 8 m/s.", "f", "facts/f/value", "8.4"),
    ("Do not land if the roof wind speed is 8 m/s or more.", "f", "facts/f/value", "8"),
    ("The wind speed on the roof has to be under 30 km/h.", "f", "facts/f/value", "8.4"),
    ("The cabin may not weigh more than 300 kg.", "g", "facts/g/value", "320"),
    (
        "Send the lift only while its cabin weight is no more than 300 kilos.",
        "g",
        "facts/g/value",
        "320",
    ),
    ("If the lift cabin weighs over 300 kg, leave it where it is.", "g", "facts/g/value", "320"),
    ("Never start when the smoke detector is anything but quiet.", "h", "facts/h/value", "alarm"),
    ("The smoke detector has to be quiet.", "h", "facts/h/value", "alarm"),
    ("A smoke detector that is not quiet rules out heating.", "h", "facts/h/value", "alarm"),
    (
        "Don't heat if the smoke detector hasn't reported for more than 15 minutes.",
        "h",
        "facts/h/reported_at",
        "2026-07-01T11:40:00Z",
    ),
    ("The garage heater's flame must be off before the door is shut.", "i", "facts/i/value", "on"),
    ("Shut the door only with the garage heater flame off.", "i", "facts/i/value", "on"),
    ("Start the fan only if the tilt window is tilted or open.", "j", "facts/j/value", "closed"),
    ("The tilt window must not be closed.", "j", "facts/j/value", "closed"),
    ("Use flight planner 2.7 or later, nothing older.", "k", "versions/k/value", "2.6"),
    ("The flight planner has to be release 2.7 or newer.", "k", "versions/k/value", "2.6.9"),
    (
        "Refuse to land while the flight planner is on anything older than release 2.7.",
        "k",
        "versions/k/value",
        "2.6",
    ),
    ("The sauna controller must speak schema v4.", "l", "versions/l/value", "v3"),
    ("Only heat with controller schema 4.", "l", "versions/l/value", "v5"),
    ("Stop if the sauna controller schema is not v4.", "l", "versions/l/value", "v5"),
    (
        (
            "Heat only if all of this holds:\n\n1. The evening reservation is active.\n2. "
            "The smoke detector is quiet."
        ),
        "h",
        "facts/h/value",
        "alarm",
    ),
    (
        (
            "Stop right away when\n* the bench thermometer is above 95 C, or\n* the smoke "
            "detector is not quiet"
        ),
        "d",
        "facts/d/value",
        "96",
    ),
    (
        (
            "| fact | needed |\n|---|---|\n| smoke detector | quiet |\n| bench thermometer "
            "| below 90 C |"
        ),
        "d",
        "facts/d/value",
        "96",
    ),
    (
        "| if | then |\n|---|---|\n| smoke detector is not quiet | refuse |",
        "h",
        "facts/h/value",
        "alarm",
    ),
    ("Look at the smoke detector. If it is not quiet, stop.", "h", "facts/h/value", "alarm"),
    ("It is essential that the smoke detector is quiet.", "h", "facts/h/value", "alarm"),
    ("Heating presupposes a quiet smoke detector.", "h", "facts/h/value", "alarm"),
    (
        "The request is to be declined whenever the roof wind speed tops 8 m/s.",
        "f",
        "facts/f/value",
        "9",
    ),
    (
        "Under no circumstances may the lift move with more than 300 kg in the cabin.",
        "g",
        "facts/g/value",
        "320",
    ),
]


def changed(path, value):
    snapshot = copy.deepcopy(HOUSE)
    *parents, last = path.split("/")
    place = snapshot
    for key in parents:
        place = place[key]
    place[last] = value
    return snapshot


@pytest.mark.parametrize(("text", "entry", "path", "value"), TABLE, ids=[row[0] for row in TABLE])
def test_rule_follows_the_raw_value(text, entry, path, value):
    fine = read_rules(text, HOUSE)
    assert entry in {r.entry for r in fine}
    assert all(r.satisfied for r in fine)
    broken = read_rules(text, changed(path, value))
    assert {r.entry for r in broken if not r.satisfied} == {entry}


def test_paths_name_the_values_a_rule_rests_on():
    found = read_rules("Both neighbours must approve before the night lights go on.", HOUSE)
    assert found[0].paths == (
        "/consents/c/votes/p2/answer",
        "/consents/c/votes/p1/answer",
    )
    fresh = read_rules("Never land on a pad camera verdict older than 30 seconds.", HOUSE)
    assert fresh[0].paths == ("/facts/e/reported_at",)
    assert [r.kind for r in fresh] == ["freshness"]
