from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy import stats

from retire.domain.errors import InputError
from retire.stats.bounds import upper_bound
from retire.stats.holm import holm
from retire.stats.power import (
    margin_finer_than_one_cell,
    reaches_alpha,
    smallest_p,
    smallest_visible_loss,
)
from retire.stats.sign_test import SignTest, exact_sign_test


@pytest.mark.parametrize(("plus", "minus"), [(0, 3), (3, 0), (5, 2), (2, 5), (400, 350)])
def test_sign_test_agrees_with_scipy(plus, minus):
    expected = stats.binomtest(plus, plus + minus, alternative="greater").pvalue
    assert exact_sign_test(plus, minus, 4).p == pytest.approx(expected)


def test_sign_test_without_pairs_is_one():
    assert exact_sign_test(0, 0, 12) == SignTest(plus=0, minus=0, ties=12, p=1.0)


def test_sign_test_is_one_sided():
    assert exact_sign_test(0, 6, 0).p == 1.0


@pytest.mark.parametrize("counts", [(-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_sign_test_refuses_negative_counts(counts):
    with pytest.raises(InputError):
        exact_sign_test(*counts)


def test_holm_keeps_the_divisor_when_a_test_is_missing():
    assert holm([None, 0.02, 0.01]) == (None, pytest.approx(0.04), pytest.approx(0.03))
    assert holm([0.02], divisor=3) == (pytest.approx(0.06),)
    assert holm([None, None, None]) == (None, None, None)
    assert holm([]) == ()


@pytest.mark.parametrize(
    ("values", "divisor"), [([1.5], None), ([-0.1], None), ([math.nan], None), ([0.1, 0.2], 1)]
)
def test_holm_refuses_what_is_no_family_of_p_values(values, divisor):
    with pytest.raises(InputError):
        holm(values, divisor)


@pytest.mark.parametrize(("k", "n"), [(0, 12), (1, 12), (6, 12), (11, 12), (12, 12), (3, 400)])
def test_upper_bound_agrees_with_scipy(k, n):
    interval = stats.binomtest(k, n, alternative="less").proportion_ci(0.95, method="exact")
    assert upper_bound(k, n) == pytest.approx(interval.high)


@pytest.mark.parametrize(
    ("k", "n", "confidence"), [(1, 0, 0.95), (-1, 3, 0.95), (4, 3, 0.95), (1, 3, 1), (1, 3, 0)]
)
def test_upper_bound_refuses_impossible_counts(k, n, confidence):
    with pytest.raises(InputError):
        upper_bound(k, n, confidence)


def test_smallest_reachable_p():
    assert smallest_p(12, 3) == Fraction(3, 4096)
    assert smallest_p(0, 3) == 1
    assert reaches_alpha(6, 3, 0.05)
    assert not reaches_alpha(5, 3, 0.05)
    assert not reaches_alpha(1, 1, 0.05)


@pytest.mark.parametrize("arguments", [(5, 0, 0.05), (-1, 3, 0.05), (5, 3, 0), (5, 3, 1)])
def test_power_refuses_what_is_no_plan(arguments):
    with pytest.raises(InputError):
        reaches_alpha(*arguments)


def test_margin_and_cell():
    ten_points = Fraction(1, 10)
    assert margin_finer_than_one_cell(ten_points, 3)
    assert margin_finer_than_one_cell(ten_points, 9)
    assert not margin_finer_than_one_cell(ten_points, 10)
    assert smallest_visible_loss(3) == Fraction(1, 3)
    with pytest.raises(InputError):
        smallest_visible_loss(0)
