"""What a changed join would get wrong unnoticed: stale acts, cut attempts, and where it points."""

from __future__ import annotations

import pytest

from retire.certify.joining import Records, join, leaks_without_row, outcomes_of
from retire.domain.cell import AUTHORIZED, Cell, Condition, Sample
from retire.domain.document import as_document
from retire.domain.outcome import D1Outcome, D2Outcome
from retire.domain.trace import CellName
from tests.unit.domain.test_joining_of_records import DOORS, Run

CUT = "e" * 32


def undisturbed(records, heads):
    """Leave the evidence as it is."""


@pytest.fixture
def run():
    run = Run()
    run.cell(Condition.B4)
    run.cell(Condition.B6)
    run.cell(Condition.B4, "invalid_authority", allow=False)
    return run


def cell_of(row):
    return as_document(CellName, row["cell"]).cell


def key(run, index=0):
    return cell_of(run.rows[index]).key


def untraced(records):
    return leaks_without_row(records, {row.body.cell.cell.key for row in records.rows})


def outcomes(records, declared):
    traced = [row.body.outcome() for row in records.rows]
    return outcomes_of(traced, untraced(records), declared)


def findings(run, spoil=undisturbed):
    return [(item.kind, item.where) for item in join(run.evidence(spoil))]


def stale(run, index, door, detail="revision", act="refused"):
    """The world refused the act: the intent stands, the row says deny, nothing happened."""
    row = run.rows[index]
    run.record(door, {"kind": "outcome", "attempt": row["attempt"], "act": act, "detail": detail})
    row["d2"] |= {"outcome": "deny", "basis": "", "reason": "snapshot_mismatch"}


@pytest.mark.parametrize(("index", "door"), [(0, "sink-canonical"), (1, "sink-exact")])
def test_an_act_refused_as_stale_is_a_denial(run, index, door):
    stale(run, index, door)
    assert findings(run) == []


@pytest.mark.parametrize("outcome", [{"act": "done"}, {"act": "in_doubt"}, {"detail": "busy"}])
def test_no_other_outcome_turns_an_allow_into_a_denial(run, outcome):
    stale(run, 0, "sink-canonical", **outcome)
    assert findings(run) == [("decision_differs", key(run))]


def test_an_outcome_of_another_door_or_attempt_explains_nothing(run):
    stale(run, 0, "sink-exact")
    assert findings(run) == [("decision_differs", key(run))]


def test_an_attempt_with_a_row_needs_no_other_account_of_it(run):
    run.attempts.clear()
    assert findings(run) == []


def test_a_finding_points_at_its_cell_attempt_or_record(run):
    attempt = run.rows[0]["attempt"]
    run.record("direct", {"kind": "direct", "attempt": attempt})
    assert findings(run) == [("wrong_door", key(run))]
    run.rows[1]["d2"]["record"] = None
    assert ("decision_missing", key(run, 1)) in findings(run)
    run.rows[2]["d3"]["record"] = {"seq": 1, "hash": "sha256:" + "9" * 64}
    assert ("sighting_missing", key(run, 2)) in findings(run)
    run.rows[0]["d3"]["intended"] = False
    assert ("sighting_differs", key(run)) in findings(run)
    run.stray.append({"attempt": "ghost", "seq": 7})
    assert findings(run)[-1] == ("stray_effect", "attempt ghost")


def test_an_effect_digest_of_the_row_is_compared(run):
    run.rows[0]["effect"] = "sha256:" + "0" * 64
    assert findings(run) == [("sighting_differs", key(run))]


def test_a_decision_for_a_row_without_a_proposal_points_at_the_row(run):
    row = run.cell(Condition.B4, outcome="refusal")
    run.record("sink-canonical", {"kind": "decision", "attempt": row["attempt"]})
    assert findings(run) == [("decision_without_proposal", cell_of(row).key)]


def test_what_belongs_to_no_attempt_points_at_the_attempt(run):
    run.record("sink-exact", {"kind": "decision", "attempt": CUT, "decision": "deny"})
    [finding] = join(run.evidence())
    assert (finding.kind, finding.where) == ("decision_without_proposal", f"attempt {CUT}")
    assert "entry 2 of sink-exact" in finding.what
    run.sight(CUT, protected=True)
    assert ("effect_without_decision", f"attempt {CUT}") in findings(run)


