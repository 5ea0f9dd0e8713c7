"""The beginning of a line: which columns belong to which container."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.skill.layout import Container

_PREFIX = re.compile(r"[ \t>\-+*0-9.)]*")
_MARKER = re.compile(r"[-+*]|\d{1,9}[.)]")
_TAB = 4
_QUOTE = re.compile(r"[ \t]*>")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the content of a block begins in its first line.

    ``at`` is the index of the character, ``own`` the columns between container and content.
    """

    at: int
    own: int


class Columns:
    """The beginning of one line with its tabs expanded, as CommonMark counts columns."""

    def __init__(self, line: str) -> None:
        found = _PREFIX.match(line)
        prefix = found.group() if found else ""
        text: list[str] = []
        index: list[int] = []
        for at, char in enumerate(prefix):
            width = _TAB - len(text) % _TAB if char == "\t" else 1
            text += " " * width if char == "\t" else char
            index += [at] * width
        self.text = "".join(text)
        self._index = [*index, len(prefix)]
        self._blank_after = not line[len(prefix) :]

    def enter(self, chain: Sequence[Container], opened: Sequence[bool]) -> int | None:
        """Return the column behind the containers, or None when the line does not enter them.

        ``opened`` tells for each container whether its marker stands in this line.
        """
        column = 0
        for container, here in zip(chain, opened, strict=True):
            if container.is_quote:
                column = self._skip(column)
                if self.text[column : column + 1] != ">":
                    return None
                column += 1 + (self.text[column + 1 : column + 2] == " ")
            elif here or self._skip(column) - column >= container.offset:
                column += container.offset
            else:
                return None
        return column

    def place(self, column: int) -> Place:
        """Return where the content behind a column begins."""
        content = self._skip(column)
        return Place(self._index[min(content, len(self._index) - 1)], content - column)

    def marker(self, column: int) -> tuple[str, int, int] | None:
        """Return the list marker behind a column with the columns before and after it."""
        begin = self._skip(column)
        found = _MARKER.match(self.text, begin)
        if found is None:
            return None
        content = self._skip(found.end())
        pad = content - found.end()
        blank = content == len(self.text) and self._blank_after
        return found.group(), begin - column, 1 if blank or not 1 <= pad <= _TAB else pad

    def _skip(self, column: int) -> int:
        while self.text[column : column + 1] == " ":
            column += 1
        return column


def without_quotes(line: str, chain: Sequence[Container]) -> str:
    """Return a line without the quote markers of its containers."""
    for container in chain:
        if container.is_quote and (found := _QUOTE.match(line)):
            line = line[found.end() :]
    return line
