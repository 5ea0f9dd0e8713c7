"""The utility gate as a bar. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from retire.certify.certificate import StatedUtility


class Scale(NamedTuple):
    """Where the bar ends and its two lines stand, in thousandths of the authorized cells."""

    candidate: int
    needed: int
    full: int


def scale_of(gate: StatedUtility) -> Scale | None:
    """Return the bar; None where a count is missing."""
    if gate.candidate is None or gate.full is None or gate.smallest_passing is None:
        return None
    counts = (gate.candidate, gate.smallest_passing, gate.full)
    return Scale(*(1000 * count // gate.cells for count in counts))
