"""The one-sided exact sign test over paired bundles."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from retire.domain.errors import InputError


@dataclass(frozen=True, slots=True)
class SignTest:
    """Counts of pairs that moved one way, the other way, or not at all, and the p-value."""

    plus: int
    minus: int
    ties: int
    p: float


def exact_sign_test(plus: int, minus: int, ties: int) -> SignTest:
    """Test whether pairs move towards plus more often than a fair coin would.

    Ties are dropped; without an untied pair p is 1. The tail is summed over integers, so p is the
    correctly rounded value of an exact fraction (paper, section 4: one-sided exact paired sign
    tests over bundles).

    Raises:
        InputError: A count is negative.
    """
    for name, count in (("plus", plus), ("minus", minus), ("ties", ties)):
        if count < 0:
            raise InputError(
                f"the number of {name} pairs is {count}",
                where="sign test",
                mend="Give counts of 0 or more",
            )
    pairs = plus + minus
    # Walking down from C(n, n) = 1 costs one multiplication per term.
    term, tail = 1, 0
    for successes in range(pairs, plus - 1, -1):
        tail += term
        term = term * successes // (pairs - successes + 1)
    return SignTest(plus, minus, ties, float(Fraction(tail, 2**pairs)))
