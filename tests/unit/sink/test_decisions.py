"""Every reason of the sink, the order of its checks, and what an allow carries."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sink.decision import Action, Allow, Basis, Binding, Deny, Reason, action_record, decide
from sink.proposal import Proposal
from tests import houses

RIGHT = {"target": "climate.den", "temperature": Decimal("26.5")}


def decided(arguments=RIGHT, tool="climate_set", binding=Binding.CANONICAL, *changes, house=None):
    data = houses.snapshot_data()
    for path, value in changes:
        houses.put(data, path, value)
    contract = houses.contract(house)
    return decide(contract, Proposal(tool, arguments), houses.snapshot(data), binding)


def under(*changes):
    return decided(RIGHT, "climate_set", Binding.CANONICAL, *changes)


@pytest.mark.parametrize("binding", Binding)
def test_the_canonical_action_is_allowed_by_authority(binding):
    decision = decided(binding=binding)
    assert isinstance(decision, Allow)
    assert decision.basis is Basis.AUTHORITY
    assert decision.action == Action("climate.set", "climate.den", {"temperature": Decimal("26.5")})
    assert decision.grants == ("boost",)
    assert all(value.value for value in decision.predicates)


@pytest.mark.parametrize(
    ("path", "value", "predicate", "reason"),
    [
        ("/grants/boost/status", "revoked", "authority", Reason.GRANT_ABSENT),
        ("/grants/boost/status", "Active", "authority", Reason.GRANT_ABSENT),
        ("/grants/boost/target", "climate.hall", "authority", Reason.GRANT_ABSENT),
        ("/grants/boost/target", "climate.*", "authority", Reason.GRANT_ABSENT),
        ("/grants/boost/service", "climate.", "authority", Reason.GRANT_ABSENT),
        ("/grants/boost/holder", "agent.other", "authority", Reason.PRINCIPAL_MISMATCH),
        ("/grants/boost/not_after", houses.NOW, "authority", Reason.GRANT_STALE),
        ("/grants/boost/not_before", "2026-05-04T18:00:01Z", "authority", Reason.GRANT_STALE),
        ("/grants/boost/not_before", "yesterday", "authority", Reason.GRANT_STALE),
        (
            "/consents/warm/votes/person.ann/answer",
            "stop",
            "neighbour",
            Reason.PRINCIPAL_MISMATCH,
        ),
        ("/consents/warm/votes", {}, "neighbour", Reason.PRINCIPAL_MISMATCH),
        ("/consents/bill/votes/person.bo/answer", "no", "adults", Reason.QUORUM_UNMET),
        ("/facts/window/value", "open", "window", Reason.STATE_UNMET),
        ("/facts/window/value", "Closed", "window", Reason.STATE_UNMET),
        ("/facts/window/reported_at", "2026-05-04T17:58:00Z", "window", Reason.STATE_UNMET),
        ("/facts/window/reported_at", "2026-05-04T18:00:07Z", "window", Reason.STATE_UNMET),
        ("/facts/window/reported_at", "", "window", Reason.STATE_UNMET),
        ("/facts/outdoor/value", "12.51", "outdoor", Reason.STATE_UNMET),
        ("/facts/outdoor/value", "-10.1", "outdoor", Reason.STATE_UNMET),
        ("/facts/outdoor/value", "unavailable", "outdoor", Reason.STATE_UNMET),
        ("/facts/outdoor/value", "\uff13", "outdoor", Reason.STATE_UNMET),
        ("/facts/outdoor/unit", "F", "outdoor", Reason.STATE_UNMET),
        ("/versions/gateway/value", "4.10", "gateway", Reason.VERSION_MISMATCH),
    ],
)
def test_one_false_predicate_denies_with_its_reason(path, value, predicate, reason):
    decision = under((path, value))
    assert isinstance(decision, Deny)
    assert decision.reason is reason
    assert [item.id for item in decision.predicates if not item.value] == [predicate]


@pytest.mark.parametrize(
    ("section", "predicate", "reason"),
    [
        ("grants", "authority", Reason.GRANT_ABSENT),
        ("facts", "window", Reason.STATE_UNMET),
        ("versions", "gateway", Reason.VERSION_MISMATCH),
        ("consents", "neighbour", Reason.PRINCIPAL_MISMATCH),
    ],
)
def test_what_is_missing_is_false_never_absent(section, predicate, reason):
    decision = under((f"/{section}", {}))
    assert isinstance(decision, Deny)
    assert decision.reason is reason
    assert len(decision.predicates) == 6
    assert {item.id: item.value for item in decision.predicates}[predicate] is False


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/grants/boost/not_before", houses.NOW),
        ("/grants/boost/not_after", "2026-05-04T18:00:01Z"),
        ("/facts/window/reported_at", "2026-05-04T17:58:01Z"),
        ("/facts/window/reported_at", houses.NOW),
        ("/facts/outdoor/value", "12.50"),
        ("/facts/outdoor/value", "-10"),
        ("/consents/bill/votes/person.cy", {"name": "Cy", "answer": "no", "at": houses.NOW}),
        ("/versions/gateway/value", "4.2"),
    ],
)
def test_the_permitted_side_of_an_edge_is_allowed(path, value):
    assert isinstance(under((path, value)), Allow)


def test_a_guest_adds_no_vote():
    guest = {"name": "Zoe\u0308", "answer": "yes", "at": houses.NOW}
    decision = under(
        ("/consents/bill/votes/person.bo/answer", "no"),
        ("/consents/bill/votes/person.guest", guest),
    )
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.QUORUM_UNMET


def test_every_predicate_is_reported_not_only_the_first_that_failed():
    decision = under(("/grants", {}), ("/versions/gateway/value", "0"))
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.GRANT_ABSENT
    assert [item.id for item in decision.predicates if not item.value] == ["authority", "gateway"]


@pytest.mark.parametrize(
    "tool", ["climate.set", "Climate_Set", "climate_set ", "fan_on", "functions.climate_set", ""]
)
def test_another_tool_is_an_unknown_service(tool):
    decision = decided(RIGHT, tool)
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.UNKNOWN_SERVICE


@pytest.mark.parametrize(
    "target",
    [
        "CLIMATE.Den",
        "cl\u0131mate.den",
        "climate.den\n",
        "climate.\uff44en",
        "climate.d\u0435n",
        "climate.den\u200b",
        "climate.den/../climate.hall",
        "climate.hall",
        "climate.den, climate.hall",
        "climate.",
        "*",
        "all",
        "",
        True,
        1,
    ],
)
def test_only_the_canonical_target_byte_for_byte(target):
    decision = decided({**RIGHT, "target": target})
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.NONCANONICAL_TARGET


def test_a_missing_target_is_no_target():
    decision = decided({"temperature": Decimal("26.5")})
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.NONCANONICAL_TARGET


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"temperature": "26.5"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": Decimal("26.50001")}, "temperature"),
        ({"temperature": Decimal("26.4")}, "temperature"),
        ({"temperature": 200}, "temperature"),
        ({"only_if_nobody_is_in": True}, "only_if_nobody_is_in"),
        ({"Temperature": 26}, "Temperature"),
        ({"": 1}, ""),
        ({" ": 1}, " "),
        ({"temperature": 20, "": 1}, ""),
        ({"minutes": 61}, "minutes"),
        ({"minutes": Decimal("60.5")}, "minutes"),
        ({"mode": "fast"}, "mode"),
        ({"mode": "loud"}, "mode"),
        ({"ramp": False}, "ramp"),
    ],
)
def test_the_parameter_at_fault_is_named(changed, parameter):
    decision = decided({**RIGHT, **changed})
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.PARAMETER_MISMATCH
    assert decision.parameter == parameter


def test_a_missing_required_parameter_is_named():
    decision = decided({"target": "climate.den"})
    assert isinstance(decision, Deny)
    assert (decision.reason, decision.parameter) == (Reason.PARAMETER_MISMATCH, "temperature")


def test_a_stated_default_is_canonical_but_not_exact():
    stated = {**RIGHT, "minutes": 60, "mode": "quiet"}
    assert isinstance(decided(stated, binding=Binding.CANONICAL), Allow)
    exact = decided(stated, binding=Binding.EXACT)
    assert isinstance(exact, Deny)
    assert (exact.reason, exact.parameter) == (Reason.PARAMETER_MISMATCH, "minutes")


def test_what_is_sent_under_authority_comes_from_the_contract():
    decision = decided({**RIGHT, "temperature": Decimal("2.65E+1"), "minutes": 60})
    assert isinstance(decision, Allow)
    assert action_record(decision.action)["parameters"] == {"temperature": "#26.5"}


@pytest.mark.parametrize("temperature", [16, 24, Decimal("24.0"), Decimal("16.1"), 20])
def test_the_free_band_needs_no_authority(temperature):
    decision = decided(
        {**RIGHT, "temperature": temperature}, "climate_set", Binding.EXACT, ("/grants", {})
    )
    assert isinstance(decision, Allow)
    assert decision.basis is Basis.FREE_BAND
    assert decision.grants == ()
    assert decision.action.parameters == {"temperature": temperature}
    assert [item.id for item in decision.predicates if not item.value] == ["authority"]


@pytest.mark.parametrize("temperature", [Decimal("15.9"), Decimal("24.1"), 5, 30])
def test_outside_the_free_band_the_binding_holds(temperature):
    decision = decided({**RIGHT, "temperature": temperature})
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.PARAMETER_MISMATCH


def test_the_free_band_frees_one_parameter_only():
    decision = decided({**RIGHT, "temperature": 20, "mode": "fast"})
    assert isinstance(decision, Deny)
    assert decision.parameter == "mode"


def test_the_free_band_does_not_free_another_target():
    decision = decided({"target": "climate.hall", "temperature": 20})
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.NONCANONICAL_TARGET


def test_the_first_check_that_fails_gives_the_reason():
    wrong = {"target": "climate.hall", "temperature": "hot"}
    order = [
        decided(wrong, "lock_open", Binding.CANONICAL, ("/grants", {})),
        decided(wrong, "climate_set", Binding.CANONICAL, ("/grants", {})),
        decided({**wrong, "target": "climate.den"}, "climate_set", Binding.EXACT, ("/grants", {})),
        decided(RIGHT, "climate_set", Binding.EXACT, ("/grants", {}), ("/versions", {})),
        decided(RIGHT, "climate_set", Binding.EXACT, ("/versions", {})),
    ]
    assert [decision.reason for decision in order if isinstance(decision, Deny)] == [
        Reason.UNKNOWN_SERVICE,
        Reason.NONCANONICAL_TARGET,
        Reason.PARAMETER_MISMATCH,
        Reason.GRANT_ABSENT,
        Reason.VERSION_MISMATCH,
    ]


def test_predicates_are_judged_in_the_order_of_the_contract():
    house = houses.contract_data()
    house["predicates"].reverse()
    decision = decided(
        RIGHT, "climate_set", Binding.EXACT, ("/grants", {}), ("/versions", {}), house=house
    )
    assert isinstance(decision, Deny)
    assert decision.reason is Reason.VERSION_MISMATCH
