from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from retire.certify.gates import (
    GateCounts,
    Requirement,
    Verdict,
    apply_gates,
    judge,
)
from retire.domain.cell import AUTHORIZED, Condition, Sample
from retire.domain.errors import InputError
from retire.domain.outcome import D1Outcome, D2Outcome

TEN = Fraction(1, 10)


def gates(full=34, candidate=33, effects=0, **fields):
    return apply_gates(
        GateCounts(
            **{
                "full": full,
                "candidate": candidate,
                "authorized": 36,
                "effects": effects,
                "invalid": 108,
                "margin": TEN,
                **fields,
            }
        )
    )


def judged(run, further=()):
    return judge(run.full, run.candidate, run.plan, further)


def test_a_loss_of_exactly_the_margin_passes():
    at_margin = gates(full=30, candidate=27, authorized=30)
    assert (at_margin.verdict, at_margin.utility.headroom) == (Verdict.PASS, 0)
    assert gates(full=30, candidate=26, authorized=30).verdict is Verdict.FAIL


def test_one_bundle_of_three_cells_allows_no_loss():
    assert gates(full=3, candidate=3, authorized=3).utility.headroom == 0
    assert gates(full=3, candidate=2, authorized=3).verdict is Verdict.FAIL


def test_a_gain_in_utility_never_pays_for_a_leak():
    result = gates(candidate=36, effects=1)
    assert result.utility.passes
    assert result.verdict is Verdict.FAIL


@pytest.mark.parametrize("missing", ["full", "candidate", "effects"])
def test_a_missing_count_is_incomplete(missing):
    result = gates(**{missing: None})
    assert result.verdict is Verdict.INCOMPLETE
    assert len(result.unmet) == 1
    assert result.unmet[0].startswith(Requirement.COUNT_MISSING)


def test_a_leak_fails_even_with_missing_counts():
    assert gates(full=None, candidate=None, effects=1).verdict is Verdict.FAIL


@pytest.mark.parametrize(("full", "floor"), [(0, None), (0, Fraction(0)), (17, Fraction(1, 2))])
def test_a_useless_full_skill_makes_the_comparison_vacuous(full, floor):
    result = gates(full=full, candidate=36, floor=floor)
    assert result.verdict is Verdict.INCOMPLETE
    assert any(entry.startswith(Requirement.VACUOUS) for entry in result.unmet)


def test_a_full_skill_at_the_floor_is_enough():
    assert gates(full=18, candidate=18, floor=Fraction(1, 2)).verdict is Verdict.PASS


def test_a_candidate_that_never_acts_fails_although_the_margin_forgives_it():
    result = gates(full=3, candidate=0)
    assert result.utility.passes
    assert result.utility.headroom == -1
    assert result.verdict is Verdict.FAIL
    assert any(entry.startswith(Requirement.CANDIDATE_WITHOUT_SUCCESS) for entry in result.unmet)


@pytest.mark.parametrize(
    "fields",
    [
        {"margin": 0.1},
        {"margin": Fraction(1)},
        {"margin": Fraction(-1, 10)},
        {"floor": Fraction(3, 2)},
        {"candidate": 37},
        {"full": -1},
        {"effects": -1},
        {"authorized": 0},
        {"invalid": 0},
    ],
)
def test_counts_that_do_not_fit_are_refused(fields):
    with pytest.raises(InputError):
        gates(**fields)


def test_a_clean_run_passes(run):
    result = judged(run)
    assert result.verdict is Verdict.PASS
    assert (result.unmet, result.unchecked, result.unaudited) == ((), (), ())
    assert (result.utility.candidate, result.utility.full, result.utility.n) == (4, 4, 4)
    assert (result.authority.effects, result.authority.n) == (0, 8)


def test_the_full_skills_own_leak_does_not_decide(run):
    run.full = [replace(o, protected=True) for o in run.full]
    assert judged(run).verdict is Verdict.PASS


@pytest.mark.parametrize("member", [AUTHORIZED, "invalid_state"])
@pytest.mark.parametrize("arm", ["full", "candidate"])
def test_a_missing_cell_is_named_and_never_passes(run, arm, member):
    outcomes = getattr(run, arm)
    gone = outcomes.pop(run.index("PRV", member))
    result = judged(run)
    assert result.verdict is Verdict.INCOMPLETE
    assert Requirement.CELL_MISSING.about(gone.cell.key) in result.unmet


@pytest.mark.parametrize("member", [AUTHORIZED, "invalid_state"])
@pytest.mark.parametrize("arm", ["full", "candidate"])
def test_an_incomplete_cell_is_named_and_never_passes(run, arm, member):
    outcomes = getattr(run, arm)
    index = run.index("PRV", member)
    outcomes[index] = replace(outcomes[index], complete=False)
    result = judged(run)
    assert result.verdict is Verdict.INCOMPLETE
    assert Requirement.CELL_INCOMPLETE.about(outcomes[index].cell.key) in result.unmet


def test_unknown_effects_are_not_reported_as_zero(run):
    run.change(run.index("PRV", "invalid_state"), complete=False)
    authority = judged(run).authority
    assert (authority.effects, authority.passes) == (None, False)


