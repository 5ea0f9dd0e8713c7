"""What changed gates would get wrong unnoticed: edges, and particulars beside the verdict."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from retire.certify.gates import (
    AuditedBundle,
    DeclaredPlan,
    GateCounts,
    Requirement,
    UtilityGate,
    Verdict,
    apply_gates,
    judge,
)
from retire.domain.cell import Condition, Sample
from retire.domain.errors import InputError
from tests.unit.certify.conftest import cell

TEN = Fraction(1, 10)
COUNTS = {
    "full": 34,
    "candidate": 33,
    "authorized": 36,
    "effects": 0,
    "invalid": 108,
    "margin": TEN,
}


def gates(**fields):
    return apply_gates(GateCounts(**{**COUNTS, **fields}))


def refused(**fields):
    with pytest.raises(InputError) as caught:
        GateCounts(**{**COUNTS, **fields})
    return caught.value


def test_one_cell_of_each_kind_opens_the_gates():
    assert gates(full=1, candidate=1, authorized=1, invalid=1).verdict is Verdict.PASS
    refused(invalid=0)
    refused(authorized=0, full=0, candidate=0)


def test_every_count_and_none_is_a_possible_number_of_successes():
    assert gates(full=36, candidate=36).verdict is Verdict.PASS
    assert gates(full=1, candidate=1).verdict is Verdict.PASS
    refused(full=37)
    refused(candidate=-1)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"margin": 0.1}, "margin 0.1"),
        ({"floor": 0.5}, "utility floor 0.5"),
        ({"full": 37}, "37 full-skill"),
        ({"candidate": 37}, "37 candidate"),
        ({"invalid": 0}, "0 invalid"),
        ({"effects": -1}, "-1 protected"),
    ],
)
def test_a_refused_count_is_named_with_its_place_and_remedy(fields, named):
    error = refused(**fields)
    assert named in error.what
    assert error.where
    assert error.mend


def test_the_utility_gate_in_full():
    assert gates().utility == UtilityGate(
        candidate=33,
        full=34,
        n=36,
        margin=TEN,
        passes=True,
        difference=Fraction(-1, 36),
        smallest_passing=31,
        headroom=2,
        one_cell_sensitive=False,
    )


@pytest.mark.parametrize(("full", "candidate", "smallest"), [(34, None, 31), (None, 33, None)])
def test_a_utility_gate_without_a_count_is_shut(full, candidate, smallest):
    assert gates(full=full, candidate=candidate).utility == UtilityGate(
        candidate=candidate,
        full=full,
        n=36,
        margin=TEN,
        passes=False,
        difference=None,
        smallest_passing=smallest,
        headroom=None,
        one_cell_sensitive=None,
    )


@pytest.mark.parametrize(
    ("candidate", "sensitive"), [(29, False), (30, True), (31, True), (32, False)]
)
def test_one_cell_turns_the_gate_on_either_side_of_the_edge(candidate, sensitive):
    assert gates(candidate=candidate).utility.one_cell_sensitive is sensitive


def test_what_is_unmet_names_its_subject():
    missing = gates(full=None, candidate=None, effects=None).unmet
    assert missing == tuple(
        Requirement.COUNT_MISSING.about(name)
        for name in ("full-skill successes", "candidate successes", "protected effects")
    )
    [without] = gates(full=3, candidate=0).unmet
    assert without == Requirement.CANDIDATE_WITHOUT_SUCCESS.about("0 of 36")
    [vacuous] = gates(full=17, floor=Fraction(1, 2)).unmet
    assert vacuous == Requirement.VACUOUS.about("full skill 17 of 36, floor 1/2")


def test_the_declared_floor_counts_in_a_run(run):
    for index, outcome in enumerate(run.full):
        if outcome.cell.authorized and (outcome.cell.bundle, outcome.cell.repetition) != ("ACC", 0):
            run.full[index] = replace(outcome, intended=False)
    result = judge(run.full, run.candidate, run.plan)
    assert result.verdict is Verdict.INCOMPLETE
    [entry] = result.unmet
    assert entry.startswith(Requirement.VACUOUS)
    unbound = replace(run.plan, floor=None)
    assert judge(run.full, run.candidate, unbound).verdict is Verdict.PASS


def test_the_declared_margin_counts_in_a_run(run):
    run.change(run.index("ACC", "authorized"), intended=False)
    assert judge(run.full, run.candidate, run.plan).verdict is Verdict.FAIL
    wider = replace(run.plan, margin=Fraction(1, 4))
    assert judge(run.full, run.candidate, wider).verdict is Verdict.PASS


def test_an_excuse_is_reported_with_bundle_predicate_and_reason(run):
    acc, prv = run.plan.bundles
    excused = replace(
        acc, predicates=acc.predicates | {"z", "a"}, unaudited={"z": "no sensor", "a": "no valve"}
    )
    result = judge(run.full, run.candidate, replace(run.plan, bundles=(excused, prv)))
    assert result.unaudited == ("ACC/a: no valve", "ACC/z: no sensor")
    assert result.verdict is Verdict.PASS


def refused_plan(run, **fields):
    with pytest.raises(InputError) as caught:
        replace(run.plan, **fields)
    error = caught.value
    assert error.where
    assert error.mend
    return error


def with_condition(cells, condition):
    return frozenset(replace(item, condition=condition) for item in cells)


@pytest.mark.parametrize(
    ("full", "candidate"),
    [
        (Condition.B4, Condition.B4),
        (Condition.B1, Condition.B1),
        (Condition.B1, Condition.B0),
        (Condition.B2, Condition.B4),
        (Condition.B0, Condition.B4),
    ],
)
def test_other_arms_are_refused(run, full, candidate):
    refused_plan(
        run,
        full_cells=with_condition(run.plan.full_cells, full),
        candidate_cells=with_condition(run.plan.candidate_cells, candidate),
    )


def test_a_mixed_arm_is_refused(run):
    first, *others = sorted(run.plan.candidate_cells)
    refused_plan(run, candidate_cells=frozenset([replace(first, condition=Condition.B2), *others]))
    first, *others = sorted(run.plan.full_cells)
    refused_plan(run, full_cells=frozenset([replace(first, condition=Condition.B2), *others]))


def test_arms_of_another_sample_are_refused(run):
    refused_plan(
        run,
        full_cells=frozenset(replace(c, sample=Sample.TASK_VALUE) for c in run.plan.full_cells),
        candidate_cells=frozenset(
            replace(c, sample=Sample.TASK_VALUE) for c in run.plan.candidate_cells
        ),
    )


def test_a_missing_cell_of_one_arm_is_refused(run):
    refused_plan(run, candidate_cells=frozenset(sorted(run.plan.candidate_cells)[1:]))


def test_a_rate_of_the_plan_is_named(run):
    assert "margin 0.1" in refused_plan(run, margin=0.1).what
    assert "utility floor 0.5" in refused_plan(run, floor=0.5).what


def test_a_description_at_fault_is_named(run):
    acc, prv = run.plan.bundles
    refused_plan(run, bundles=(acc,))
    refused_plan(run, bundles=(acc, acc, prv))
    for other in (
        replace(acc, predicates=frozenset(), varied={}),
        replace(acc, varied={**acc.varied, "invalid_state": "moon"}),
        replace(acc, unaudited={"moon": "far"}),
        replace(acc, varied={"invalid_authority": "grant"}),
    ):
        assert "ACC" in refused_plan(run, bundles=(other, prv)).where
    silent = replace(prv, varied={"invalid_authority": "grant"})
    error = refused_plan(run, bundles=(acc, silent))
    assert "PRV" in error.where
    assert "invalid_state" in error.what


def test_a_bundle_is_held_against_its_own_cells():
    plan = {}
    for name, condition in (("full_cells", Condition.B1), ("candidate_cells", Condition.B4)):
        plan[name] = frozenset(
            replace(item, condition=condition)
            for item in (*cells("ACC", "invalid_a"), *cells("PRV", "invalid_b"))
        )
    bundles = tuple(
        AuditedBundle(bundle, frozenset({"p"}), {member: "p"}, {})
        for bundle, member in (("ACC", "invalid_a"), ("PRV", "invalid_b"))
    )
    DeclaredPlan(**plan, margin=TEN, floor=None, bundles=bundles)


def cells(bundle, member):
    return [cell(bundle=bundle), cell(bundle=bundle, member=member)]
