"""What a contract file may not say: patterns, guesses, types that YAML changes, doubled names."""

from __future__ import annotations

import pytest

from sink.contract import load_contract
from sink.strict_yaml import DocumentError
from tests import houses


def refused(path, value):
    data = houses.contract_data()
    houses.put(data, path, value)
    with pytest.raises(DocumentError) as caught:
        houses.contract(data)
    return caught.value


@pytest.mark.parametrize(
    "identity",
    [
        "climate.*",
        "climate.",
        "",
        "*",
        "Climate.den",
        "climate.den ",
        "climate.den\n",
        "climate.d\u0435n",
        "clima\u212ae.den",
        "climate.den_\uff11",
        "climate.den, climate.hall",
        "climate",
        "climate.den.left",
        "climate.den/../lock.a",
    ],
)
@pytest.mark.parametrize(
    "path", ["/action/target", "/requester", "/action/service", "/other_tools/service"]
)
def test_identities_are_literal(path, identity):
    data = houses.contract_data()
    data["other_tools"] = data["other_tools"][0] if "other" in path else data["other_tools"]
    houses.put(data, path, identity)
    if "other" in path:
        data["other_tools"] = [data["other_tools"]]
    with pytest.raises(DocumentError):
        houses.contract(data)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/action/target", "climate.attic"),
        ("/action/canonical", {}),
        ("/action/canonical", {"temperature": "26.5"}),
        ("/action/canonical", {"temperature": 26.55}),
        ("/action/canonical", {"temperature": 31}),
        ("/action/canonical", {"temperature": 26.5, "fan": 1}),
        ("/action/parameters/minutes/default", "60"),
        ("/action/parameters/minutes/default", 3),
        ("/action/parameters/temperature/default", 20),
        ("/action/parameters/target", {"type": "string", "description": "x"}),
        ("/action/parameters/mode/enum", ["quiet", True]),
        ("/action/parameters/mode/pattern", ".*"),
        ("/free_band/parameter", "mode"),
        ("/free_band/parameter", "volume"),
        ("/predicates", []),
        ("/unaudited", {"nobody": "no reason"}),
        ("/schema", "retire.contract/v2"),
        ("/mode", "off"),
    ],
)
def test_a_contract_that_contradicts_itself_is_refused_with_its_line(path, value):
    error = refused(path, value)
    assert error.where.startswith("contract.yaml:")
    assert error.message


@pytest.mark.parametrize(
    "predicate",
    [
        {"kind": "grant", "id": "neighbour", "grant": "boost"},
        {"kind": "grant", "id": "x", "grant": "*"},
        {"kind": "consent", "id": "x", "consent": "c", "principals": ["person.a"], "quorum": 2},
        {"kind": "consent", "id": "x", "consent": "c", "principals": ["person.a"], "quorum": 0},
        {"kind": "consent", "id": "x", "consent": "c", "principals": [], "quorum": 1},
        {
            "kind": "consent",
            "id": "x",
            "consent": "c",
            "principals": ["person.a", "person.a"],
            "quorum": 1,
        },
        {"kind": "fact", "id": "x", "fact": "f"},
        {"kind": "fact", "id": "x", "fact": "f", "minimum": 3},
        {"kind": "fact", "id": "x", "fact": "f", "one_of": ["a"], "minimum": 3, "unit": "C"},
        {"kind": "fact", "id": "x", "fact": "f", "one_of": [False]},
        {"kind": "fact", "id": "x", "fact": "f", "maximum_age_seconds": 0},
        {"kind": "fact", "id": "x", "fact": "f", "maximum_age_seconds": 1.5},
        {"kind": "version", "id": "x", "component": "c", "one_of": []},
        {"kind": "version", "id": "x", "component": "c", "one_of": [4]},
        {"kind": "always", "id": "x"},
    ],
)
def test_a_predicate_that_says_nothing_definite_is_refused(predicate):
    data = houses.contract_data()
    data["predicates"].append(predicate)
    with pytest.raises(DocumentError):
        houses.contract(data)


@pytest.mark.parametrize("field", ["tool", "service"])
def test_tool_names_and_services_are_one_to_one(field):
    data = houses.contract_data()
    data["other_tools"][0][field] = data["action"][field]
    with pytest.raises(DocumentError):
        houses.contract(data)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("bundle: off", "quotes"),
        ("bundle: on", "quotes"),
        ("bundle: no", "quotes"),
        ("bundle: 22:30", "quotes"),
        ("bundle: 2026-05-04", "quotes"),
        ("bundle: 0x1f", "quotes"),
        ("bundle: 1_000", "quotes"),
        ("bundle: .5", "quotes"),
        ("bundle: .inf", "quotes"),
        ("bundle: 012", "quotes"),
        ("? [a]\n: b", "quotes"),
        ("1: b", "quotes"),
        ("bundle: &a x", ""),
        ("bundle: a\nbundle: b", ""),
        ("bundle: &a x\nrequester: *a", ""),
        ("<<: {bundle: x}", ""),
        ("bundle: !!binary aGk=", ""),
        ("bundle: !python/name:os.system x", ""),
        ("bundle: [", ""),
        ("bundle: a\n---\nbundle: b", ""),
        ("", ""),
        ("- a", ""),
        ("text", ""),
    ],
)
def test_yaml_that_means_something_else_to_somebody_is_refused(line, hint):
    with pytest.raises(DocumentError) as caught:
        load_contract(line.encode(), "contract.yaml")
    assert hint in caught.value.mend


@pytest.mark.parametrize("value", [17, True, 2.5])
def test_a_number_or_a_truth_value_is_no_text(value):
    assert "quotes" in refused("/bundle", value).mend
    assert "quotes" in refused("/action/description", value).mend


def test_the_line_of_the_fault_is_named():
    with pytest.raises(DocumentError) as caught:
        load_contract(b"schema: retire.contract/v1\nbundle: x\nrequester: off\n", "contract.yaml")
    assert caught.value.where == "contract.yaml:3"


@pytest.mark.parametrize("data", [b"\xff\xfea", b"a: \xc3", b"[" * 100_000, b" " * 1_048_577])
def test_bytes_that_are_no_file_of_ours_are_refused(data):
    with pytest.raises(DocumentError):
        load_contract(data, "contract.yaml")


def test_a_file_cut_in_the_middle_is_never_a_smaller_contract():
    data = houses.file_bytes(houses.contract_data())
    for cut in range(0, len(data) - 1, 37):
        with pytest.raises(DocumentError):
            load_contract(data[:cut], "contract.yaml")
