"""Generated bundles: whatever the generator accepts, a second reading finds exactly one flip."""

from __future__ import annotations

import json

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from counterfactuals.generate import UnprovedError, members, suggest
from counterfactuals.template import TemplateError, snapshot_bytes
from tests import houses, naive
from tests.property.test_sink_predicates import contracts

pytestmark = pytest.mark.property

PLACES = st.sampled_from(
    [
        "/as_of",
        "/grants/boost/status",
        "/grants/boost/holder",
        "/grants/boost/target",
        "/grants/boost/not_before",
        "/grants/boost/not_after",
        "/consents/warm/votes/person.ann/answer",
        "/consents/bill/votes/person.ann/answer",
        "/consents/bill/votes/person.bo/answer",
        "/facts/window/value",
        "/facts/window/reported_at",
        "/facts/window/name",
        "/facts/window/version",
        "/facts/window",
        "/facts/window/value/x",
        "/facts/outdoor/value",
        "/facts/outdoor/unit",
        "/facts/moon/value",
        "/versions/gateway/value",
        "/facts/window/value ",
        "/facts//value",
        "/facts/win~0dow/value",
    ]
)
VALUES = st.sampled_from(
    [
        *("", "no", "yes", "revoked", "agent.other", "open", "locked", "F"),
        *("13", "-11", "3.5", "0", houses.NOW, "2026-05-04T18:00:30Z"),
        *("2026-05-04T19:00:00Z", "2000-01-01T00:00:00Z"),
    ]
)


def prove(contract, tasks):
    return members(
        houses.contract(contract), houses.world(), houses.tasks(tasks), b"effect", b"tools"
    )


def check(contract, found):
    base = naive.truth(contract, json.loads(found[0].snapshot))
    assert all(base.values())
    assert {member.predicate for member in found[1:]} == set(base) - set(
        contract.get("unaudited", {})
    )
    for member in found[1:]:
        after = naive.truth(contract, json.loads(member.snapshot))
        assert [key for key in base if base[key] != after[key]] == [member.predicate]
        assert member.proof is not None
        assert {**member.proof.after} == after


def flips(contract, path, value):
    """What a patch flips, found without the generator; None where it cannot be applied."""
    before = houses.snapshot_data()
    after = houses.snapshot_data()
    *parents, last = path.split("/")[1:]
    place = after
    for part in parents:
        if not isinstance(place, dict) or part not in place:
            return None
        place = place[part]
    if not isinstance(place, dict) or not isinstance(place.get(last), str) or place[last] == value:
        return None
    place[last] = value
    old, new = naive.truth(contract, before), naive.truth(contract, after)
    return [key for key in old if old[key] != new[key]]


@settings(max_examples=250, deadline=None)
@given(st.sampled_from([item["id"] for item in houses.CONTRACT["predicates"]]), PLACES, VALUES)
def test_a_patch_is_accepted_exactly_when_it_flips_its_predicate_alone(predicate, path, value):
    contract, tasks = houses.contract_data(), houses.tasks_data()
    for item in tasks["locked"]["counterfactuals"]:
        if item["predicate"] == predicate:
            item.update(path=path, value=value)
    taken = [item["path"] for item in tasks["locked"]["counterfactuals"]]
    matched = flips(contract, path, value) == [predicate] and taken.count(path) == 1
    event("matched" if matched else "refused")
    if matched:
        check(contract, prove(contract, tasks))
        return
    with pytest.raises(UnprovedError):
        prove(contract, tasks)


@settings(max_examples=150, deadline=None)
@given(contracts())
def test_suggestions_for_generated_contracts_can_be_proved(contract):
    base = naive.truth(contract, houses.snapshot_data())
    found = suggest(houses.contract(contract), houses.world())
    tasks = houses.tasks_data()
    tasks["locked"]["counterfactuals"] = [
        {"predicate": key, "path": patch.path, "value": patch.value} for key, patch in found.items()
    ]
    contract["unaudited"] = {key: "no single place" for key in base if key not in found}
    paths = [patch.path for patch in found.values()]
    if len(set(paths)) < len(paths):
        event("two predicates share a place")
        return
    if not all(base.values()):
        event("unauthorized base")
        with pytest.raises(UnprovedError):
            prove(contract, tasks)
        return
    event(f"{len(found)} proved")
    check(contract, prove(contract, tasks))


@settings(max_examples=150, deadline=None)
@given(PLACES, VALUES)
def test_a_patch_changes_one_place_or_is_refused(path, value):
    changed = {"predicate": "window", "path": path, "value": value}
    tasks = houses.tasks_data()
    tasks["locked"]["counterfactuals"] = [changed]
    patch = houses.tasks(tasks).locked.counterfactuals[0]
    try:
        data = snapshot_bytes(houses.world(), (patch,))
    except TemplateError:
        return
    before, after = json.loads(snapshot_bytes(houses.world(), ())), json.loads(data)
    houses.put(before, path, value)
    assert after == before
