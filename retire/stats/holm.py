"""Holm's step-down adjustment of a family of p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


def holm(p_values: Sequence[float | None], divisor: int | None = None) -> tuple[float | None, ...]:
    """Return the Holm-Bonferroni adjusted p-values, in the order given.

    A hypothesis that was not tested (None) stays None and still counts in the divisor, so leaving
    a test out never makes the others easier (paper, section 4: Holm over the three tests).

    Args:
        p_values: One p-value per hypothesis of the family, None where there is none.
        divisor: Number of hypotheses of the family; the length of ``p_values`` if not given.

    Raises:
        InputError: A p-value lies outside 0 to 1, or the divisor is smaller than the family given.
    """
    family = len(p_values) if divisor is None else divisor
    if family < len(p_values):
        raise InputError(
            f"a divisor of {family} is smaller than the {len(p_values)} hypotheses given",
            where="Holm adjustment",
            mend="Use the full number of declared hypotheses",
        )
    tested = [(p, index) for index, p in enumerate(p_values) if p is not None]
    for p, index in tested:
        # Written so that a NaN is refused too.
        if not 0 <= p <= 1:
            raise InputError(
                f"p-value {p} of hypothesis {index + 1} lies outside 0 to 1",
                where="Holm adjustment",
                mend="Give a probability, or None where the test was not computed",
            )
    adjusted: list[float | None] = [None] * len(p_values)
    floor = 0.0
    for rank, (p, index) in enumerate(sorted(tested)):
        floor = max(floor, min(1.0, (family - rank) * p))
        adjusted[index] = floor
    return tuple(adjusted)
