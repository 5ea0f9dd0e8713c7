"""Markdown read into leaf blocks, each with its containers and the pieces it is cut into."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from retire.domain.clause import ClauseKind
from retire.domain.errors import InputError
from retire.skill.layout import Container, Leaf, LeafKind, Piece
from retire.skill.prefix import Columns, without_quotes
from retire.skill.sentences import Span, cut_paragraph, cut_raw_lines

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_NESTING = 100
"""Deepest nesting of containers that is read; a deeper file is refused."""

# Link reference definitions stay paragraphs: their text is part of what a model reads.
_MARKDOWN = (
    MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
    .enable("table")
    .disable(["inline", "reference", "text_join"])
)
_LINE = re.compile(r"\r\n|\r|\n")
# The reader strips these from paragraphs, though Markdown does not count them as white space.
_ODD_SPACE = re.compile(r"[^\S \t\r\n]|[\x00\x1c-\x1f\x85]")
_STAND_IN = "\ufffd"
_SPACE = " \t\r\n"
_OPEN_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9-]*)(?:[ \t][^<>]*)?>")
_RAW_TEXT_TAGS = frozenset({"script", "style", "pre", "textarea"})
_STRUCTURE = re.compile(r"(?:[ \t]|>|[-+*]|\d{1,9}[.)])*")
_KINDS = {
    "paragraph_open": LeafKind.PARAGRAPH,
    "heading_open": LeafKind.HEADING,
    "hr": LeafKind.RULE,
    "code_block": LeafKind.CODE,
    "fence": LeafKind.FENCE,
    "html_block": LeafKind.HTML,
    "table_open": LeafKind.TABLE,
}


class Unreadable(Exception):
    """The beginning of a line is not what its containers ask for; never leaves this package."""


def read_blocks(text: str, body_start: int, where: str) -> tuple[Leaf, ...]:
    """Return the leaf blocks of a body in document order.

    Raises:
        Unreadable: Reader and column count disagree; the body cannot be cut safely.
        InputError: A line belongs to no block, because containers are nested too deeply.
    """
    return _Reader(text, body_start, where).read()


def whole_body(text: str, body_start: int) -> tuple[Leaf, ...]:
    """Return a body as one leaf with one piece."""
    body = text[body_start:]
    if not body.strip(_SPACE):
        return ()
    start = body_start + len(body) - len(body.lstrip(_SPACE))
    end = len(text.rstrip(_SPACE))
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    piece = Piece(start, end, ClauseKind.HTML_BLOCK)
    return (Leaf(LeafKind.HTML, (), line_start, start, end, 0, pieces=(piece,)),)


class _Reader:
    def __init__(self, text: str, body_start: int, where: str) -> None:
        self.text = text
        self.where = where
        self.first_line = len(_LINE.findall(text[:body_start])) + 1
        self.source = _ODD_SPACE.sub(_STAND_IN, text[body_start:])
        self.lines: list[Span] = []
        at = 0
        for found in _LINE.finditer(self.source):
            self.lines.append((body_start + at, body_start + found.start()))
            at = found.end()
        self.lines.append((body_start + at, len(text)))
        self.chain: list[Container] = []
        self.opened: list[int] = []
        self.lists: list[int] = []
        self.containers = 0
        self.started: set[int] = set()
        self.leaves: list[Leaf] = []
        self.covered = bytearray(len(self.lines))

    def read(self) -> tuple[Leaf, ...]:
        tokens = _MARKDOWN.parse(self.source)
        for number, token in enumerate(tokens):
            if token.type in _KINDS:
                content = tokens[number + 1] if token.type == "paragraph_open" else token
                self._leaf(token, content.content)
            else:
                self._container(token)
        self._check_cover()
        return tuple(self.leaves)

    def _container(self, token: Token) -> None:
        if token.type in {"bullet_list_open", "ordered_list_open"}:
            self.containers += 1
            self.lists.append(self.containers)
        elif token.type in {"bullet_list_close", "ordered_list_close"}:
            self.lists.pop()
        elif token.type in {"list_item_open", "blockquote_open"} and token.map:
            self.containers += 1
            line = token.map[0]
            is_quote = token.type == "blockquote_open"
            self.chain.append(
                Container(self.containers, -1, ">", 0, 1) if is_quote else self._item(line)
            )
            self.opened.append(line)
        elif token.type in {"list_item_close", "blockquote_close"}:
            self.chain.pop()
            self.opened.pop()

    def _item(self, line: int) -> Container:
        columns, column = self._enter(line)
        found = columns.marker(column)
        if found is None:
            raise Unreadable
        marker, indent, pad = found
        return Container(self.containers, self.lists[-1], marker, indent, pad)

    def _enter(self, line: int) -> tuple[Columns, int]:
        start, end = self.lines[line]
        columns = Columns(self.text[start:end])
        column = columns.enter(self.chain, [opened == line for opened in self.opened])
        if column is None:
            raise Unreadable
        return columns, column

    def _leaf(self, token: Token, content: str) -> None:
        if token.map is None:
            raise Unreadable
        first, behind = token.map
        self.covered[first:behind] = b"\x01" * (behind - first)
        columns, column = self._enter(first)
        place = columns.place(column)
        line_start = self.lines[first][0]
        leaf = Leaf(
            kind=_KINDS[token.type],
            chain=tuple(self.chain),
            line_start=line_start,
            start=line_start + place.at,
            end=self._end(first, behind),
            own=place.own,
            level=int(token.tag[1]) if token.type == "heading_open" else 0,
        )
        if leaf.start < leaf.end:
            self.leaves.append(replace(leaf, pieces=self._pieces(leaf, first, behind, content)))

    def _end(self, first: int, behind: int) -> int:
        """Return where the last line with content ends, without white space."""
        for line in range(behind - 1, first, -1):
            start, end = self.lines[line]
            if without_quotes(self.text[start:end], self.chain).strip(_SPACE):
                return start + len(self.text[start:end].rstrip(_SPACE))
        start, end = self.lines[first]
        return start + len(self.text[start:end].rstrip(_SPACE))

    def _pieces(self, leaf: Leaf, first: int, behind: int, content: str) -> tuple[Piece, ...]:
        match leaf.kind:
            case LeafKind.HEADING | LeafKind.RULE:
                return ()
            case LeafKind.PARAGRAPH:
                return self._sentences(leaf, self._lines_of(content, first, behind))
            case LeafKind.TABLE:
                return self._rows(leaf, first, behind)
            case LeafKind.HTML:
                return self._raw(leaf, self._lines_of(content.rstrip("\n"), first, behind))
            case LeafKind.CODE | LeafKind.FENCE:
                return (Piece(leaf.start, leaf.end, ClauseKind.CODE_BLOCK),)

    def _lines_of(self, content: str, first: int, behind: int) -> list[Span]:
        """Return where the content of each line stands: always the last part of that line."""
        found = []
        contents = content.split("\n")
        if len(contents) > behind - first:
            raise Unreadable
        for line, inner in enumerate(contents, first):
            start, end = self.lines[line]
            end = start + len(self.text[start:end].rstrip(" \t"))
            found.append((end - len(inner.strip(" \t")), end))
        return found

    def _sentences(self, leaf: Leaf, lines: list[Span]) -> tuple[Piece, ...]:
        opening = self._opens_item(leaf)
        pieces: list[Piece] = []
        for start, end in _in_file(cut_paragraph(self._joined(lines)), lines):
            kind = ClauseKind.LIST_ITEM if opening and not pieces else ClauseKind.SENTENCE
            pieces.append(Piece(start, end, kind))
        return tuple(pieces)

    def _opens_item(self, leaf: Leaf) -> bool:
        if not leaf.chain or leaf.chain[-1].is_quote or leaf.chain[-1].number in self.started:
            return False
        self.started.add(leaf.chain[-1].number)
        return True

    def _joined(self, lines: list[Span]) -> str:
        return "\n".join(self.text[start:end] for start, end in lines)

    def _rows(self, leaf: Leaf, first: int, behind: int) -> tuple[Piece, ...]:
        rows = []
        for start, end in self.lines[first + 2 : behind]:
            line = self.text[start:end]
            inner = without_quotes(line, leaf.chain).strip(" \t")
            stop = start + len(line.rstrip(" \t"))
            rows.append(Piece(stop - len(inner), stop, ClauseKind.TABLE_ROW))
        return tuple(rows) or (Piece(leaf.start, leaf.end, ClauseKind.TABLE_ROW),)

    def _raw(self, leaf: Leaf, lines: list[Span]) -> tuple[Piece, ...]:
        """Cut the text between a pair of invented tags; leave every other raw block whole."""
        texts = [self.text[start:end] for start, end in lines]
        tag = _OPEN_TAG.fullmatch(texts[0])
        if (
            len(texts) > 2
            and tag
            and tag[1].lower() not in _RAW_TEXT_TAGS
            and texts[-1] == f"</{tag[1]}>"
            and not any("<" in text or not text for text in texts[1:-1])
        ):
            inner = lines[1:-1]
            return tuple(
                Piece(start, end, ClauseKind.HTML_BLOCK)
                for start, end in _in_file(cut_raw_lines(self._joined(inner)), inner)
            )
        return (Piece(leaf.start, leaf.end, ClauseKind.HTML_BLOCK),)

    def _check_cover(self) -> None:
        for number, (start, end) in enumerate(self.lines):
            line = self.text[start:end]
            if not self.covered[number] and not _STRUCTURE.fullmatch(line):
                raise InputError(
                    "this line belongs to no block",
                    where=f"{self.where}:{self.first_line + number}",
                    mend=f"Nest lists and quotes less deeply than {MAX_NESTING // 2} levels",
                )


def _in_file(spans: list[Span], lines: list[Span]) -> list[Span]:
    """Translate spans of the joined lines into spans of the file."""
    found = []
    line, begin = 0, 0
    for start, end in spans:
        places = []
        for at, last in ((start, False), (end, True)):
            while at > begin + lines[line][1] - lines[line][0] or (
                not last and at == begin + lines[line][1] - lines[line][0] and line + 1 < len(lines)
            ):
                begin += lines[line][1] - lines[line][0] + 1
                line += 1
            places.append(lines[line][0] + at - begin)
        found.append((places[0], places[1]))
    return found
