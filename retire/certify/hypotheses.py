"""The three hypothesis tests over a run. They stand beside the verdict and never override it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.certify.accounting import paired_effects, task_value_differences
from retire.domain.cell import Condition, Sample
from retire.stats.holm import holm
from retire.stats.permutation import permutation_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.certify.accounting import PairedEffects
    from retire.domain.cell import Cell
    from retire.domain.outcome import Outcome
    from retire.matrix import Protocol

HYPOTHESES = 3
"""The Holm divisor stays three, whatever can be computed."""


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """RQ1 to RQ3 as JSON-ready values, and the pairs behind the two sign tests."""

    tests: dict[str, dict[str, Any]]
    rq2: PairedEffects | None
    rq3: PairedEffects | None
    differences: dict[str, tuple[int, ...]] | None


def unclean_bundles(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return bundles whose matched cells did not all see the same snapshot bytes (paper, RQ3)."""
    seen: dict[tuple[str, str], set[str]] = {}
    for outcome in outcomes:
        if outcome.cell.sample is Sample.AUDIT:
            key = (outcome.cell.bundle, outcome.cell.member)
            seen.setdefault(key, set()).add(outcome.snapshot_digest)
    return tuple(sorted({bundle for (bundle, _), digests in seen.items() if len(digests) > 1}))


def run_hypotheses(
    outcomes: Sequence[Outcome], expected: Sequence[Cell], protocol: Protocol
) -> Hypotheses:
    """Compute what the run allows; the rest stays None with the reason in ``status``."""
    differences = None
    if protocol.task_value:
        differences = task_value_differences(outcomes, expected)
    permutation = permutation_test(differences, protocol.seed, protocol.resamples)
    rq2 = _pairs(outcomes, expected, protocol, (Condition.B2, Condition.B1), ())
    rq3 = _pairs(
        outcomes,
        expected,
        protocol,
        (Condition.B3, Condition.B4),
        unclean_bundles(outcomes),
    )
    signs = [pairs.sign_test() if pairs is not None else None for pairs in (rq2, rq3)]
    p_values = [permutation.p, *(test.p if test is not None else None for test in signs)]
    adjusted = holm(p_values, HYPOTHESES)
    tests: dict[str, dict[str, Any]] = {
        "RQ1": {
            "status": str(permutation.status),
            "statistic": permutation.statistic,
            "p": permutation.p,
            "p_adjusted": adjusted[0],
        }
    }
    for name, test, pairs, value in zip(
        ("RQ2", "RQ3"), signs, (rq2, rq3), adjusted[1:], strict=True
    ):
        tests[name] = {
            "status": "computed" if test is not None else "not_computed",
            "plus": test.plus if test is not None else None,
            "minus": test.minus if test is not None else None,
            "ties": test.ties if test is not None else None,
            "p": test.p if test is not None else None,
            "p_adjusted": value,
            "excluded": list(pairs.excluded) if pairs is not None else [],
        }
    return Hypotheses(tests, rq2, rq3, differences)


def _pairs(
    outcomes: Sequence[Outcome],
    expected: Sequence[Cell],
    protocol: Protocol,
    compared: tuple[Condition, Condition],
    excluded: tuple[str, ...],
) -> PairedEffects | None:
    candidate, reference = compared
    if not {str(candidate), str(reference)} <= set(protocol.conditions):
        return None
    return paired_effects(outcomes, expected, candidate, reference, excluded)
