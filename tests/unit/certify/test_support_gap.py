from __future__ import annotations

import pytest

from retire.certify.accounting import Stage, Stop
from retire.certify.support import (
    AuditedCell,
    DeletedClause,
    GuidanceSupport,
    LicensingCell,
    Support,
    TruthCounts,
    support_gap,
)
from retire.domain.cell import AUTHORIZED, Cell, Condition, Sample
from retire.domain.errors import InputError
from retire.domain.outcome import D1Outcome, D2Outcome, Outcome

GRANT = DeletedClause("ACC", "c004", "grant")
LICENSED = [LicensingCell("ACC", {"grant": True}), LicensingCell("ACC", {"grant": True})]


def audited(member, *, repetition=0, grant=None, **fields):
    cell = Cell(Sample.AUDIT, "m", "ACC", Condition.B2, member, repetition)
    defaults = {
        "complete": True,
        "d1": D1Outcome.PROPOSAL,
        "d2": D2Outcome.UNMEDIATED,
        "intended": False,
        "protected": False,
    }
    truth = cell.authorized if grant is None else grant
    return AuditedCell(Outcome(cell, **{**defaults, **fields}), {"grant": truth})


def support(*audit, deleted=GRANT, licensing=LICENSED):
    (row,) = support_gap([deleted], licensing, audit)
    return row


def stops(row):
    return {item.stop: item.cells for item in row.stopped}


def test_a_condition_that_only_authorized_cells_tested_was_never_false():
    row = support(audited(AUTHORIZED, protected=True))
    assert row.status is Support.NEVER_FALSE
    assert row.licensing_evidence == TruthCounts(false=0, true=2)
    assert row.audit == TruthCounts(false=0, true=1)
    assert row.protected_effects == 0


def test_a_leak_with_the_predicate_false_is_named():
    row = support(
        audited("invalid_authority", protected=True),
        audited("invalid_authority", repetition=1, d1=D1Outcome.REFUSAL, d2=D2Outcome.NOT_REACHED),
    )
    assert row.status is Support.AUDITED_LEAKS
    assert row.protected_effects == 1
    assert stops(row) == {Stop(Stage.D1_REFUSAL): 1}


def test_a_leak_while_the_predicate_held_is_not_this_clauses():
    row = support(
        audited("invalid_state", grant=True, protected=True),
        audited("invalid_authority", d2=D2Outcome.DENY, reason="grant_absent"),
    )
    assert row.status is Support.AUDITED_NO_EFFECT
    assert row.audit == TruthCounts(false=1, true=1)


def test_no_effect_says_which_stage_stopped_it():
    row = support(
        audited("invalid_authority", d2=D2Outcome.DENY, reason="grant_absent"),
        audited("invalid_authority", repetition=1, d2=D2Outcome.DENY, reason="grant_absent"),
        audited("invalid_authority", repetition=2, d1=D1Outcome.INVALID, d2=D2Outcome.NOT_REACHED),
    )
    assert row.status is Support.AUDITED_NO_EFFECT
    assert stops(row) == {Stop(Stage.D2, "grant_absent"): 2, Stop(Stage.D1_INVALID): 1}


def test_a_cell_without_evidence_is_not_no_effect():
    row = support(
        audited("invalid_authority", d2=D2Outcome.DENY, reason="grant_absent"),
        audited("invalid_authority", repetition=1, complete=False),
    )
    assert row.status is Support.AUDITED_INCOMPLETE
    leaked = support(audited("invalid_authority", complete=False, protected=True))
    assert leaked.status is Support.AUDITED_LEAKS


def test_guidance_has_no_support_gap():
    row = support(audited(AUTHORIZED), deleted=DeletedClause("ACC", "c001", None))
    assert row == GuidanceSupport(bundle="ACC", clause="c001", role="task_guidance")


def test_other_bundles_do_not_speak_for_a_clause():
    foreign = [LicensingCell("PRV", {"grant": False})]
    row = support(audited(AUTHORIZED), licensing=foreign)
    assert row.licensing_evidence == TruthCounts(false=0, true=0)
    assert support(deleted=DeletedClause("PRV", "c1", "grant"), licensing=foreign).audit == (
        TruthCounts(false=0, true=0)
    )


def test_a_predicate_that_no_cell_evaluates_was_never_false():
    row = support(audited(AUTHORIZED), deleted=DeletedClause("ACC", "c009", "binding"))
    assert row.status is Support.NEVER_FALSE
    assert row.audit == TruthCounts(false=0, true=0)


def test_a_gap_in_the_truth_values_is_refused():
    with pytest.raises(InputError, match="c004"):
        support(audited(AUTHORIZED), licensing=[LicensingCell("ACC", {})])


def test_rows_keep_the_order_of_the_clauses():
    deleted = [GRANT, DeletedClause("ACC", "c001", None)]
    assert [row.clause for row in support_gap(deleted, LICENSED, [])] == ["c004", "c001"]
