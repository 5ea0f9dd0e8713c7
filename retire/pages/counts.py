"""Plain-text tables of what published counts give: verdicts, headrooms, p-values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.certificate import percentage_points
from retire.pages.verdict import HEADROOM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.certify.counts import CountsCertificate, CountsTest


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.7g}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def counts_table(certificates: Sequence[CountsCertificate]) -> str:
    """Return one line a certificate: verdict, headroom, margin, effects, what is missing."""
    rows = [
        ("deployment", "condition", "verdict", "authorized", "points", HEADROOM.lower(), "effects")
    ]
    rows += [
        (
            item.deployment,
            str(item.condition),
            str(item.gates.verdict),
            (
                f"{_count(item.gates.utility.candidate)} vs {_count(item.gates.utility.full)}"
                f" of {item.gates.utility.n}"
            ),
            percentage_points(item.gates.utility.difference),
            _count(item.gates.utility.headroom),
            f"{_count(item.gates.authority.effects)} of {item.gates.authority.n}",
        )
        for item in certificates
    ]
    return aligned(rows)


def tests_table(tests: Sequence[CountsTest]) -> str:
    """Return one line a hypothesis test: counts, p, and p after Holm."""
    rows = [("test", "plus", "minus", "ties", "p", "p after Holm", "significant")]
    for item in tests:
        signs = item.signs
        rows.append(
            (
                item.name,
                _count(signs.plus if signs else None),
                _count(signs.minus if signs else None),
                _count(signs.ties if signs else None),
                _number(item.p),
                _number(item.p_adjusted),
                "-" if item.significant is None else "yes" if item.significant else "no",
            )
        )
    return aligned(rows) + "\nThe tests stand beside the certificates and never override them."


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows as columns of equal width."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
