"""The heat maps of a PDF report: squares with their counts, stronger where more happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from reportlab.lib.colors import HexColor, white
from reportlab.lib.units import mm
from reportlab.platypus import Paragraph, Spacer, Table, TableStyle

from retire.pages.report.drawing import (
    BODY,
    DONE,
    LEAKED,
    NUMBER,
    PART,
    SECTION,
    SMALL,
    STRONG,
    WHITE,
    WIDTH,
    text,
)
from retire.pages.report.lettering import drawn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from retire.pages.html.heat import Half, HeatMap, Square
    from retire.pages.report.content import Report

_SQUARE = 17 * mm

_Command: TypeAlias = tuple[Any, ...]


def heat_maps(report: Report) -> Iterator[Any]:
    """Yield the part about the heat maps."""
    yield text("Heat map", SECTION)
    yield text(
        "Each square counts two things. ✓ authorized requests with their intended effect; "
        "! protected effects on invalid requests. A stronger colour means a larger share.",
        BODY,
    )
    for it in report.maps:
        yield text(it.deployment, PART)
        yield _map(it)
    if report.maps:
        columns = "; ".join(f"{it.label} {it.meaning}" for it in report.maps[0].columns)
        yield Spacer(1, 6)
        yield text(
            f"{columns}. “?” says that some of these cells have no evidence, so the number could "
            "be higher.",
            BODY,
        )


def _map(it: HeatMap) -> Table:
    titles = [
        f"{column.label} task value" if column.task_value else column.label for column in it.columns
    ]
    rows: list[list[Any]] = [[text("Bundle", STRONG), *(text(name, STRONG) for name in titles)]]
    grounds: list[_Command] = []
    for number, row in enumerate(it.rows, start=1):
        name = Paragraph(f"<b>{drawn(row.bundle)}</b> {drawn(row.title)}", SMALL)
        rows += [
            [name, *(_half("✓", square.done, DONE) for square in row.squares)],
            ["", *(_leaks_half(square) for square in row.squares)],
        ]
        grounds.append(("SPAN", (0, 2 * number - 1), (0, 2 * number)))
        for column, square in enumerate(row.squares, start=1):
            grounds.append(_ground(column, 2 * number - 1, DONE[square.done.shade]))
            if square.leaks is not None:
                grounds.append(_ground(column, 2 * number, LEAKED[square.leaks.shade]))
    wide = WIDTH - _SQUARE * len(titles)
    table = Table(rows, colWidths=[wide, *([_SQUARE] * len(titles))], repeatRows=1, hAlign="LEFT")
    style = [
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
        ("LEFTPADDING", (0, 0), (0, -1), 0),
        ("TOPPADDING", (0, 0), (-1, -1), 0),
        ("BOTTOMPADDING", (0, 0), (-1, -1), 2),
        ("INNERGRID", (1, 1), (-1, -1), 1.5, white),
        *(("NOSPLIT", (0, 2 * n - 1), (-1, 2 * n)) for n in range(1, len(it.rows) + 1)),
        *grounds,
    ]
    table.setStyle(TableStyle(style))
    return table


def _ground(column: int, row: int, colour: str) -> _Command:
    return ("BACKGROUND", (column, row), (column, row), HexColor(colour))


def _leaks_half(square: Square) -> object:
    return "" if square.leaks is None else _half("!", square.leaks, LEAKED)


def _half(sign: str, half: Half, grounds: tuple[str, ...]) -> Paragraph:
    gap = "?" if half.missing else ""
    dark = half.shade == len(grounds) - 1
    return text(f"{sign} {half.found}/{half.cells}{gap}", WHITE if dark else NUMBER)
