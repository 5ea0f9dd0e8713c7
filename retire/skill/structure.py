"""What joins leaf blocks: sections, code that needs its neighbour, files that cannot be cut."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from retire.skill.layout import Leaf, LeafKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.skill.layout import Piece

_LINE = re.compile(r"\r\n|\r|\n")
_WIDEST_PAD = 4
_RULE_CHARACTERS = frozenset("-*_+=:| \t")


def join_code(leaves: Sequence[Leaf]) -> list[Leaf]:
    """Join indented code to the piece before it.

    Without that piece the code could come to stand behind a list, where the same indentation
    means a paragraph of the last item. A heading, a rule or the beginning of its container
    shields the code, and it stays a clause of its own.
    """
    joined: list[Leaf] = []
    for leaf in leaves:
        before = joined[-1] if joined else None
        if leaf.kind is LeafKind.CODE and before and before.pieces and not _opens(leaf, before):
            pieces = _extended(before, leaf.end)
            joined[-1] = replace(before, end=leaf.end, pieces=pieces, joined=True)
        else:
            joined.append(leaf)
    return joined


def _extended(leaf: Leaf, end: int) -> tuple[Piece, ...]:
    """Return the pieces of a leaf, the last one drawn out to an end."""
    if leaf.pieces[-1].end < leaf.end:
        # A closing tag stands between: the raw block stays whole.
        return (replace(leaf.pieces[0], start=leaf.start, end=end),)
    return (*leaf.pieces[:-1], replace(leaf.pieces[-1], end=end))


def _opens(leaf: Leaf, before: Leaf) -> bool:
    """Whether a leaf is the first one in some container."""
    return leaf.chain != before.chain[: len(leaf.chain)]


def why_not_cut(text: str, leaves: Sequence[Leaf]) -> str:
    """Return why the body can only be kept as a whole, or nothing.

    In these files the meaning of an indentation hangs on a neighbour so tightly that no clause
    could be removed without changing another.
    """
    per_item: dict[int, int] = {}
    for leaf in leaves:
        for container in leaf.chain:
            per_item[container.number] = per_item.get(container.number, 0) + 1
    for number, leaf in enumerate(leaves):
        before = leaves[number - 1] if number else None
        reason = _odd_code(leaf, before) or _odd_marker(text, leaf, per_item)
        if reason:
            return f"line {len(_LINE.findall(text[: leaf.start])) + 1}: {reason}"
    return ""


def _odd_code(leaf: Leaf, before: Leaf | None) -> str:
    if leaf.kind is not LeafKind.CODE:
        return ""
    if before is None or _opens(leaf, before):
        item = leaf.chain[-1] if leaf.chain else None
        odd = item is not None and not item.is_quote and (item.indent > 0 or item.pad > 1)
        return "an indented list item begins with indented code" if odd else ""
    if any(not container.is_quote for container in before.chain[len(leaf.chain) :]):
        return "indented code stands behind a list without belonging to it"
    if not before.pieces and (before.chain != leaf.chain or (leaf.chain and before.level == 0)):
        return "indented code stands behind a rule or heading inside a list or quote"
    return ""


def _odd_marker(text: str, leaf: Leaf, per_item: dict[int, int]) -> str:
    for container in leaf.chain:
        if container.is_quote:
            continue
        if container.indent + container.pad > _WIDEST_PAD and per_item[container.number] > 1:
            return "a list marker stands too far from its text"
    if leaf.kind in {LeafKind.PARAGRAPH, LeafKind.CODE} and leaf.chain:
        line = _LINE.split(text[leaf.start : leaf.end], maxsplit=1)[0]
        if _RULE_CHARACTERS.issuperset(line):
            return "text in a list or quote consists of rule characters only"
    return ""


def with_scopes(leaves: Sequence[Leaf]) -> tuple[Leaf, ...]:
    """Tell headings and rules which leaves keep them alive.

    That is the smallest section or container around the leaf that has a clause at all: a heading
    goes with the last clause of its section, an empty section with the one that encloses it.
    """
    totals = [0, *accumulate(len(leaf.pieces) for leaf in leaves)]
    sections = _sections(leaves)
    spans = _container_spans(leaves)
    found: list[Leaf] = []
    for number, leaf in enumerate(leaves):
        if leaf.pieces:
            found.append(leaf)
            continue
        candidates = [*sections[number], *(spans[item.number] for item in leaf.chain)]
        candidates.sort(key=lambda span: span[1] - span[0])
        scope = next(
            (span for span in candidates if totals[span[1]] > totals[span[0]]), (0, len(leaves))
        )
        found.append(replace(leaf, scope=scope))
    return tuple(found)


def _container_spans(leaves: Sequence[Leaf]) -> dict[int, tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for number, leaf in enumerate(leaves):
        for container in leaf.chain:
            first = spans.get(container.number, (number, number))[0]
            spans[container.number] = (first, number + 1)
    return spans


def _sections(leaves: Sequence[Leaf]) -> dict[int, list[tuple[int, int]]]:
    """Return for every leaf without pieces the sections around it, its own among them."""
    enclosing: dict[int, list[int]] = {}
    ends: dict[int, int] = {}
    stack: list[int] = []
    for number, leaf in enumerate(leaves):
        while stack and _ends_section(leaves[stack[-1]], leaf):
            ends[stack.pop()] = number
        if leaf.kind is LeafKind.HEADING:
            stack.append(number)
        if not leaf.pieces:
            enclosing[number] = list(stack)
    ends.update(dict.fromkeys(stack, len(leaves)))
    return {
        number: [(heading, ends[heading]) for heading in headings]
        for number, headings in enclosing.items()
    }


def _ends_section(heading: Leaf, leaf: Leaf) -> bool:
    if leaf.chain[: len(heading.chain)] != heading.chain:
        return True
    return (
        leaf.kind is LeafKind.HEADING
        and len(leaf.chain) == len(heading.chain)
        and leaf.level <= heading.level
    )
