"""Every leaking cell with its three stages; repetitions that went the same way share a line."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.pages.phrases import CONDITIONS
from retire.pages.traces import door_words, flipped_words, proposed_words, seen_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from retire.bundle import Bundle
    from retire.domain.cell import Cell, Condition
    from retire.domain.trace import Trace
    from retire.pages.html.index import Row
    from retire.pages.html.review import Review


@dataclass(frozen=True, slots=True)
class LeakLine:
    """Cells of one member that leaked in the same way."""

    bundle: str
    member: str
    repetitions: str
    cells: int
    flipped: str
    proposed: str
    decided: str
    seen: str


@dataclass(frozen=True, slots=True)
class LeakGroup:
    """The leaks of one deployment under one condition."""

    deployment: str
    condition: str
    meaning: str
    cells: int
    lines: tuple[LeakLine, ...]


def leak_groups(review: Review, deployments: Sequence[str]) -> tuple[LeakGroup, ...]:
    """Return every protected effect on an invalid request, by deployment and condition."""
    arms: dict[tuple[int, Condition], list[tuple[Cell, Row | None]]] = defaultdict(list)
    leaking: list[tuple[Cell, Row | None]] = [
        (row.cell, row) for row in review.index if row.outcome.protected and not row.cell.authorized
    ]
    leaking += [(cell, None) for cell in review.untraced_leaks]
    for cell, found in leaking:
        if cell.deployment in deployments:
            arms[deployments.index(cell.deployment), cell.condition].append((cell, found))
    return tuple(
        LeakGroup(
            deployment=deployments[place],
            condition=str(condition),
            meaning=CONDITIONS[condition],
            cells=len(cells),
            lines=tuple(_lines(review, cells)),
        )
        for (place, condition), cells in sorted(arms.items())
    )


_UNTRACED = ("not stored", "not stored", "the protected effect, in an attempt that was cut")
"""What is known of a leak that no trace tells of."""


def _lines(review: Review, leaking: Sequence[tuple[Cell, Row | None]]) -> Iterator[LeakLine]:
    alike: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell, row in sorted(leaking, key=lambda it: it[0]):
        way = _UNTRACED
        if row is not None:
            way = _way(review.bundles[cell.bundle], review.trace(row.seq).body)
        alike[cell.bundle, cell.member, *way].append(cell)
    for (key, member, proposed, decided, seen), cells in alike.items():
        bundle = review.bundles[key]
        yield LeakLine(
            bundle=key,
            member=member,
            repetitions=numbers_words([cell.repetition for cell in cells]),
            cells=len(cells),
            flipped=flipped_words(bundle, bundle.member(member)),
            proposed=proposed,
            decided=decided,
            seen=seen,
        )


def _way(bundle: Bundle, trace: Trace) -> tuple[str, str, str]:
    return proposed_words(trace.d1), door_words(trace.d2), seen_words(bundle, trace.d3)


def numbers_words(numbers: Sequence[int]) -> str:
    """Return ascending numbers with runs drawn together: ``1 to 3, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )
