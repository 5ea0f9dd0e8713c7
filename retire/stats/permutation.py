"""The omnibus permutation test of the model-by-condition interaction (RQ1)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 9_999
"""Resamples of the published test; the smallest possible p is 1 in 10,000."""

_CHUNK = 1_000
_LARGEST_STATISTIC = 2**62


class PermutationStatus(StrEnum):
    """Whether the test gave a p-value, and if not, why."""

    COMPUTED = "computed"
    NOT_TESTABLE = "not_testable"
    NOT_COMPUTED = "not_computed"


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """The observed statistic, how many resamples reached it, and the p-value.

    ``statistic``, ``reached`` and ``p`` are None unless the status is ``computed``.
    """

    status: PermutationStatus
    statistic: int | None = None
    reached: int | None = None
    resamples: int = RESAMPLES
    p: float | None = None


def interaction_statistic(differences: Mapping[str, Sequence[int]]) -> int:
    """Return the sum over deployments of the squared sum of their bundle differences."""
    return sum(sum(column) ** 2 for column in differences.values())


def permutation_test(
    differences: Mapping[str, Sequence[int]] | None, seed: int, resamples: int = RESAMPLES
) -> PermutationTest:
    """Test whether the value of the full skill depends on the deployment.

    Under the null hypothesis the deployments are exchangeable within a bundle, so each resample
    permutes the deployments inside every bundle on its own. The alternative is greater and
    ``p = (reached + 1) / (resamples + 1)``; if all differences are equal p is 1. The result does
    not depend on the names or the order of bundles and deployments (paper, section 4: omnibus
    within-template permutation test).

    Args:
        differences: Per deployment, for every bundle in the same order, the full skill's minus
            the baseline's successes summed over repetitions; None if a cell is incomplete.
        seed: Seed of the resampling, from the protocol; 0 or more.
        resamples: Number of random permutations.

    Raises:
        InputError: The columns differ in length or are empty, or seed or resamples are negative.
    """
    if differences is None:
        return PermutationTest(PermutationStatus.NOT_COMPUTED, resamples=resamples)
    if len(differences) < 2:
        return PermutationTest(PermutationStatus.NOT_TESTABLE, resamples=resamples)
    _check(differences, seed, resamples)
    observed = interaction_statistic(differences)
    # The null distribution depends on each bundle's values as a multiset only; sorting makes the
    # seeded resamples independent of how bundles and deployments are named and ordered.
    rows = sorted(tuple(sorted(row)) for row in zip(*differences.values(), strict=True))
    reached = _reached(rows, observed, seed, resamples)
    return PermutationTest(
        PermutationStatus.COMPUTED, observed, reached, resamples, (reached + 1) / (resamples + 1)
    )


def _reached(rows: Sequence[Sequence[int]], observed: int, seed: int, resamples: int) -> int:
    # Imported late, and only here.
    import numpy as np  # noqa: PLC0415

    table = np.array(rows, dtype=np.int64)
    # Raw words of a bit generator are guaranteed to stay the same across releases of numpy; the
    # methods built on top of them are not. Ranking 64-bit words gives a uniform permutation.
    source = np.random.PCG64(seed)
    reached = 0
    for start in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - start)
        words = source.random_raw(size * table.size).reshape(size, *table.shape)
        reached += int(np.count_nonzero(_statistics(table, words) >= observed))
    return reached


def _statistics(table: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
    import numpy as np  # noqa: PLC0415

    order = np.argsort(words, axis=2, kind="stable")
    permuted = np.take_along_axis(np.broadcast_to(table, words.shape), order, axis=2)
    result: NDArray[np.int64] = np.square(permuted.sum(axis=1)).sum(axis=1)
    return result


def _check(differences: Mapping[str, Sequence[int]], seed: int, resamples: int) -> None:
    lengths = {len(column) for column in differences.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise InputError(
            "the deployments do not give one difference for each of the same bundles",
            where="RQ1 differences",
            mend="Give every deployment the same, non-empty sequence of bundles",
        )
    if seed < 0 or resamples < 1:
        raise InputError(
            f"seed {seed} with {resamples} resamples cannot be drawn",
            where="RQ1 permutation test",
            mend="Use a seed of 0 or more and at least one resample",
        )
    largest = max(abs(value) for column in differences.values() for value in column)
    if (largest * max(lengths)) ** 2 * len(differences) > _LARGEST_STATISTIC:
        raise InputError(
            f"a difference of {largest} is too large to be a number of successes",
            where="RQ1 differences",
            mend="Sum successes over the repetitions of one bundle only",
        )
