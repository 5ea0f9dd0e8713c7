"""The generator proves that exactly one predicate flips, and refuses what it cannot prove."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from counterfactuals.generate import UnprovedError, member_name, members, suggest
from counterfactuals.template import differing_paths, snapshot_bytes
from retire.bundle.loading import find_bundles, load_bundle
from tests import houses, naive

PANEL = find_bundles([Path(__file__).parents[3] / "bundles" / "panel"])


def generated(contract=None, world=None, tasks=None):
    return members(
        houses.contract(contract), houses.world(world), houses.tasks(tasks), b"effect", b"tools"
    )


def unproved(**changes):
    with pytest.raises(UnprovedError) as caught:
        generated(**changes)
    return caught.value


def with_counterfactual(predicate, path, value):
    data = houses.tasks_data()
    for item in data["locked"]["counterfactuals"]:
        if item["predicate"] == predicate:
            item.update(path=path, value=value)
    return data


def test_one_member_per_predicate_each_with_its_proof():
    authorized, *invalid = generated()
    assert (authorized.name, authorized.path, authorized.proof) == ("authorized", None, None)
    predicates = [item["id"] for item in houses.contract_data()["predicates"]]
    assert [member.name for member in invalid] == [member_name(name) for name in predicates]
    for member in invalid:
        proof = member.proof
        assert proof is not None
        assert (proof.path, proof.flipped) == (member.path, member.predicate)
        assert all(proof.before.values())
        assert [key for key, value in proof.after.items() if not value] == [member.predicate]
        assert member.invariants == authorized.invariants
        assert differing_paths(authorized.snapshot, member.snapshot) == (member.path,)


@pytest.mark.parametrize("folder", PANEL, ids=lambda folder: folder.name)
def test_a_second_reading_of_the_panel_agrees(folder):
    bundle = load_bundle(folder)
    contract = yaml.safe_load((folder / "contract.yaml").read_text("utf-8"))
    audited = [item["id"] for item in contract["predicates"]]
    flipped = []
    base = naive.truth(contract, json.loads(bundle.members[0].snapshot))
    assert base == dict.fromkeys(audited, True)
    for member in bundle.members[1:]:
        after = naive.truth(contract, json.loads(member.snapshot))
        changed = [key for key in audited if after[key] != base[key]]
        assert changed == [member.predicate]
        flipped += changed
    assert flipped == audited
    for snapshot in bundle.development_snapshots.values():
        assert all(naive.truth(contract, json.loads(snapshot)).values())


@pytest.mark.parametrize(
    ("predicate", "path", "value", "said"),
    [
        ("window", "/facts/window/value", "closed", "nowhere"),
        ("window", "/facts/window/value", "locked", "no predicate"),
        ("window", "/facts/outdoor/value", "13", "outdoor"),
        ("window", "/facts/window/name", "another name", "no predicate"),
        ("window", "/as_of", "2026-05-04T19:00:00Z", "authority, window"),
        ("window", "/facts/door/value", "open", "door"),
        ("window", "/facts/window/colour", "red", "no text"),
        ("window", "/facts/window/version", "8", "no text"),
        ("window", "/facts/window", "open", "no text"),
        ("window", "/facts/window/value/0", "open", "value"),
        ("adults", "/consents/bill/votes", "no", "no text"),
        ("adults", "/consents/bill/votes/person.cy/answer", "no", "person.cy"),
        ("adults", "/consents/bill/votes/person.bo/answer", "yes", "nowhere"),
        ("neighbour", "/consents/bill/votes/person.ann/answer", "no", "adults"),
        ("authority", "/grants/boost/name", "x", "no predicate"),
    ],
)
def test_a_patch_that_flips_two_none_or_another_is_refused(predicate, path, value, said):
    error = unproved(tasks=with_counterfactual(predicate, path, value))
    assert error.predicate == predicate
    assert said in error.reason


def test_a_place_must_be_named_as_the_rfc_writes_it():
    world = houses.world_data()
    world["consents"]["bill"]["votes"]["guest~1"] = {"name": "G", "answer": "no", "at": houses.NOW}
    data = with_counterfactual("adults", "/consents/bill/votes/guest~01/answer", "yes")
    assert "no predicate" in unproved(world=world, tasks=data).reason
    world["consents"]["bill"]["votes"]["guest~x"] = {"name": "H", "answer": "no", "at": houses.NOW}
    data = with_counterfactual("adults", "/consents/bill/votes/guest~x/answer", "yes")
    assert "guest~0x" in unproved(world=world, tasks=data).reason


def test_a_vote_that_two_predicates_count_flips_both():
    contract = houses.contract_data()
    contract["predicates"][1]["consent"] = "bill"
    contract["predicates"][1]["principals"] = ["person.bo"]
    data = with_counterfactual("neighbour", "/consents/bill/votes/person.bo/answer", "no")
    assert "neighbour, adults" in unproved(contract=contract, tasks=data).reason


def test_an_authorized_member_that_is_not_authorized_is_refused():
    world = houses.world_data()
    world["facts"]["window"]["value"] = "open"
    world["versions"]["gateway"]["value"] = "0"
    error = unproved(world=world)
    assert error.predicate == ""
    assert "window, gateway" in error.reason


def test_every_audited_predicate_needs_its_counterfactual():
    data = houses.tasks_data()
    del data["locked"]["counterfactuals"][3]
    error = unproved(tasks=data)
    assert error.predicate == "window"
    contract = houses.contract_data()
    contract["unaudited"] = {"window": "no sensor on the bench"}
    names = [member.name for member in generated(contract=contract, tasks=data)]
    assert "invalid_window" not in names
    assert len(names) == 6


def test_a_counterfactual_of_no_predicate_is_refused():
    data = houses.tasks_data()
    data["locked"]["counterfactuals"].append(
        {"predicate": "moon", "path": "/facts/window/value", "value": "open"}
    )
    assert unproved(tasks=data).predicate == "moon"


def test_a_predicate_has_one_counterfactual():
    data = houses.tasks_data()
    data["locked"]["counterfactuals"].append(
        {"predicate": "window", "path": "/facts/window/reported_at", "value": "never"}
    )
    assert "two" in unproved(tasks=data).reason


def test_suggested_patches_can_be_proved():
    found = suggest(houses.contract(), houses.world())
    assert set(found) == {item["id"] for item in houses.contract_data()["predicates"]}
    data = houses.tasks_data()
    data["locked"]["counterfactuals"] = [
        {"predicate": key, "path": patch.path, "value": patch.value} for key, patch in found.items()
    ]
    assert len(generated(tasks=data)) == 7


@pytest.mark.parametrize("folder", PANEL, ids=lambda folder: folder.name)
def test_suggestions_for_the_panel_flip_what_they_say(folder):
    bundle = load_bundle(folder)
    contract = yaml.safe_load((folder / "contract.yaml").read_text("utf-8"))
    base = naive.truth(contract, json.loads(snapshot_bytes(bundle.world, ())))
    found = suggest(bundle.contract, bundle.world)
    assert set(found) == set(base)
    for predicate, patch in found.items():
        after = naive.truth(contract, json.loads(snapshot_bytes(bundle.world, (patch,))))
        assert [key for key in base if base[key] != after[key]] == [predicate]


def test_nothing_is_suggested_where_one_place_cannot_do_it():
    contract = houses.contract_data()
    contract["predicates"] = [
        contract["predicates"][0],
        {"kind": "grant", "id": "again", "grant": "boost"},
    ]
    assert suggest(houses.contract(contract), houses.world()) == {}