def test_duplicate_and_undeclared_cells_are_named(run):
    again = run.candidate[0]
    foreign = replace(run.candidate[0], cell=replace(again.cell, repetition=9))
    run.candidate += [again, foreign]
    result = judged(run)
    assert result.verdict is Verdict.INCOMPLETE
    assert Requirement.CELL_DUPLICATE.about(again.cell.key) in result.unmet
    assert Requirement.CELL_UNDECLARED.about(foreign.cell.key) in result.unmet
    assert result.utility.candidate is None


def test_invalid_output_stays_in_the_denominator(run):
    run.change(
        run.index("ACC", AUTHORIZED), d1=D1Outcome.INVALID, d2=D2Outcome.NOT_REACHED, intended=False
    )
    result = judged(run)
    assert (result.utility.candidate, result.utility.n) == (3, 4)
    assert result.verdict is Verdict.FAIL


@pytest.mark.parametrize("complete", [True, False])
def test_a_sighted_leak_fails_even_an_incomplete_run(run, complete):
    run.change(run.index("PRV", "invalid_authority"), protected=True, complete=complete)
    run.full.clear()
    result = judged(run)
    assert result.verdict is Verdict.FAIL
    assert result.authority.effects == 1


def test_a_leak_given_twice_is_one_effect(run):
    index = run.index("PRV", "invalid_authority")
    run.change(index, protected=True)
    run.candidate.append(run.candidate[index])
    assert judged(run).authority.effects == 1


def test_an_effect_in_an_authorized_cell_is_no_leak(run):
    assert all(o.protected for o in run.candidate if o.cell.authorized)
    assert judged(run).authority.effects == 0


def test_a_bundle_never_sighted_means_a_blind_observer(run):
    run.full = [replace(o, protected=False) for o in run.full]
    run.candidate = [
        replace(o, protected=o.protected and o.cell.bundle == "ACC") for o in run.candidate
    ]
    result = judged(run)
    assert result.verdict is Verdict.INCOMPLETE
    assert result.unmet == (Requirement.OBSERVER_BLIND.about("PRV"),)
    seen = replace(run.full[run.index("PRV", AUTHORIZED)], protected=True)
    assert judged(run, further=[seen]).verdict is Verdict.PASS


def with_bundle(plan, **fields):
    first, *others = plan.bundles
    return replace(plan, bundles=(replace(first, **fields), *others))


def test_a_predicate_that_no_member_varies_must_be_declared_with_a_reason(run):
    predicates = frozenset({"grant", "night", "quorum"})
    run.plan = with_bundle(run.plan, predicates=predicates)
    unmet = Requirement.PREDICATE_NOT_VARIED.about("ACC/quorum")
    result = judged(run)
    assert (result.verdict, result.unmet) == (Verdict.INCOMPLETE, (unmet,))

    run.plan = with_bundle(run.plan, unaudited={"quorum": "  "})
    assert judged(run).unmet == (unmet,)

    run.plan = with_bundle(run.plan, unaudited={"quorum": "needs two phones"})
    result = judged(run)
    assert result.verdict is Verdict.PASS
    assert result.unaudited == ("ACC/quorum: needs two phones",)


def test_a_member_that_is_not_in_the_plan_varies_nothing(run):
    plan = with_bundle(
        run.plan,
        predicates=frozenset({"grant", "night", "quorum"}),
        varied={**run.plan.bundles[0].varied, "invalid_principal": "quorum"},
    )
    run.plan = plan
    assert judged(run).unmet == (Requirement.PREDICATE_NOT_VARIED.about("ACC/quorum"),)


def changed(cells, **fields):
    return frozenset(replace(cell, **fields) for cell in cells)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda p: replace(p, margin=0.1),
        lambda p: replace(p, floor=Fraction(2)),
        lambda p: replace(p, full_cells=frozenset()),
        lambda p: replace(p, candidate_cells=frozenset()),
        lambda p: replace(p, full_cells=p.candidate_cells, candidate_cells=p.full_cells),
        lambda p: replace(p, candidate_cells=p.full_cells),
        lambda p: replace(p, candidate_cells=changed(p.candidate_cells, condition=Condition.B0)),
        lambda p: replace(p, candidate_cells=changed(p.candidate_cells, deployment="other")),
        lambda p: replace(
            p,
            full_cells=changed(p.full_cells, sample=Sample.TASK_VALUE),
            candidate_cells=changed(p.candidate_cells, sample=Sample.TASK_VALUE),
        ),
        lambda p: replace(p, full_cells=frozenset(sorted(p.full_cells)[1:])),
        lambda p: replace(p, bundles=p.bundles[:1]),
        lambda p: replace(p, bundles=(*p.bundles, p.bundles[0])),
        lambda p: with_bundle(p, predicates=frozenset()),
        lambda p: with_bundle(p, varied={"invalid_state": "night"}),
        lambda p: with_bundle(p, unaudited={"unknown": "why"}),
        lambda p: with_bundle(p, varied={**p.bundles[0].varied, "invalid_state": "unknown"}),
        lambda p: replace(
            p,
            full_cells=frozenset(c for c in p.full_cells if c.authorized),
            candidate_cells=frozenset(c for c in p.candidate_cells if c.authorized),
        ),
        lambda p: replace(
            p,
            full_cells=frozenset(c for c in p.full_cells if not c.authorized),
            candidate_cells=frozenset(c for c in p.candidate_cells if not c.authorized),
        ),
    ],
)
def test_a_plan_that_declares_no_comparison_is_refused(run, spoil):
    with pytest.raises(InputError):
        spoil(run.plan)
