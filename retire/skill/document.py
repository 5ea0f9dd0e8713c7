"""A skill read into clauses, and written again without some of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from retire.domain.clause import Clause
from retire.domain.digests import sha256
from retire.domain.errors import InputError
from retire.skill.blocks import Unreadable, read_blocks, whole_body
from retire.skill.header import Header, read_header
from retire.skill.hidden import HiddenText, find_hidden
from retire.skill.layout import Layout, Leaf
from retire.skill.render import render_layout
from retire.skill.structure import join_code, why_not_cut, with_scopes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_REMEMBERED = 1024
_LINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the file in bytes: frontmatter, structure or (``clause`` is its id) a clause."""

    start: int
    end: int
    clause: str | None


@dataclass(frozen=True, slots=True)
class Caption:
    """Text that no clause holds: a heading, a table head, an invented tag. ``line`` is from 1."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class SkillDocument:
    """A ``SKILL.md`` as bytes and as clauses.

    ``frontmatter_end`` is the byte offset behind the closing fence and its line end. The spans of
    ``segments`` follow each other from the first byte to the last. ``hidden`` does not stop the
    reading; whoever loads the skill decides. ``description_lines`` are visible to an audit and
    never deletable.
    """

    data: bytes
    digest: str
    name: str
    description: str
    frontmatter: Mapping[str, object] = field(compare=False, hash=False)
    frontmatter_end: int
    description_lines: tuple[tuple[int, str], ...]
    clauses: tuple[Clause, ...]
    segments: tuple[Segment, ...]
    captions: tuple[Caption, ...]
    hidden: tuple[HiddenText, ...]
    warnings: tuple[str, ...]
    layout: Layout = field(repr=False, compare=False, hash=False)

    def clause(self, clause_id: str) -> Clause:
        """Return the clause of an id.

        Raises:
            InputError: The skill has no such clause.
        """
        for clause in self.clauses:
            if clause.id == clause_id:
                return clause
        raise InputError(
            f"the skill {self.name!r} has no clause {clause_id}",
            mend=f"Its clauses are {_range_of(self.clauses)}",
        )


def parse(data: bytes, where: str = "SKILL.md") -> SkillDocument:
    """Read a skill; the same bytes are read once.

    Args:
        data: The file.
        where: Its name in messages.

    Raises:
        InputError: Not UTF-8 (with the byte), no fence, an unreadable header (with line and
            column), or a line that no block holds.
    """
    return _parse(bytes(data), where)


def render(document: SkillDocument, deleted: Collection[str]) -> bytes:
    """Return the skill without some clauses.

    Raises:
        InputError: An id that the skill does not have.
    """
    gone = frozenset(deleted)
    for clause_id in sorted(gone - {clause.id for clause in document.clauses}):
        document.clause(clause_id)
    if not gone:
        return document.data
    alive = [clause.id not in gone for clause in document.clauses]
    return render_layout(document.layout, alive).encode("utf-8")


@lru_cache(maxsize=_REMEMBERED)
def _parse(data: bytes, where: str) -> SkillDocument:
    text = _decode(data, where)
    header = read_header(text, where)
    leaves, warnings = _leaves(text, header, where)
    layout = Layout(text, header.end, header.line_end or "\n", leaves)
    offsets = _Offsets(text)
    clauses = _clauses(layout, offsets)
    return SkillDocument(
        data=data,
        digest=sha256(data),
        name=header.name,
        description=header.description,
        frontmatter=header.values,
        frontmatter_end=offsets.byte(header.end),
        description_lines=header.description_lines,
        clauses=clauses,
        segments=_segments(clauses, offsets.byte(header.end), len(data)),
        captions=_captions(layout, offsets),
        hidden=tuple(find_hidden(text, leaves, offsets.byte, offsets.line)),
        warnings=(*header.warnings, *warnings),
        layout=layout,
    )


def _decode(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not UTF-8: byte {error.start} cannot be read",
            where=where,
            mend="Save the file as UTF-8",
        ) from error


def _leaves(text: str, header: Header, where: str) -> tuple[tuple[Leaf, ...], list[str]]:
    try:
        found = read_blocks(text, header.end, where)
        reason = why_not_cut(text, found)
    except Unreadable:
        found, reason = (), "its indentation cannot be followed"
    if reason:
        return whole_body(text, header.end), [f"{where}: the body is one clause: {reason}"]
    return with_scopes(join_code(found)), []


class _Offsets:
    """Byte offsets and line numbers of the characters of a text."""

    def __init__(self, text: str) -> None:
        self._bytes: Sequence[int] = range(len(text) + 1)
        if not text.isascii():
            self._bytes = [0, *accumulate(len(char.encode("utf-8")) for char in text)]
        self._ends = [found.end() for found in _LINE.finditer(text)]

    def byte(self, at: int) -> int:
        return self._bytes[at]

    def line(self, at: int) -> int:
        return bisect_right(self._ends, at) + 1


def _clauses(layout: Layout, offsets: _Offsets) -> tuple[Clause, ...]:
    pieces = [piece for leaf in layout.leaves for piece in leaf.pieces]
    clauses = []
    for number, piece in enumerate(pieces, 1):
        text = layout.text[piece.start : piece.end]
        clauses.append(
            Clause(
                id=f"c{number:03d}",
                kind=piece.kind,
                start=offsets.byte(piece.start),
                end=offsets.byte(piece.end),
                first_line=offsets.line(piece.start),
                last_line=offsets.line(piece.end - 1),
                text=text,
                digest=sha256(text.encode("utf-8")),
            )
        )
    return tuple(clauses)


def _segments(clauses: Sequence[Clause], body: int, size: int) -> tuple[Segment, ...]:
    segments = [Segment(0, body, None)]
    at = body
    for clause in clauses:
        if at < clause.start:
            segments.append(Segment(at, clause.start, None))
        segments.append(Segment(clause.start, clause.end, clause.id))
        at = clause.end
    if at < size:
        segments.append(Segment(at, size, None))
    return tuple(segments)


def _captions(layout: Layout, offsets: _Offsets) -> tuple[Caption, ...]:
    found = []
    for leaf in layout.leaves:
        if not leaf.pieces:
            spans = [(leaf.start, leaf.end)]
        else:
            spans = [(leaf.start, leaf.pieces[0].start), (leaf.pieces[-1].end, leaf.end)]
        for start, end in spans:
            text = layout.text[start:end].strip()
            if text:
                found.append(Caption(text, offsets.line(start)))
    return tuple(found)


def _range_of(clauses: Sequence[Clause]) -> str:
    return f"{clauses[0].id} to {clauses[-1].id}" if clauses else "none"