def test_a_forgotten_leak_points_at_the_cell(run):
    run.attempts[CUT] = key(run, 2)
    run.record("direct", {"kind": "direct", "attempt": CUT})
    run.sight(CUT, protected=True)
    assert findings(run) == [("leak_forgotten", key(run, 2))]


def test_a_leak_of_a_development_task_is_no_cells_leak(run):
    run.attempts[CUT] = "development/first"
    run.record("direct", {"kind": "direct", "attempt": CUT})
    run.sight(CUT, protected=True)
    assert findings(run) == []
    assert untraced(run.evidence()) == ()


@pytest.mark.parametrize("name", [*DOORS, "observer"])
def test_a_record_at_fault_is_named(run, name):
    def unsigned(records, heads):
        del heads[name]

    assert ("head", name) in findings(run, unsigned)
    assert ("not_anchored", name) in findings(run, unsigned)


def test_a_missing_countersignature_points_at_the_observer(run):
    def spoil(records, heads):
        heads["direct"], heads["sink-exact"] = heads["sink-exact"], heads["direct"]

    assert ("head", "observer") in findings(run, spoil)


def test_a_broken_chain_of_rows_points_at_the_row(run):
    evidence = run.evidence()
    evidence.rows[1] = evidence.rows[1].model_copy(update={"hash": "sha256:" + "0" * 64})
    assert [(item.kind, item.where) for item in join(evidence)] == [("trace_chain", "trace 2")]


def unfinished(run, sighted=True):
    """A cell whose only attempt was cut: a sighting, no row."""
    cell = Cell(Sample.AUDIT, "m", "ACC", Condition.B4, "invalid_authority", 9)
    run.attempts[CUT] = cell.key
    run.sight(CUT, protected=sighted)
    return cell


def test_a_leak_in_a_cut_attempt_is_not_hidden_by_the_missing_row(run):
    cell = unfinished(run)
    assert untraced(run.evidence()) == (cell.key,)
    *_, leak = outcomes(run.evidence(), [cell])
    assert (leak.cell, leak.complete, leak.protected) == (cell, False, True)
    assert (leak.d1, leak.d2, leak.intended) == (D1Outcome.PROPOSAL, D2Outcome.NOT_REACHED, False)


def test_leaks_are_listed_once_in_order_and_harmless_sightings_not(run):
    cell = unfinished(run)
    run.sight(CUT, protected=True)
    other = Cell(Sample.AUDIT, "m", "ACC", Condition.B2, "invalid_authority", 9)
    run.attempts["d" * 32] = other.key
    run.sight("d" * 32, protected=True)
    run.attempts["c" * 32] = key(run) + "/unsighted"
    run.sight("c" * 32, protected=False)
    assert untraced(run.evidence()) == tuple(sorted([cell.key, other.key]))


def test_a_finished_cell_has_no_leak_without_a_row(run):
    unfinished(run, sighted=False)
    run.sight(run.rows[0]["attempt"], protected=True)
    assert untraced(run.evidence()) == ()


def test_an_unreadable_line_or_record_hides_no_other_leak(run):
    cell = unfinished(run)

    def garbled(records, heads):
        records["observer"] = b"no entry\n" + records["observer"]

    assert untraced(run.evidence(garbled)) == (cell.key,)
    whole = run.evidence()
    gone = Records(whole.rows, {}, whole.heads, [], run.attempts)
    assert untraced(gone) == ()


def test_the_outcomes_are_those_of_declared_cells(run):
    cell = unfinished(run)
    declared = [cell_of(row) for row in run.rows[:2]]
    found = outcomes(run.evidence(), declared)
    assert [outcome.cell for outcome in found] == declared
    assert [outcome.intended for outcome in found] == [True, True]
    assert [outcome.cell.member for outcome in found] == [AUTHORIZED, AUTHORIZED]
    assert len(outcomes(run.evidence(), [*declared, cell])) == 3


def test_the_attempt_of_the_row_is_the_one_compared(run):
    run.rows[0]["d3"]["attempt"] = "f" * 32
    assert findings(run) == []
    run.rows[0]["d3"] = run.sight("d" * 32, protected=True)
    assert ("sighting_differs", key(run)) in findings(run)
