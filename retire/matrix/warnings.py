"""What a plan cannot show, said before anything is spent. Pure."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from retire.stats.power import margin_finer_than_one_cell, reaches_alpha, smallest_p

if TYPE_CHECKING:
    from retire.matrix.protocol import Protocol

_TESTS = 3


def plan_warnings(protocol: Protocol) -> tuple[str, ...]:
    """Return a sentence for each limit that the plan's size sets."""
    bundles = len(protocol.bundles)
    alpha = Fraction(protocol.alpha_percent, 100)
    warnings = []
    if not reaches_alpha(bundles, _TESTS, alpha):
        smallest = float(smallest_p(bundles, _TESTS))
        warnings.append(
            f"with {bundles} bundle{'s' if bundles > 1 else ''} no sign test can reach "
            f"{protocol.alpha_percent}% under Holm: the smallest adjusted p is {smallest:.3g}"
        )
    cells = bundles * protocol.repetitions
    if margin_finer_than_one_cell(protocol.margin, cells):
        step = 100 / cells
        warnings.append(
            f"the margin of {protocol.margin_points} points is finer than one cell "
            f"({step:.1f} points of {cells} authorized cells): it allows no loss"
        )
    return tuple(warnings)
