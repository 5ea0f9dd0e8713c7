"""Two runs, or two deployments of one, cell by cell. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.pages.html import addresses
from retire.pages.html.trace_list import trace_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from retire.domain.evidence import Evidence
    from retire.pages.html.index import Row
    from retire.pages.html.review import Review
    from retire.pages.html.trace_list import TraceLine

PAGE = 100
"""Rows of one page."""

NAMES = ("left", "right", "left_deployment", "right_deployment", "differing", "after")

Place = tuple[str, str, str, str, str, int]
"""Sample, deployment, bundle, condition, member, repetition; no deployment where one is chosen."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: a run, or one deployment of it."""

    review: Review
    deployment: str


@dataclass(frozen=True, slots=True)
class ShownSide:
    """A side as the page names it."""

    run: str
    title: str
    deployment: str
    deployments: tuple[str, ...]
    run_href: str
    evidence: Evidence
    leaks: int
    done: int
    cells: int


@dataclass(frozen=True, slots=True)
class ComparedLine:
    """The same cell on both sides."""

    place: tuple[str, ...]
    left: TraceLine | None
    right: TraceLine | None
    differs: bool


@dataclass(frozen=True, slots=True)
class ComparePage:
    """A page of a comparison."""

    left: ShownSide
    right: ShownSide
    only_differing: bool
    same_plan: bool
    lines: tuple[ComparedLine, ...]
    differing: int
    total: int
    toggle_href: str
    next_href: str
    first_href: str


def compare_page(left: Side, right: Side, after: int = 0, *, differing: bool) -> ComparePage:
    """Return one page of a comparison.

    Args:
        left: One side.
        right: The other.
        after: How many of the listed lines the page passes over.
        differing: Whether only cells with different outcomes are listed.
    """
    merged = bool(left.deployment or right.deployment)
    ours, theirs = (_by_place(side, merged=merged) for side in (left, right))
    lines = [_line(left, right, place, ours, theirs) for place in sorted({*ours, *theirs})]
    different = [line for line in lines if line.differs]
    listed = different if differing else lines
    query: dict[str, object] = {
        "left": left.review.id,
        "left_deployment": left.deployment,
        "right": right.review.id,
        "right_deployment": right.deployment,
        "differing": "yes" if differing else "",
    }
    following = after + PAGE
    return ComparePage(
        left=_shown(left, ours.values()),
        right=_shown(right, theirs.values()),
        only_differing=differing,
        same_plan=left.review.plan.digest == right.review.plan.digest,
        lines=tuple(listed[after:following]),
        differing=len(different),
        total=len(lines),
        toggle_href=addresses.compare({**query, "differing": "" if differing else "yes"}),
        next_href=addresses.compare({**query, "after": following})
        if following < len(listed)
        else "",
        first_href=addresses.compare(query) if after else "",
    )


def _by_place(side: Side, *, merged: bool) -> dict[Place, Row]:
    found = {}
    for row in side.review.index:
        cell = row.cell
        if side.deployment in {"", cell.deployment}:
            deployment = "" if merged else cell.deployment
            place = (
                str(cell.sample),
                deployment,
                cell.bundle,
                str(cell.condition),
                cell.member,
                cell.repetition,
            )
            found[place] = row
    return found


def _line(
    left: Side, right: Side, place: Place, ours: Mapping[Place, Row], theirs: Mapping[Place, Row]
) -> ComparedLine:
    one, other = ours.get(place), theirs.get(place)
    return ComparedLine(
        place=tuple(str(part) for part in place),
        left=trace_line(left.review, one) if one else None,
        right=trace_line(right.review, other) if other else None,
        differs=_compared(one) != _compared(other),
    )


def _compared(row: Row | None) -> tuple[object, ...]:
    if row is None:
        return ()
    it = row.outcome
    return (it.d1, it.d1_rule, it.d2, it.reason, it.complete, it.intended, it.protected)


def _shown(side: Side, rows: Iterable[Row]) -> ShownSide:
    outcomes = [row.outcome for row in rows]
    review = side.review
    return ShownSide(
        run=review.id,
        title=review.title,
        deployment=side.deployment,
        deployments=review.plan.protocol.deployments,
        run_href=addresses.run(review.id),
        evidence=review.evidence,
        leaks=sum(it.protected and not it.cell.authorized for it in outcomes),
        done=sum(it.complete and it.intended and it.cell.authorized for it in outcomes),
        cells=len(outcomes),
    )
