"""A compact index over a run's traces: outcomes in the order of the chain, found by cell. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from retire.domain.cell import Cell
    from retire.domain.outcome import Outcome
    from retire.pages.html.filters import TraceFilter


@dataclass(frozen=True, slots=True)
class Row:
    """One trace: its number in the chain, and what came of it."""

    seq: int
    outcome: Outcome

    @property
    def cell(self) -> Cell:
        """The cell it belongs to."""
        return self.outcome.cell


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some rows of a filtered list, and whether there are more on either side."""

    rows: tuple[Row, ...]
    earlier: bool
    later: bool


class TraceIndex:
    """Rows numbered from 1 as in their chain; grows at its end while a run goes on."""

    def __init__(self, outcomes: Iterable[Outcome] = ()) -> None:
        self._rows: list[Row] = []
        self._cells: dict[Cell, Row] = {}
        for outcome in outcomes:
            self.add(outcome)

    def __len__(self) -> int:
        """Return how many traces there are; that is the number of the last one too."""
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in order."""
        return iter(self._rows)

    def add(self, outcome: Outcome) -> None:
        """Append what came of the next trace."""
        row = Row(len(self._rows) + 1, outcome)
        self._rows.append(row)
        self._cells[outcome.cell] = row

    def row(self, seq: int) -> Row:
        """Return a row by its number; raises KeyError where there is none."""
        if not 0 < seq <= len(self._rows):
            raise KeyError(seq)
        return self._rows[seq - 1]

    def of_cell(self, cell: Cell) -> Row | None:
        """Return the row of a cell, None while it has none."""
        return self._cells.get(cell)

    def count(self, wanted: TraceFilter) -> int:
        """Return how many rows a filter lets through."""
        return sum(wanted.matches(row.outcome) for row in self._rows)

    def after(self, wanted: TraceFilter, seq: int, limit: int) -> Stretch:
        """Return the first ``limit`` matching rows above a number."""
        found = self._above(wanted, seq, limit + 1)
        earlier = bool(self._below(wanted, seq + 1, 1))
        return Stretch(tuple(found[:limit]), earlier, later=len(found) > limit)

    def before(self, wanted: TraceFilter, seq: int, limit: int) -> Stretch:
        """Return the last ``limit`` matching rows below a number, in ascending order."""
        found = self._below(wanted, seq, limit + 1)
        later = bool(self._above(wanted, seq - 1, 1))
        return Stretch(tuple(reversed(found[:limit])), len(found) > limit, later)

    def next(self, wanted: TraceFilter, seq: int) -> Row | None:
        """Return the first matching row above a number."""
        return next(iter(self._above(wanted, seq, 1)), None)

    def previous(self, wanted: TraceFilter, seq: int) -> Row | None:
        """Return the last matching row below a number."""
        return next(iter(self._below(wanted, seq, 1)), None)

    def _above(self, wanted: TraceFilter, seq: int, limit: int) -> Sequence[Row]:
        return _first(self._rows[seq:], wanted, limit)

    def _below(self, wanted: TraceFilter, seq: int, limit: int) -> Sequence[Row]:
        return _first(reversed(self._rows[: max(0, seq - 1)]), wanted, limit)


def _first(rows: Iterable[Row], wanted: TraceFilter, limit: int) -> Sequence[Row]:
    return list(islice((row for row in rows if wanted.matches(row.outcome)), limit))
