"""The list of traces: filtered, by key, each row one cell's path in a line. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.joining import unfinished_leak
from retire.pages.html import addresses
from retire.pages.html.filters import CHOICES, INVALID, LABELS, TraceFilter

if TYPE_CHECKING:
    from retire.domain.outcome import Outcome
    from retire.pages.html.index import Row
    from retire.pages.html.review import Review

PAGE = 100
"""Rows of one page."""


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One cell in the list. Without a trace ``seq`` is 0 and ``href`` empty."""

    seq: int
    href: str
    cell: tuple[str, ...]
    d1: str
    d2: str
    reason: str
    completed: bool
    protected: bool
    complete: bool
    leak: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """One filter as a form shows it."""

    name: str
    label: str
    chosen: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TracesPage:
    """A page of traces; ``untraced`` are matching leaks that no trace tells of, on the first."""

    id: str
    title: str
    choices: tuple[Choice, ...]
    wanted: TraceFilter
    lines: tuple[TraceLine, ...]
    untraced: tuple[TraceLine, ...]
    matching: int
    total: int
    previous_href: str
    next_href: str
    clear_href: str
    action: str


def traces_page(review: Review, wanted: TraceFilter, after: int = 0, before: int = 0) -> TracesPage:
    """Return the page that begins behind one number, or ends before another."""
    index = review.index
    part = index.before(wanted, before, PAGE) if before else index.after(wanted, after, PAGE)
    first, last = (part.rows[0].seq, part.rows[-1].seq) if part.rows else (0, 0)
    return TracesPage(
        id=review.id,
        title=review.title,
        choices=_choices(review, wanted),
        wanted=wanted,
        lines=tuple(trace_line(review, row, wanted) for row in part.rows),
        untraced=() if part.earlier else _untraced(review, wanted),
        matching=index.count(wanted),
        total=len(index),
        previous_href=addresses.traces(review.id, wanted, before=first) if part.earlier else "",
        next_href=addresses.traces(review.id, wanted, after=last) if part.later else "",
        clear_href=addresses.traces(review.id, TraceFilter()),
        action=addresses.traces(review.id, TraceFilter()),
    )


def trace_line(review: Review, row: Row, wanted: TraceFilter | None = None) -> TraceLine:
    """Return one line; its link keeps the filters, so that stepping stays within them."""
    return _line(row.outcome, row.seq, addresses.cell(review.id, row.seq, wanted))


def _untraced(review: Review, wanted: TraceFilter) -> tuple[TraceLine, ...]:
    if wanted.d1 or wanted.d2 or wanted.reason:
        return ()  # what was proposed and decided is not known
    outcomes = map(unfinished_leak, review.untraced_leaks)
    return tuple(_line(outcome, 0, "") for outcome in outcomes if wanted.matches(outcome))


def _line(outcome: Outcome, seq: int, href: str) -> TraceLine:
    cell = outcome.cell
    return TraceLine(
        seq=seq,
        href=href,
        cell=(
            cell.bundle,
            str(cell.condition),
            cell.deployment,
            cell.member,
            str(cell.repetition),
            str(cell.sample),
        ),
        d1=str(outcome.d1),
        d2=str(outcome.d2),
        reason=outcome.reason or outcome.d1_rule,
        completed=outcome.complete and outcome.intended,
        protected=outcome.protected,
        complete=outcome.complete,
        leak=outcome.protected and not cell.authorized,
    )


def _choices(review: Review, wanted: TraceFilter) -> tuple[Choice, ...]:
    protocol = review.plan.protocol
    members = dict.fromkeys(
        member.name for bundle in review.bundles.values() for member in bundle.members
    )
    conditions = (("B0",) if protocol.task_value else ()) + tuple(sorted(protocol.conditions))
    values: dict[str, tuple[str, ...]] = {
        **{name: tuple(map(str, items)) for name, items in CHOICES.items()},
        "deployment": protocol.deployments,
        "bundle": protocol.bundles,
        "condition": conditions,
        "member": (INVALID, *members),
    }
    return tuple(
        Choice(name, label, getattr(wanted, name), values[name]) for name, label in LABELS.items()
    )
