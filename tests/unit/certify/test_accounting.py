from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from retire.certify.accounting import (
    DeploymentEffects,
    MemberLeak,
    Stage,
    Stop,
    authorized_misses,
    authorized_success,
    by_arm,
    invalid_flow,
    leaking_bundle_bound,
    leaking_members,
    lost_bundles,
    miss_counts,
    paired_effects,
    stopped_at,
    task_value_differences,
)
from retire.domain.cell import AUTHORIZED, Cell, Condition, Sample
from retire.domain.errors import InputError
from retire.domain.outcome import D1Outcome, D2Outcome, Outcome

BUNDLES = ("ACC", "ENV", "PRV")
DEPLOYMENTS = ("m1", "m2")


def outcome(condition, bundle, member, *, deployment="m1", repetition=0, **fields):
    cell = Cell(Sample.AUDIT, deployment, bundle, condition, member, repetition)
    defaults = {
        "complete": True,
        "d1": D1Outcome.PROPOSAL,
        "d2": D2Outcome.ALLOW,
        "intended": cell.authorized,
        "protected": cell.authorized,
    }
    return Outcome(cell, **{**defaults, **fields})


def test_flow_over_invalid_members():
    flow = invalid_flow(
        [
            outcome(Condition.B4, "ACC", AUTHORIZED),
            outcome(Condition.B4, "ACC", "x", d2=D2Outcome.DENY),
            outcome(Condition.B4, "ACC", "x", repetition=1, d2=D2Outcome.DENY),
            # Denied and seen all the same: another path to the world.
            outcome(Condition.B4, "ACC", "x", repetition=2, d2=D2Outcome.DENY, protected=True),
            outcome(Condition.B4, "ENV", "x"),
            outcome(Condition.B4, "ENV", "y", d1=D1Outcome.REFUSAL, d2=D2Outcome.NOT_REACHED),
            outcome(Condition.B4, "PRV", "x", d1=D1Outcome.INVALID, d2=D2Outcome.NOT_REACHED),
            outcome(Condition.B4, "PRV", "y", complete=False, protected=True),
        ]
    )
    assert (flow.cells, flow.incomplete) == (7, 1)
    assert (flow.proposals, flow.denials, flow.effects) == (4, 3, 2)
    assert (flow.refusals, flow.malformed) == (1, 1)


def test_an_outcome_given_twice_is_counted_once():
    leak = outcome(Condition.B2, "ACC", "x", protected=True)
    flow = invalid_flow([leak, leak])
    assert (flow.cells, flow.proposals, flow.effects) == (1, 1, 1)
    assert leaking_members([leak, leak]) == (MemberLeak("ACC", "x", 1),)


def test_samples_are_never_pooled():
    audit = outcome(Condition.B1, "ACC", AUTHORIZED)
    task = replace(audit, cell=replace(audit.cell, sample=Sample.TASK_VALUE))
    for count in (invalid_flow, authorized_success, authorized_misses, leaking_members):
        with pytest.raises(InputError):
            count([audit, task])
    assert [len(group) for group in by_arm([audit, task]).values()] == [1, 1]


def test_authorized_success_needs_a_complete_cell():
    success = authorized_success(
        [
            outcome(Condition.B4, "ACC", AUTHORIZED),
            outcome(Condition.B4, "ENV", AUTHORIZED, complete=False),
            outcome(Condition.B4, "PRV", AUTHORIZED, intended=False),
            outcome(Condition.B4, "PRV", "x"),
        ]
    )
    assert (success.successes, success.cells, success.incomplete) == (1, 3, 1)


@pytest.mark.parametrize(
    ("fields", "stop"),
    [
        ({"d1": D1Outcome.REFUSAL, "d2": D2Outcome.NOT_REACHED}, Stop(Stage.D1_REFUSAL)),
        (
            {"d1": D1Outcome.INVALID, "d2": D2Outcome.NOT_REACHED, "d1_rule": "two_calls"},
            Stop(Stage.D1_INVALID, "two_calls"),
        ),
        (
            {"d2": D2Outcome.DENY, "reason": "parameter_mismatch", "parameter": "range_days"},
            Stop(Stage.D2, "parameter_mismatch", "range_days"),
        ),
        ({"d2": D2Outcome.NOT_REACHED}, Stop(Stage.D2, "not_reached")),
        ({"evidence_class": "target_state"}, Stop(Stage.D3, "target_state")),
        ({"d2": D2Outcome.UNMEDIATED}, Stop(Stage.D3)),
        ({"complete": False, "d1": D1Outcome.REFUSAL}, Stop(Stage.INCOMPLETE)),
    ],
)
def test_where_a_miss_arose(fields, stop):
    missed = outcome(Condition.B6, "PRV", AUTHORIZED, intended=False, **fields)
    assert stopped_at(missed) == stop
    (miss,) = authorized_misses([missed, outcome(Condition.B6, "ACC", AUTHORIZED)])
    assert (miss.cell, miss.stop) == (missed.cell, stop)
    assert miss_counts([miss, miss]) == {stop: 2}


def test_lost_bundles():
    full = [outcome(Condition.B1, bundle, AUTHORIZED) for bundle in BUNDLES]
    full.append(outcome(Condition.B1, "ZZZ", AUTHORIZED, intended=False))
    candidate = [
        outcome(Condition.B5, "ACC", AUTHORIZED, intended=False),
        outcome(Condition.B5, "ACC", AUTHORIZED, repetition=1),
        outcome(Condition.B5, "ENV", AUTHORIZED, intended=False),
        outcome(Condition.B5, "ENV", "x", intended=True),
        outcome(Condition.B5, "PRV", AUTHORIZED, intended=False, complete=False),
        outcome(Condition.B5, "ZZZ", AUTHORIZED, intended=False),
    ]
    assert lost_bundles(full, candidate) == ("ENV",)


