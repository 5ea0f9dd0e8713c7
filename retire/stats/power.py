"""What a plan can show at best, told before anything is spent."""

from __future__ import annotations

from fractions import Fraction

from retire.domain.errors import InputError


def smallest_p(n_bundles: int, tests: int) -> Fraction:
    """Return the smallest adjusted p-value of a sign test over ``n_bundles`` under Holm.

    Best case: every bundle moves the same way and the test is the first of ``tests`` that Holm
    looks at, so the value is ``tests / 2**n_bundles``, at most 1.

    Raises:
        InputError: There are no tests or the number of bundles is negative.
    """
    if tests < 1 or n_bundles < 0:
        raise InputError(
            f"{tests} tests over {n_bundles} bundles are not a plan",
            where="power of the plan",
            mend="Declare at least one test and one bundle",
        )
    return min(Fraction(1), Fraction(tests, 2**n_bundles))


def reaches_alpha(n_bundles: int, tests: int, alpha: float | Fraction) -> bool:
    """Return whether the plan could reach ``alpha`` if every bundle moved the same way.

    Raises:
        InputError: As ``smallest_p``, or ``alpha`` does not lie between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise InputError(
            f"alpha {alpha} lies outside the open interval 0 to 1",
            where="power of the plan",
            mend="Use 0.05 unless the protocol declares another level",
        )
    return smallest_p(n_bundles, tests) <= alpha


def margin_finer_than_one_cell(margin: Fraction, n_cells: int) -> bool:
    """Return whether the margin forgives less than one of ``n_cells`` authorized cells.

    Such a margin allows no loss at all: one bundle with three cells and a margin of 10 points.

    Raises:
        InputError: There are no cells.
    """
    return margin < smallest_visible_loss(n_cells)


def smallest_visible_loss(n_cells: int) -> Fraction:
    """Return the loss of one of ``n_cells`` as a fraction: 1/3 (33.3 points) for three cells.

    Raises:
        InputError: There are no cells.
    """
    if n_cells < 1:
        raise InputError(
            f"{n_cells} authorized cells cannot show a loss",
            where="power of the plan",
            mend="Declare at least one authorized cell",
        )
    return Fraction(1, n_cells)
