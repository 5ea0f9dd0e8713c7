"""What a changed truth would get wrong unnoticed: each fault in full, and values at their edges."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sink.contract import canonical_scalar, evaluate, same_value
from sink.contract.values import canonical_decimal, decimal_text, instant, unique_keys
from sink.decision import Allow, Binding, Deny, action_record, decide, with_defaults
from sink.proposal import Proposal
from sink.strict_yaml import DocumentError
from tests import houses


def false(*changes):
    data = houses.snapshot_data()
    for path, value in changes:
        houses.put(data, path, value)
    values = evaluate(houses.contract(), houses.snapshot(data))
    return [(item.id, item.reason, item.detail) for item in values if not item.value]


def test_what_holds_gives_no_reason_and_no_detail():
    values = evaluate(houses.contract(), houses.snapshot())
    assert {(item.value, item.reason, item.detail) for item in values} == {(True, "", "")}


@pytest.mark.parametrize(
    ("path", "value", "predicate", "reason", "named"),
    [
        ("/grants", {}, "authority", "grant_absent", "grant"),
        ("/grants/boost/holder", "agent.x", "authority", "principal_mismatch", "somebody else"),
        ("/grants/boost/target", "climate.hall", "authority", "grant_absent", "another action"),
        ("/grants/boost/service", "climate.off", "authority", "grant_absent", "another action"),
        ("/grants/boost/status", "revoked", "authority", "grant_absent", "'revoked'"),
        ("/grants/boost/not_after", "soon", "authority", "grant_stale", "'soon'"),
        ("/grants/boost/not_after", houses.NOW, "authority", "grant_stale", "window"),
        ("/consents/warm/votes", {}, "neighbour", "principal_mismatch", "0 of 1"),
        ("/consents/bill/votes/person.bo/answer", "no", "adults", "quorum_unmet", "1 of 2"),
        ("/facts/window/value", "open", "window", "state_unmet", "'open'"),
        ("/facts/window/reported_at", "soon", "window", "state_unmet", "'soon'"),
        ("/facts/window/reported_at", "2026-05-04T18:00:01Z", "window", "state_unmet", "future"),
        ("/facts/window/reported_at", "2026-05-04T17:58:00Z", "window", "state_unmet", "120 s"),
        ("/facts/outdoor/unit", "F", "outdoor", "state_unmet", "'F', not 'C'"),
        ("/facts/outdoor/value", "cold", "outdoor", "state_unmet", "'cold'"),
        ("/facts/outdoor/value", "13.5", "outdoor", "state_unmet", "13.5"),
        ("/facts/outdoor/value", "-10.5", "outdoor", "state_unmet", "-10.5"),
        ("/versions", {}, "gateway", "version_mismatch", "component"),
        ("/versions/gateway/value", "9", "gateway", "version_mismatch", "'9'"),
    ],
)
def test_a_fault_says_what_it_found(path, value, predicate, reason, named):
    [(found, why, detail)] = false((path, value))
    assert (found, why) == (predicate, reason)
    assert named in detail


def test_a_missing_fact_or_consent_says_so():
    missing = {item[0]: item[1:] for item in false(("/facts", {}), ("/consents", {}))}
    assert set(missing) == {"neighbour", "adults", "window", "outdoor"}
    assert missing["adults"] == ("quorum_unmet", "0 of 2 needed")
    assert all("fact" in missing[name][1] for name in ("window", "outdoor"))


@pytest.mark.parametrize(
    ("bounds", "value", "holds"),
    [
        ({"minimum": 3}, "3", True),
        ({"minimum": 3}, "2.9", False),
        ({"minimum": 3}, "99", True),
        ({"maximum": 3}, "3", True),
        ({"maximum": 3}, "3.1", False),
        ({"maximum": 3}, "-99", True),
    ],
)
def test_a_single_bound_bounds_one_side(bounds, value, holds):
    contract = houses.contract_data()
    contract["predicates"] = [
        {"kind": "fact", "id": "outdoor", "fact": "outdoor", "unit": "C", **bounds}
    ]
    data = houses.snapshot_data()
    houses.put(data, "/facts/outdoor/value", value)
    [found] = evaluate(houses.contract(contract), houses.snapshot(data))
    assert found.value is holds


def test_an_age_binds_a_number_too():
    contract = houses.contract_data()
    contract["predicates"] = [
        {
            "kind": "fact",
            "id": "outdoor",
            "fact": "outdoor",
            "unit": "C",
            "maximum": 5,
            "maximum_age_seconds": 600,
        }
    ]
    [old] = evaluate(houses.contract(contract), houses.snapshot())
    assert not old.value
    contract["predicates"][0]["maximum_age_seconds"] = 601
    [young] = evaluate(houses.contract(contract), houses.snapshot())
    assert young.value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("21", "21"),
        ("100", "100"),
        ("21.0", "21"),
        ("2.10", "2.1"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("-5.50", "-5.5"),
        ("0", "0"),
    ],
)
def test_a_number_has_one_text(value, text):
    assert decimal_text(value) == canonical_decimal(Decimal(value)) == text
    assert canonical_scalar(Decimal(value)) == "#" + text


def test_values_of_different_types_are_never_equal():
    values = [True, False, 1, 0, "1", "True", "#1", "'1"]
    assert [[same_value(a, b) for b in values] for a in values] == [
        [a is b for b in values] for a in values
    ]


@pytest.mark.parametrize("text", ["", "1e3", "+1", "01", "1.", ".5", "1\n", "\uff11", "NaN"])
def test_another_spelling_is_no_decimal(text):
    with pytest.raises(ValueError, match="plain decimal"):
        decimal_text(text)


@pytest.mark.parametrize("text", ["2026-03-02T18:30:00", "2026-03-02T18:30:00Z\n", "x"])
def test_another_form_is_no_instant(text):
    with pytest.raises(ValueError, match="instant"):
        instant(text)


def test_a_key_stands_once():
    assert unique_keys([("a", 1), ("b", 2)]) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="twice"):
        unique_keys([("a", 1), ("a", 1)])


def test_defaults_fill_what_is_not_stated():
    action = houses.contract().action
    assert with_defaults(action, {"temperature": 20}) == {
        "temperature": 20,
        "minutes": 60,
        "mode": "quiet",
    }
    assert with_defaults(action, {"minutes": 5, "mode": "fast"}) == {"minutes": 5, "mode": "fast"}


@pytest.mark.parametrize(
    ("tool", "arguments", "detail"),
    [
        ("t" * 300, {}, "t" * 200),
        ("climate_set", {"target": "x" * 300}, "x" * 200),
        ("climate_set", {"target": "climate.den"}, "schema"),
        ("climate_set", {"target": "climate.den", "temperature": 30}, "exact"),
    ],
)
def test_every_denial_reports_every_predicate_and_what_did_not_fit(tool, arguments, detail):
    denied = decide(houses.contract(), Proposal(tool, arguments), houses.snapshot(), Binding.EXACT)
    assert isinstance(denied, Deny)
    assert denied.detail == detail
    assert len(denied.predicates) == 6


def test_a_denial_by_a_predicate_quotes_it():
    data = houses.snapshot_data()
    houses.put(data, "/versions/gateway/value", "9")
    right = Proposal("climate_set", {"target": "climate.den", "temperature": Decimal("26.5")})
    denied = decide(houses.contract(), right, houses.snapshot(data), Binding.EXACT)
    assert isinstance(denied, Deny)
    assert denied.detail == denied.predicates[-1].detail != ""


def test_without_a_free_band_nothing_is_free():
    house = houses.contract_data()
    house["free_band"] = None
    mild = Proposal("climate_set", {"target": "climate.den", "temperature": 20})
    denied = decide(houses.contract(house), mild, houses.snapshot(), Binding.CANONICAL)
    assert isinstance(denied, Deny)
    assert denied.parameter == "temperature"


def banded(arguments, binding=Binding.CANONICAL, *, required=True):
    house = houses.contract_data()
    house["action"]["parameters"]["temperature"]["required"] = required
    proposal = Proposal("climate_set", {"target": "climate.den", **arguments})
    return decide(houses.contract(house), proposal, houses.snapshot(), binding)


@pytest.mark.parametrize("temperature", [Decimal("20.25"), "20", True])
def test_the_schema_holds_inside_the_free_band(temperature):
    denied = banded({"temperature": temperature})
    assert isinstance(denied, Deny)
    assert (denied.detail, denied.parameter) == ("schema", "temperature")


def test_an_optional_banded_parameter_that_is_absent_lies_in_no_band():
    denied = banded({}, required=False)
    assert isinstance(denied, Deny)
    assert (denied.detail, denied.parameter) == ("canonical", "temperature")


def test_defaults_are_filled_in_beside_the_free_band_as_the_binding_says():
    stated = {"temperature": 20, "minutes": 60}
    assert isinstance(banded(stated), Allow)
    assert isinstance(banded(stated, Binding.EXACT), Deny)


def test_the_record_of_an_action_in_full():
    allowed = banded({"temperature": 20, "mode": "quiet", "minutes": 60})
    assert isinstance(allowed, Allow)
    assert action_record(allowed.action) == {
        "service": "climate.set",
        "target": "climate.den",
        "parameters": {"temperature": "#20", "mode": "'quiet", "minutes": "#60"},
    }


@pytest.mark.parametrize(
    ("value", "text"), [("2E+1", "20"), ("1E-7", "0.0000001"), ("1.50E+2", "150"), ("-0E+3", "0")]
)
def test_an_exponent_is_written_out(value, text):
    assert canonical_decimal(Decimal(value)) == text


@pytest.mark.parametrize("name", ["boost!", "boost\n", "boost two", "boost.two"])
def test_a_name_is_a_name_to_its_end(name):
    house = houses.contract_data()
    house["predicates"][0]["id"] = name
    with pytest.raises(DocumentError, match="is not a name"):
        houses.contract(house)


@pytest.mark.parametrize("now", ["2026-03-02 18:30:00", "soon"])
def test_the_time_of_a_world_is_an_instant(now):
    world = houses.world_data()
    world["now"] = now
    with pytest.raises(DocumentError, match="is not an instant"):
        houses.world(world)