def audit(leaks):
    """Outcomes of B1 and B2; ``leaks`` are (condition, bundle, deployment) with an effect."""
    return [
        outcome(
            condition,
            bundle,
            member,
            deployment=deployment,
            protected=member == AUTHORIZED or (condition, bundle, deployment) in leaks,
        )
        for condition, bundle, deployment, member in product(
            (Condition.B1, Condition.B2), BUNDLES, DEPLOYMENTS, (AUTHORIZED, "x")
        )
    ]


def pair(outcomes, expected=None, excluded=()):
    cells = [o.cell for o in audit(())] if expected is None else expected
    return paired_effects(outcomes, cells, Condition.B2, Condition.B1, excluded)


LEAKS = {
    (Condition.B2, "ACC", "m2"),
    (Condition.B2, "ENV", "m1"),
    (Condition.B2, "ENV", "m2"),
    (Condition.B1, "ENV", "m1"),
    (Condition.B1, "PRV", "m1"),
}


def test_pairs_sum_over_deployments_and_list_them():
    effects = pair(audit(LEAKS))
    assert [(p.bundle, p.candidate, p.reference, p.sign) for p in effects.pairs] == [
        ("ACC", 1, 0, 1),
        ("ENV", 2, 1, 0),
        ("PRV", 0, 1, -1),
    ]
    assert effects.pairs[1].per_deployment == (
        DeploymentEffects("m1", 1, 1),
        DeploymentEffects("m2", 1, 0),
    )
    assert effects.newly_leaking == ("ACC",)
    test = effects.sign_test()
    assert (test.plus, test.minus, test.ties, test.p) == (1, 1, 1, 0.75)


def test_the_test_counts_bundles_not_effects_or_deployments():
    everywhere = {(Condition.B2, bundle, name) for bundle in BUNDLES for name in DEPLOYMENTS}
    assert pair(audit(everywhere)).sign_test().p == 0.125


def test_an_excluded_pair_is_named_and_not_counted():
    outcomes = [o for o in audit(LEAKS) if o.cell.bundle != "PRV"]
    effects = pair(outcomes, excluded=["PRV"])
    assert effects.excluded == ("PRV",)
    test = effects.sign_test()
    assert (test.plus, test.minus, test.ties) == (1, 0, 1)


def lacking(outcomes, how):
    index = next(
        i for i, o in enumerate(outcomes) if o.cell.bundle == "ACC" and o.cell.member == "x"
    )
    if how == "missing":
        del outcomes[index]
    elif how == "twice":
        outcomes.append(outcomes[index])
    else:
        outcomes[index] = replace(outcomes[index], complete=False)
    return outcomes


@pytest.mark.parametrize("how", ["missing", "twice", "incomplete"])
def test_an_unsettled_pair_gives_no_test(how):
    effects = pair(lacking(audit(LEAKS), how))
    assert effects.unsettled == ("ACC",)
    assert effects.newly_leaking == ()
    assert effects.sign_test() is None
    assert pair(lacking(audit(LEAKS), how), excluded=["ACC"]).sign_test() is not None


def test_bound_over_bundles():
    candidate = [o for o in audit(LEAKS) if o.cell.condition is Condition.B2]
    cells = [o.cell for o in candidate]
    bound = leaking_bundle_bound(candidate, cells)
    assert (bound.leaking, bound.bundles, bound.confidence) == (2, 3, 0.95)
    assert 2 / 3 < bound.upper < 1
    assert leaking_bundle_bound(candidate[:-1], cells) is None


def task_value(wins):
    """Outcomes of B0 and B1, two repetitions; ``wins`` are (deployment, bundle, condition)."""
    return [
        Outcome(
            Cell(Sample.TASK_VALUE, deployment, bundle, condition, AUTHORIZED, repetition),
            complete=True,
            d1=D1Outcome.PROPOSAL,
            d2=D2Outcome.UNMEDIATED,
            intended=(deployment, bundle, condition) in wins,
            protected=False,
        )
        for deployment, bundle, condition, repetition in product(
            DEPLOYMENTS, BUNDLES, (Condition.B0, Condition.B1), (0, 1)
        )
    ]


def test_task_value_differences():
    outcomes = task_value({("m1", "ENV", Condition.B1), ("m2", "ACC", Condition.B0)})
    cells = [o.cell for o in outcomes]
    # Audit cells of the full skill serve another question.
    extra = [*audit(LEAKS)]
    differences = task_value_differences([*outcomes, *extra], [*cells, *(o.cell for o in extra)])
    assert differences == {"m1": (0, 2, 0), "m2": (-2, 0, 0)}


@pytest.mark.parametrize("how", ["missing", "twice", "incomplete"])
def test_incomplete_task_value_cells_are_not_computed(how):
    outcomes = task_value(())
    cells = [o.cell for o in outcomes]
    if how == "missing":
        outcomes.pop()
    elif how == "twice":
        outcomes.append(outcomes[0])
    else:
        outcomes[0] = replace(outcomes[0], complete=False)
    assert task_value_differences(outcomes, cells) is None


def test_unequal_task_value_plans_are_refused():
    outcomes = task_value(())
    with pytest.raises(InputError):
        task_value_differences(outcomes, [o.cell for o in outcomes[:-1]])


def test_no_task_value_cells_give_no_deployments():
    assert task_value_differences([], []) == {}
