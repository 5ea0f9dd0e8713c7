"""Plain text and Markdown that nothing in a skill or a model's answer can break. Pure."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 100
"""Columns of plain text."""

_MARKUP = re.compile(r"[\\|`*<>&\[\]~$]|(?<![^\W_])_|_(?![^\W_])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def plain(text: str) -> str:
    """Return text on one line, with everything invisible written out.

    White space of any kind becomes one space. Control, format, surrogate, private and unassigned
    characters, which could move a cursor or reverse the reading order, become visible escapes.
    """
    return "".join(_visible(character) for character in " ".join(text.split()))


def _visible(character: str) -> str:
    if unicodedata.category(character).startswith("C"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def many(count: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shortened(text: str, limit: int) -> str:
    """Return plain text of at most ``limit`` characters; an ellipsis says that some is missing."""
    line = plain(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def quoted(text: str, limit: int = 240) -> str:
    """Return somebody else's words as plain text between quotation marks."""
    return f'"{shortened(text, limit)}"'


def paragraph(text: str, first: str = "", rest: str | None = None) -> str:
    """Return plain text wrapped to ``WIDTH`` columns, lines after the first indented as ``rest``.

    Args:
        text: Any text; its own line ends are not kept.
        first: What the first line begins with.
        rest: What the others begin with; as many spaces as ``first`` is long if None.
    """
    lines = textwrap.wrap(
        plain(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first) if rest is None else rest,
        break_on_hyphens=False,
    )
    return "\n".join(lines) if lines else first.rstrip()


def in_markdown(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, link, HTML or table border in it."""
    return _MARKUP.sub(lambda found: _ENTITIES.get(found[0], "\\" + found[0]), plain(text))


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; numbers stand on the right."""

    title: str
    right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns also line up in a terminal.

    Cells may hold anything; what is special in Markdown is escaped here.
    """
    titles = [in_markdown(column.title) for column in columns]
    cells = [[in_markdown(cell) for cell in row] for row in rows]
    widths = [max(3, *map(cell_len, column)) for column in zip(titles, *cells, strict=True)]
    rule = [
        "-" * (width - 1) + ":" if column.right else "-" * width
        for column, width in zip(columns, widths, strict=True)
    ]
    lines = [titles, rule, *cells]
    return "\n".join(
        "| " + " | ".join(map(_padded, line, widths, columns)) + " |" for line in lines
    )


def _padded(cell: str, width: int, column: Column) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if column.right else cell + space


def numeric(*titles: str) -> list[Column]:
    """Return columns of numbers."""
    return [Column(title, right=True) for title in titles]


def section(title: str, note: str, body: str) -> str:
    """Return a numbered part of a page: a heading, a table or a sentence, and a note below it."""
    return "\n\n".join(part for part in (f"## {title}", body, note) if part)
