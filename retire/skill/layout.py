"""How a skill lies in its file: containers, leaf blocks and the pieces that can be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retire.domain.clause import ClauseKind


class LeafKind(StrEnum):
    """What a leaf block is in Markdown."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    RULE = "rule"
    CODE = "code"
    FENCE = "fence"
    HTML = "html"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Container:
    """A block quote or a list item.

    ``number`` is unique in a file and ``list_number`` in a list (-1 for a quote). ``indent`` and
    ``pad`` count the columns before and after the marker.
    """

    number: int
    list_number: int
    marker: str
    indent: int
    pad: int

    @property
    def is_quote(self) -> bool:
        """Whether this is a block quote."""
        return self.list_number < 0

    @property
    def offset(self) -> int:
        """Columns by which the content of a list item is indented."""
        return self.indent + len(self.marker) + self.pad


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a leaf, in characters of the file, that becomes one clause."""

    start: int
    end: int
    kind: ClauseKind


@dataclass(frozen=True, slots=True)
class Leaf:
    """A block without child blocks.

    ``start`` and ``end`` are character offsets without surrounding white space, ``line_start`` is
    where its first line begins. ``own`` counts the columns of indentation beyond its containers.
    ``joined`` tells that the last piece holds indented code besides the block itself.
    A leaf without pieces (heading, thematic break) lives as long as its ``scope`` does.
    """

    kind: LeafKind
    chain: tuple[Container, ...]
    line_start: int
    start: int
    end: int
    own: int
    level: int = 0
    pieces: tuple[Piece, ...] = ()
    joined: bool = False
    scope: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole file as characters, and where its leaves lie."""

    text: str
    body_start: int
    line_end: str
    leaves: tuple[Leaf, ...]
