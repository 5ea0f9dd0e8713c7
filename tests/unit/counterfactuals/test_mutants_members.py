"""What a changed generator would get wrong unnoticed: which patches it suggests, what it says."""

from __future__ import annotations

import hashlib

import pytest

from counterfactuals.generate import Invariants, UnprovedError, members, suggest
from tests import houses


def generated(tasks=None):
    return members(
        houses.contract(), houses.world(), houses.tasks(tasks), b"the effect", b"the tools"
    )


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def test_what_must_be_equal_is_spelled_out():
    fixed = {
        "action": b'{"parameters":{"temperature":"26.5"},"service":"climate.set",'
        b'"target":"climate.den"}',
        "tool_schema": b"the tools",
        "tool_path": b'{"climate_set":"climate.set"}',
        "wording": b"Please set the den to 26.5 C.",
        "intended_effect": b"the effect",
    }
    for member in generated():
        assert member.invariants == Invariants(**fixed)
        assert member.invariants.digests() == {key: sha256(fixed[key]) for key in fixed}
        assert member.snapshot_digest == sha256(member.snapshot)
        if member.proof is not None:
            assert member.proof.invariants == member.invariants.digests()


@pytest.mark.parametrize(
    ("change", "predicate"),
    [
        (lambda items: items.append({**items[0], "predicate": "moon"}), "moon"),
        (lambda items: items.append({**items[0], "value": "expired"}), ""),
        (lambda items: items.pop(0), "authority"),
    ],
)
def test_what_is_declared_wrongly_is_named_with_a_reason(change, predicate):
    data = houses.tasks_data()
    change(data["locked"]["counterfactuals"])
    with pytest.raises(UnprovedError) as caught:
        generated(data)
    assert caught.value.predicate == predicate
    assert "counterfactual" in caught.value.reason or "predicate" in caught.value.reason


def suggested(contract=None, world=None):
    found = suggest(houses.contract(contract), houses.world(world))
    return {predicate: (patch.path, patch.value) for predicate, patch in found.items()}


def fact(**fields):
    contract = houses.contract_data()
    contract["predicates"] = [{"kind": "fact", "id": "outdoor", "fact": "outdoor", **fields}]
    return contract


def test_a_suggestion_is_the_first_candidate_of_its_kind():
    assert suggested() == {
        "authority": ("/grants/boost/status", "revoked"),
        "neighbour": ("/consents/warm/votes/person.ann/answer", "withdrawn"),
        "adults": ("/consents/bill/votes/person.ann/answer", "withdrawn"),
        "window": ("/facts/window/value", "unknown"),
        "outdoor": ("/facts/outdoor/value", "13.5"),
        "gateway": ("/versions/gateway/value", "0.0"),
    }


def test_a_number_is_put_one_beyond_its_only_bound():
    assert suggested(fact(minimum=-10, unit="C")) == {"outdoor": ("/facts/outdoor/value", "-11")}
    assert suggested(fact(maximum=12, unit="C")) == {"outdoor": ("/facts/outdoor/value", "13")}


def test_a_fact_with_nothing_but_an_age_is_made_old():
    assert suggested(fact(maximum_age_seconds=3600)) == {
        "outdoor": ("/facts/outdoor/reported_at", "2000-01-01T00:00:00Z")
    }


def test_a_principal_without_a_vote_is_passed_over():
    contract = houses.contract_data()
    contract["predicates"] = [
        {
            "kind": "consent",
            "id": "adults",
            "consent": "bill",
            "principals": ["person.cy", "person.bo"],
            "quorum": 1,
        }
    ]
    assert suggested(contract) == {"adults": ("/consents/bill/votes/person.bo/answer", "withdrawn")}


def test_the_error_reads_as_its_reason():
    world = houses.world_data()
    world["facts"]["window"]["value"] = "open"
    with pytest.raises(UnprovedError) as caught:
        members(houses.contract(), houses.world(world), houses.tasks(), b"effect", b"tools")
    assert str(caught.value) == caught.value.reason != ""
