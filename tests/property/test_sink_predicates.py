"""The sink's reading of a contract agrees with a second one, written from the words alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink.contract import evaluate
from tests import houses, naive

pytestmark = pytest.mark.property

INSTANTS = st.one_of(
    st.sampled_from(
        [
            houses.NOW,
            "2026-05-04T17:59:59Z",
            "2026-05-04T17:58:00Z",
            "2026-05-04T17:57:59Z",
            "2026-05-04T18:00:01Z",
            "2026-05-04T19:00:00Z",
            "2026-05-04T17:00:00Z",
        ]
    ),
    st.sampled_from(
        [
            "",
            "now",
            "2026-05-04",
            "2026-05-04T18:00:00+00:00",
            "2026-05-04 18:00:00Z",
            "2026-05-04T18:00:00.5Z",
            "2026-02-30T18:00:00Z",
            "2026-05-04T24:00:00Z",
            "2026-05-04T18:00:60Z",
            "\uff12026-05-04T18:00:00Z",
            "2026-05-04T18:00:00Z\n",
        ]
    ),
)
NUMBERS = st.one_of(
    st.sampled_from(["-10", "-10.0", "-10.01", "12.5", "12.50", "12.51", "12.500000000000000001"]),
    st.sampled_from(
        ["", "NaN", "1e1", "+3", " 3", "03", "\u0663", "\uff13", "3.", ".5", "-0", "1_0"]
    ),
    st.decimals(min_value=-20, max_value=20, places=2).map(str),
)
PEOPLE = st.sampled_from(["person.ann", "person.bo", "person.cy", "person.guest"])
ANSWERS = st.sampled_from(["yes", "no", "Yes", "yes ", "withdrawn", "", "true"])
HOLDERS = st.sampled_from(["agent.house", "agent.House", "agent.house ", "person.ann", ""])
GRANTS = st.fixed_dictionaries(
    {
        "name": st.just("boost"),
        "holder": HOLDERS,
        "service": st.sampled_from(["climate.set", "climate.set_all", "climate.*", ""]),
        "target": st.sampled_from(["climate.den", "climate.hall", "climate.", "climate.den2"]),
        "status": st.sampled_from(["active", "revoked", "ACTIVE", "active ", ""]),
        "not_before": INSTANTS,
        "not_after": INSTANTS,
    }
)
VOTES = st.dictionaries(
    PEOPLE,
    st.fixed_dictionaries({"name": st.just("x"), "answer": ANSWERS, "at": st.just(houses.NOW)}),
)
FACTS = st.fixed_dictionaries(
    {
        "name": st.just("f"),
        "value": st.one_of(
            NUMBERS, st.sampled_from(["closed", "locked", "open", "Closed", "closed "])
        ),
        "reported_at": INSTANTS,
        "version": st.integers(0, 9),
    },
    optional={"unit": st.sampled_from(["C", "c", "F", ""])},
)
VERSIONS = st.fixed_dictionaries(
    {"name": st.just("v"), "value": st.sampled_from(["4.1", "4.2", "4.10", "4", ""])}
)


@st.composite
def snapshots(draw):
    """The household with a few places drawn anew, or gone."""
    data = houses.snapshot_data()
    if draw(st.integers(0, 3)) == 0:
        data["as_of"] = draw(INSTANTS)
    kinds = {"grants": GRANTS, "facts": FACTS, "versions": VERSIONS}
    for section, strategy in kinds.items():
        for name in data[section]:
            choice = draw(st.integers(0, 7))
            if choice == 0:
                data[section] = {key: v for key, v in data[section].items() if key != name}
            elif choice == 1:
                data[section] = {**data[section], name: draw(strategy)}
            elif choice <= 4:
                field = draw(st.sampled_from(sorted(data[section][name])))
                drawn = draw(strategy)
                if field in drawn:
                    data[section][name] = {**data[section][name], field: drawn[field]}
    for name in data["consents"]:
        if draw(st.booleans()):
            data["consents"][name]["votes"] = draw(VOTES)
    return data


@st.composite
def contracts(draw):
    """The household's contract with predicates drawn anew."""
    data = houses.contract_data()
    predicates = [
        {"kind": "grant", "grant": draw(st.sampled_from(["boost", "other"]))},
        {"kind": "version", "component": "gateway", "one_of": draw(st.sampled_from([["4.1"]]))},
    ]
    people = draw(st.lists(PEOPLE, min_size=1, unique=True))
    predicates.append(
        {
            "kind": "consent",
            "consent": draw(st.sampled_from(["warm", "bill", "none"])),
            "principals": people,
            "quorum": draw(st.integers(1, len(people))),
        }
    )
    ages = draw(st.sampled_from([{}, {"maximum_age_seconds": 1}, {"maximum_age_seconds": 120}]))
    bounds = st.sampled_from([-10, 3.5, 12.5])
    numeric = draw(
        st.sampled_from([{"minimum": draw(bounds)}, {"maximum": draw(bounds)}])
        .map(lambda item: {**item, "unit": "C"})
        .flatmap(lambda item: st.sampled_from([item, {"one_of": ["closed", "locked", ""]}]))
    )
    fact = draw(st.sampled_from(["window", "outdoor", "none"]))
    predicates.append({"kind": "fact", "fact": fact, **numeric, **ages})
    predicates = draw(st.permutations(predicates))
    data["predicates"] = [{**item, "id": f"p{n}"} for n, item in enumerate(predicates)]
    return data


def agree(contract_data, snapshot_data):
    values = evaluate(houses.contract(contract_data), houses.snapshot(snapshot_data))
    assert {value.id: value.reason for value in values} == naive.reasons(
        contract_data, snapshot_data
    )
    assert all(value.value == (not value.reason) for value in values)
    assert [value.id for value in values] == [item["id"] for item in contract_data["predicates"]]


@settings(max_examples=400, deadline=None)
@given(snapshots())
def test_both_readings_agree_on_the_household(data):
    agree(houses.contract_data(), data)


@settings(max_examples=300, deadline=None)
@given(contracts(), snapshots())
def test_both_readings_agree_on_generated_contracts(contract_data, snapshot_data):
    agree(contract_data, snapshot_data)
