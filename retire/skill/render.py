"""Writing a skill without some of its clauses, so that every other clause reads as before."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING

from retire.skill.layout import LeafKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from retire.skill.layout import Container, Layout, Leaf, Piece

_LINE = re.compile(r"\r\n|\r|\n")
_WIDEST_PAD = 4


def render_layout(layout: Layout, alive: Sequence[bool]) -> str:
    """Return the text of a file with only the living pieces, in document order.

    Args:
        layout: The file and its leaves.
        alive: For every piece of the file whether it stays.
    """
    if all(alive):
        return layout.text
    return _Writer(layout, alive).write()


class _Writer:
    def __init__(self, layout: Layout, alive: Sequence[bool]) -> None:
        self.layout = layout
        self.text = layout.text
        self.alive = alive
        self.firsts = [0, *accumulate(len(leaf.pieces) for leaf in layout.leaves)]
        self.living = [0, *accumulate(alive)]
        self.parts: list[str] = []
        self.before: int | None = None
        self.written: set[int] = set()

    def write(self) -> str:
        leaves = self.layout.leaves
        for number, leaf in enumerate(leaves):
            if self._stays(number, leaf):
                self.parts.append(self._gap(number))
                self.parts.append(self._content(number))
                self.written.update(container.number for container in leaf.chain)
                self.before = number
        if self.before is None:
            head = self.text[: self.layout.body_start]
            return head if head.endswith(("\n", "\r")) else head + self.layout.line_end
        last = len(leaves) - 1
        whole_tail = self.before == last and self._ends_as_before(last)
        self.parts.append(self.text[leaves[-1].end :] if whole_tail else self.layout.line_end)
        return "".join(self.parts)

    def _stays(self, number: int, leaf: Leaf) -> bool:
        if leaf.pieces:
            return self._count(number, number + 1) > 0
        if leaf.kind is LeafKind.RULE and self._waits(number, leaf):
            # A rule behind a list marker could read as one long rule; it parts nothing there.
            return False
        return self._count(*leaf.scope) > 0

    def _count(self, first: int, behind: int) -> int:
        return self.living[self.firsts[behind]] - self.living[self.firsts[first]]

    def _waits(self, number: int, leaf: Leaf) -> bool:
        """Whether a container of a leaf has lost the leaf that carried its marker."""
        if number == 0 or self.before == number - 1:
            return False
        return any(item.number not in self.written for item in leaf.chain)

    def _gap(self, number: int) -> str:
        leaves = self.layout.leaves
        leaf = leaves[number]
        start = leaves[number - 1].end if number else 0
        if number == 0 or (self.before == number - 1 and self._ends_as_before(number - 1)):
            return self.text[start : leaf.start]
        if self.before is None:
            return self.text[: leaves[0].line_start] + self._prefix(leaf, None)
        before = leaves[self.before]
        behind = self.text[before.end : leaves[self.before + 1].line_start]
        ahead = self.text[start : leaf.line_start]
        blank_lines = max(_blank_lines(behind), _blank_lines(ahead))
        if not self._sibling(leaf, before):
            blank_lines = max(blank_lines, 1)
        line_end = self.layout.line_end
        blank = _blank_prefix(leaf, before) + line_end
        return line_end + blank * blank_lines + self._prefix(leaf, before)

    def _ends_as_before(self, number: int) -> bool:
        """Whether a living leaf still needs no more room behind it than in the file."""
        leaves = self.layout.leaves
        last_lives = self.alive[self.firsts[number + 1] - 1]
        if leaves[number].joined and not last_lives:
            return False
        first, behind = self.firsts[number], self.firsts[number + 1]
        if self._count(number, number + 1) == behind - first or number + 1 == len(leaves):
            return True
        # The rest of a paragraph could read as the head of the table that follows.
        return leaves[number + 1].kind is not LeafKind.TABLE

    def _sibling(self, leaf: Leaf, before: Leaf) -> Container | None:
        """Return the item of the leaf before that is in the same list as one waiting here."""
        items = {item.list_number: item for item in before.chain if not item.is_quote}
        for item in leaf.chain:
            if item.number not in self.written:
                return items.get(item.list_number)
        return None

    def _prefix(self, leaf: Leaf, before: Leaf | None) -> str:
        """Write the containers of a leaf anew, with the markers that have not been written."""
        sibling = self._sibling(leaf, before) if before else None
        parts = []
        for item in leaf.chain:
            if item.is_quote:
                parts.append("> ")
            elif item.number in self.written:
                parts.append(" " * item.offset)
            elif sibling and item.list_number == sibling.list_number:
                keeps = item.indent == sibling.indent
                parts.append(_marker(item, item.indent if keeps else 0))
            else:
                parts.append(_marker(item, 0))
        return "".join(parts) + " " * (leaf.own if leaf.kind is LeafKind.CODE else 0)

    def _content(self, number: int) -> str:
        leaf = self.layout.leaves[number]
        first, behind = self.firsts[number], self.firsts[number + 1]
        if not leaf.pieces or self._count(number, number + 1) == behind - first:
            return self.text[leaf.start : leaf.end]
        head = self.text[leaf.start : leaf.pieces[0].start]
        tail = self.text[leaf.pieces[-1].end : leaf.end]
        return head + "".join(self._living(leaf.pieces, first)) + tail

    def _living(self, pieces: Sequence[Piece], first: int) -> Iterator[str]:
        before: int | None = None
        for number, piece in enumerate(pieces):
            if not self.alive[first + number]:
                continue
            if before is not None:
                yield max(
                    (
                        self.text[pieces[at].end : pieces[at + 1].start]
                        for at in range(before, number)
                    ),
                    key=lambda gap: (len(_LINE.findall(gap)), len(gap)),
                )
            yield self.text[piece.start : piece.end]
            before = number


def _marker(item: Container, indent: int) -> str:
    """Write a list marker so that its text begins in the same column as before."""
    pad = item.pad + item.indent - indent
    return " " * indent + item.marker + " " * (pad if indent else min(pad, _WIDEST_PAD))


def _blank_lines(gap: str) -> int:
    """Count the blank lines between the end of a line and the beginning of another."""
    return max(0, len(_LINE.findall(gap)) - 1)


def _blank_prefix(leaf: Leaf, before: Leaf) -> str:
    """Return how a blank line begins that parts two leaves inside their common containers."""
    prefix = ""
    for item, other in zip(leaf.chain, before.chain, strict=False):
        if item != other:
            break
        prefix += "> " if item.is_quote else " " * item.offset
    return prefix.rstrip()
