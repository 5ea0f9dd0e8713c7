"""What the outcome root covers and what it leaves out; whose fault an error is."""

from __future__ import annotations

import copy

import pytest

from retire.domain.cell import Cell, Condition, Sample
from retire.domain.errors import (
    EvidenceError,
    IncompleteError,
    InputError,
    NotAReduction,
    RetireError,
)
from retire.domain.outcome import D1Outcome, D2Outcome
from retire.domain.trace import cell_json, cell_of, leaf, outcome_of, outcome_root, record_root


def body(repetition=1, **changes):
    cell = Cell(Sample.AUDIT, "m", "ACC", Condition.B4, "invalid_state", repetition)
    return {
        "cell": cell_json(cell),
        "attempt": "a" * 32,
        "attempt_number": 1,
        "earlier_attempts": [],
        "prompt": "p",
        "answer": {"mode": "json"},
        "answer_digest": "q",
        "d1": {"outcome": "proposal", "rule": "", "tool": "t", "arguments": {}},
        "d2": {
            "outcome": "deny",
            "basis": "",
            "reason": "state_unmet",
            "detail": "the value is 'open'",
            "parameter": "",
            "predicates": {"state": False},
            "record": {"seq": 1, "hash": "h", "nonce": "n"},
            "act": None,
        },
        "d3": {
            "complete": True,
            "intended": False,
            "protected": False,
            "evidence_class": "target_state_read",
            "last_seq": 0,
            "record": {"seq": 1, "hash": "h"},
        },
        "snapshot": "s",
        "contract": "c",
        "effect": "e",
        "microseconds": {"freeze": 1},
        **changes,
    }


def changed(path, value):
    data = copy.deepcopy(body())
    place = data
    *parents, last = path.split("/")
    for part in parents:
        place = place[part]
    place[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("attempt", "b" * 32),
        ("attempt_number", 2),
        ("earlier_attempts", ["c" * 32]),
        ("microseconds", {}),
        ("d2/record", {"seq": 9, "hash": "z", "nonce": "y"}),
        ("d2/detail", "other words"),
        ("d3/record", None),
        ("d3/last_seq", 12),
    ],
)
def test_where_and_when_a_cell_ran_does_not_matter(path, value):
    assert leaf(changed(path, value)) == leaf(body())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("cell/member", "authorized"),
        ("cell/repetition", 2),
        ("prompt", "x"),
        ("answer_digest", "x"),
        ("d1/outcome", "invalid"),
        ("d1/rule", "not_json"),
        ("d2/outcome", "allow"),
        ("d2/basis", "free_band"),
        ("d2/reason", "grant_absent"),
        ("d2/parameter", "x"),
        ("d2/predicates", {"state": True}),
        ("d3/complete", False),
        ("d3/intended", True),
        ("d3/protected", True),
        ("d3/evidence_class", "none"),
        ("snapshot", "x"),
        ("contract", "x"),
        ("effect", "x"),
    ],
)
def test_what_a_cell_says_is_covered(path, value):
    assert leaf(changed(path, value)) != leaf(body())


def test_the_outcome_root_knows_cells_not_the_order_they_ran_in():
    bodies = [body(number) for number in (1, 2, 10)]
    assert outcome_root(bodies) == outcome_root(reversed(bodies))
    assert outcome_root(bodies) != outcome_root(bodies[:2])
    assert record_root(["a", "b"]) != record_root(["b", "a"])


def test_an_outcome_is_read_from_its_trace():
    outcome = outcome_of(body())
    assert outcome.cell == cell_of(body())
    assert (outcome.d1, outcome.d2) == (D1Outcome.PROPOSAL, D2Outcome.DENY)
    assert (outcome.complete, outcome.intended, outcome.protected) == (True, False, False)
    assert outcome.predicates == {"state": False}


@pytest.mark.parametrize(
    ("kind", "code"),
    [(InputError, 2), (NotAReduction, 2), (IncompleteError, 3), (EvidenceError, 1)],
)
def test_an_error_says_what_where_and_how_to_mend_it(kind, code):
    error = kind("it is torn", where="SKILL.md:3", mend="Mend it")
    assert isinstance(error, RetireError)
    assert error.exit_code == code
    assert str(error) == "SKILL.md:3: it is torn. Mend it"
    assert str(kind("it is torn")) == "it is torn"
