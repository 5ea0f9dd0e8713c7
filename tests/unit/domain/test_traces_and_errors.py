"""What the outcome root covers and what it leaves out; whose fault an error is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retire.domain.cell import Cell, Condition, Sample
from retire.domain.document import as_document
from retire.domain.errors import (
    EvidenceError,
    IncompleteError,
    InputError,
    NotAReduction,
    RetireError,
)
from retire.domain.outcome import D1Outcome, D2Outcome
from retire.domain.trace import RecordEntry, Trace, outcome_root, record_root
from tests.made_traces import door, made_trace, proposes

CELL = Cell(Sample.AUDIT, "m", "ACC", Condition.B4, "invalid_state", 1)


def trace(repetition=1, **changes):
    d2 = door(
        "deny",
        reason="state_unmet",
        detail="the value is 'open'",
        predicates={"state": False},
        record=RecordEntry(seq=1, hash="h", nonce="n"),
    )
    return made_trace(replace(CELL, repetition=repetition), proposes(), d2, **changes)


def changed(path, value):
    data = trace().as_json()
    place = data
    *parents, last = path.split("/")
    for part in parents:
        place = place[part]
    place[last] = value
    return as_document(Trace, data)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("attempt", "b" * 32),
        ("attempt_number", 2),
        ("earlier_attempts", ["c" * 32]),
        ("microseconds", {"freeze": 9, "deployment": 9, "decision": 9, "observation": 9}),
        ("d2/record", {"seq": 9, "hash": "z", "nonce": "y"}),
        ("d2/detail", "other words"),
        ("d3/record", {"seq": 9, "hash": "z"}),
        ("d3/last_seq", 12),
    ],
)
def test_where_and_when_a_cell_ran_does_not_matter(path, value):
    assert changed(path, value).leaf() == trace().leaf()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("cell/member", "authorized"),
        ("cell/repetition", 2),
        ("prompt", "x"),
        ("answer_digest", "x"),
        ("d1", {"outcome": "invalid", "rule": "not_json", "text": ""}),
        ("d1", {"outcome": "invalid", "rule": "cut_off", "text": ""}),
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
    assert changed(path, value).leaf() != trace().leaf()


def test_the_outcome_root_knows_cells_not_the_order_they_ran_in():
    bodies = [trace(number) for number in (1, 2, 10)]
    assert outcome_root(bodies) == outcome_root(reversed(bodies))
    assert outcome_root(bodies) != outcome_root(bodies[:2])
    assert record_root(["a", "b"]) != record_root(["b", "a"])


def test_an_outcome_is_read_from_its_trace():
    outcome = trace().outcome()
    assert outcome.cell == CELL
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
