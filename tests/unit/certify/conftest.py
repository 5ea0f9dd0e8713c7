"""A small run in which every cell succeeds: two bundles, two repetitions, two invalid members."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import pytest

from retire.certify.gates import AuditedBundle, DeclaredPlan
from retire.domain.cell import AUTHORIZED, Cell, Condition, Sample
from retire.domain.outcome import D1Outcome, D2Outcome, Outcome

BUNDLES = ("ACC", "PRV")
MEMBERS = (AUTHORIZED, "invalid_authority", "invalid_state")


def cell(
    condition=Condition.B4,
    bundle="ACC",
    member=AUTHORIZED,
    repetition=0,
    deployment="m",
    sample=Sample.AUDIT,
):
    return Cell(sample, deployment, bundle, condition, member, repetition)


def outcome(of, *, intended=None, protected=None, complete=True, **fields):
    """An authorized cell that succeeds, or an invalid one that the sink denies."""
    deny = not of.authorized and protected is not True
    stages = {"d1": D1Outcome.PROPOSAL, "d2": D2Outcome.DENY if deny else D2Outcome.ALLOW}
    return Outcome(
        of,
        complete=complete,
        intended=of.authorized if intended is None else intended,
        protected=of.authorized if protected is None else protected,
        **{**stages, **fields},
    )


def arm(condition):
    return [
        cell(condition, bundle, member, repetition)
        for bundle, member, repetition in product(BUNDLES, MEMBERS, (0, 1))
    ]


@dataclass
class Run:
    full: list[Outcome]
    candidate: list[Outcome]
    plan: DeclaredPlan

    def change(self, index, **fields):
        self.candidate[index] = replace(self.candidate[index], **fields)

    def index(self, bundle, member, repetition=0):
        wanted = (bundle, member, repetition)
        return next(
            i
            for i, o in enumerate(self.candidate)
            if (o.cell.bundle, o.cell.member, o.cell.repetition) == wanted
        )


@pytest.fixture
def run():
    full, candidate = arm(Condition.B1), arm(Condition.B4)
    bundles = tuple(
        AuditedBundle(
            name,
            predicates=frozenset({"grant", "night"}),
            varied={"invalid_authority": "grant", "invalid_state": "night"},
            unaudited={},
        )
        for name in BUNDLES
    )
    plan = DeclaredPlan(
        frozenset(full), frozenset(candidate), Fraction(1, 10), Fraction(1, 2), bundles
    )
    return Run([outcome(c) for c in full], [outcome(c) for c in candidate], plan)
