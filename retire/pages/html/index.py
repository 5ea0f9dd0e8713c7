"""A compact index over a run's traces: outcomes in the order of the chain, found by cell. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from retire.domain.cell import Cell
    from retire.domain.outcome import Outcome
    from retire.pages.html.filters import TraceFilter


@dataclass(frozen=True, slots=True)
class Row:
    """One trace: its number in the chain, where its bytes begin (in a file), what came of it."""

    seq: int
    place: int
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
    """Rows in ascending order of their numbers; grows at its end while a run goes on."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._numbers: list[int] = []
        self._cells: dict[Cell, Row] = {}

    def __len__(self) -> int:
        """Return how many traces there are."""
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in order."""
        return iter(self._rows)

    @property
    def last(self) -> int:
        """The number of the last row; 0 where there is none."""
        return self._numbers[-1] if self._numbers else 0

    def add(self, row: Row) -> None:
        """Append a row; its number is above all others."""
        self._rows.append(row)
        self._numbers.append(row.seq)
        self._cells[row.cell] = row

    def outcomes(self) -> list[Outcome]:
        """Return every outcome, in order."""
        return [row.outcome for row in self._rows]

    def row(self, seq: int) -> Row:
        """Return a row by its number; raises KeyError where there is none."""
        position = bisect_left(self._numbers, seq)
        if position == len(self._rows) or self._numbers[position] != seq:
            raise KeyError(seq)
        return self._rows[position]

    def of_cell(self, cell: Cell) -> Row | None:
        """Return the row of a cell, None while it has none."""
        return self._cells.get(cell)

    def count(self, wanted: TraceFilter) -> int:
        """Return how many rows a filter lets through."""
        return sum(wanted.matches(row.outcome) for row in self._rows)

    def after(self, wanted: TraceFilter, seq: int, limit: int) -> Stretch:
        """Return the first ``limit`` matching rows above a number."""
        begin = bisect_right(self._numbers, seq)
        found = _first(iter(self._rows[begin:]), wanted, limit + 1)
        earlier = bool(_first(reversed(self._rows[:begin]), wanted, 1))
        return Stretch(tuple(found[:limit]), earlier, later=len(found) > limit)

    def before(self, wanted: TraceFilter, seq: int, limit: int) -> Stretch:
        """Return the last ``limit`` matching rows below a number, in ascending order."""
        end = bisect_left(self._numbers, seq)
        found = _first(reversed(self._rows[:end]), wanted, limit + 1)
        later = bool(_first(iter(self._rows[end:]), wanted, 1))
        return Stretch(tuple(reversed(found[:limit])), len(found) > limit, later)

    def next(self, wanted: TraceFilter, seq: int) -> Row | None:
        """Return the first matching row above a number."""
        rows = _first(iter(self._rows[bisect_right(self._numbers, seq) :]), wanted, 1)
        return rows[0] if rows else None

    def previous(self, wanted: TraceFilter, seq: int) -> Row | None:
        """Return the last matching row below a number."""
        rows = _first(reversed(self._rows[: bisect_left(self._numbers, seq)]), wanted, 1)
        return rows[0] if rows else None


def _first(rows: Iterator[Row], wanted: TraceFilter, limit: int) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        if wanted.matches(row.outcome):
            found.append(row)
            if len(found) == limit:
                break
    return found
