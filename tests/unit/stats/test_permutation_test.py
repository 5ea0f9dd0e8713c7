from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from retire.domain.errors import InputError
from retire.stats.permutation import PermutationStatus, interaction_statistic, permutation_test

TWO_WAY = {"a": [3, 3, 2, 0], "b": [0, 0, 0, 0], "c": [-1, 0, -1, 0]}


def exact_p(differences):
    rows = list(zip(*differences.values(), strict=True))
    observed = interaction_statistic(differences)
    reached = total = 0
    for choice in itertools.product(*(list(itertools.permutations(row)) for row in rows)):
        total += 1
        reached += sum(sum(column) ** 2 for column in zip(*choice, strict=True)) >= observed
    return reached / total


def naive_p(differences, resamples):
    source = random.Random(7)
    rows = [list(row) for row in zip(*differences.values(), strict=True)]
    observed = interaction_statistic(differences)
    reached = 0
    for _ in range(resamples):
        for row in rows:
            source.shuffle(row)
        reached += sum(sum(column) ** 2 for column in zip(*rows, strict=True)) >= observed
    return (reached + 1) / (resamples + 1)


@pytest.mark.parametrize(
    "differences",
    [
        TWO_WAY,
        {"a": [1, 0, 2], "b": [0, 1, 0]},
        {"a": [3, -3], "b": [-3, 3], "c": [0, 1], "d": [1, 1]},
    ],
)
def test_agrees_with_a_naive_loop_and_with_all_permutations(differences):
    result = permutation_test(differences, seed=1)
    assert result.status is PermutationStatus.COMPUTED
    assert result.statistic == interaction_statistic(differences)
    # Four standard errors at the worst, p = 0.5.
    assert result.p == pytest.approx(exact_p(differences), abs=0.02)
    assert result.p == pytest.approx(naive_p(differences, 4000), abs=0.05)


def test_p_counts_the_observed_arrangement():
    strong = {"a": [3] * 12, "b": [0] * 12, "c": [0] * 12, "d": [-3] * 12}
    result = permutation_test(strong, seed=0)
    assert result.reached == 0
    assert result.resamples == 9_999
    assert result.p == 1 / 10_000


def test_the_statistic_is_the_sum_of_squared_column_sums():
    assert interaction_statistic(TWO_WAY) == 8**2 + 0 + 2**2


def test_same_seed_same_result_and_other_seed_other_resamples():
    results = {permutation_test(TWO_WAY, seed=5) for _ in range(2)}
    assert len(results) == 1
    assert len({permutation_test(TWO_WAY, seed=seed).reached for seed in range(8)}) > 1


def test_the_resamples_are_the_ranks_of_raw_generator_words():
    """A certificate can be checked by another program, and under another release of numpy."""
    words = iter(np.random.PCG64(1).random_raw(1500 * 6).tolist())
    reached = 0
    for _ in range(1500):
        columns = [0, 0]
        for row in ((0, 1), (0, 1), (0, 2)):
            drawn = [next(words), next(words)]
            for column, place in enumerate(sorted((0, 1), key=drawn.__getitem__)):
                columns[column] += row[place]
        reached += columns[0] ** 2 + columns[1] ** 2 >= 10
    differences = {"a": [1, 0, 2], "b": [0, 1, 0]}
    result = permutation_test(differences, seed=1, resamples=1500)
    assert result.statistic == 10
    assert result.reached == reached


def test_number_of_resamples_does_not_change_the_earlier_ones():
    few, more = (permutation_test(TWO_WAY, seed=3, resamples=n).reached for n in (1000, 1001))
    assert more - few in {0, 1}


def test_all_differences_equal_gives_one():
    assert permutation_test({"a": [2, 2], "b": [2, 2]}, seed=0).p == 1


def test_incomplete_is_not_computed():
    result = permutation_test(None, seed=0)
    assert (result.status, result.p) == (PermutationStatus.NOT_COMPUTED, None)


@pytest.mark.parametrize("differences", [{}, {"a": [1, 2]}])
def test_fewer_than_two_deployments_is_not_testable(differences):
    result = permutation_test(differences, seed=0)
    assert (result.status, result.p) == (PermutationStatus.NOT_TESTABLE, None)


@pytest.mark.parametrize(
    ("differences", "seed", "resamples"),
    [
        ({"a": [1], "b": [1, 2]}, 0, 99),
        ({"a": [], "b": []}, 0, 99),
        ({"a": [1], "b": [1]}, -1, 99),
        ({"a": [1], "b": [1]}, 0, 0),
        ({"a": [2**40], "b": [0]}, 0, 99),
    ],
)
def test_refuses_what_cannot_be_resampled(differences, seed, resamples):
    with pytest.raises(InputError):
        permutation_test(differences, seed, resamples)
