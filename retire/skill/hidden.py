"""Text in a skill that a human reader does not see: comments and invisible characters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from retire.skill.layout import LeafKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from retire.skill.layout import Leaf


class HiddenKind(StrEnum):
    """How text is hidden."""

    COMMENT = "comment"
    TAG_CHARACTERS = "tag_characters"
    ZERO_WIDTH = "zero_width"
    BIDIRECTIONAL = "bidirectional"
    BYTE_ORDER_MARK = "byte_order_mark"
    VARIATION_SELECTORS = "variation_selectors"


@dataclass(frozen=True, slots=True)
class HiddenText:
    """One hidden stretch: byte offsets into the file, line from 1, and what it says or is."""

    kind: HiddenKind
    start: int
    line: int
    decoded: str
    end: int


_HIDDEN = re.compile(
    r"(?P<comment><!--.*?(?:-->|\Z))"
    r"|(?P<tag_characters>[\U000e0000-\U000e007f]+)"
    r"|(?P<zero_width>[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200d\u2060-\u2064"
    r"\u3164\uffa0]+)"
    r"|(?P<bidirectional>[\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f]+)"
    r"|(?P<byte_order_mark>(?<!\A)\ufeff+)"
    r"|(?P<variation_selectors>[\ufe00-\ufe0f]{2,}|[\U000e0100-\U000e01ef]+)",
    re.DOTALL,
)
_EMOJI = re.compile(r"[\u2190-\u2bff\U0001f000-\U0001faff]\ufe0f?\Z")
_TAGS = 0xE0000


def find_hidden(
    text: str,
    leaves: Sequence[Leaf],
    byte_of: Callable[[int], int],
    line_of: Callable[[int], int],
) -> Iterator[HiddenText]:
    """Yield the hidden stretches of a file, in order; a comment in a code block is no comment."""
    code = [
        (leaf.start, leaf.end) for leaf in leaves if leaf.kind in {LeafKind.CODE, LeafKind.FENCE}
    ]
    at = 0
    while found := _HIDDEN.search(text, at):
        kind = HiddenKind(str(found.lastgroup))
        at = found.end()
        if kind is HiddenKind.COMMENT:
            while code and code[0][1] <= found.start():
                code.pop(0)
            if code and code[0][0] <= found.start():
                at = found.start() + 1
                continue
        if kind is HiddenKind.ZERO_WIDTH and _joins_emoji(text, found):
            continue
        yield HiddenText(
            kind=kind,
            start=byte_of(found.start()),
            line=line_of(found.start()),
            decoded=_decoded(kind, found.group()),
            end=byte_of(found.end()),
        )


def _joins_emoji(text: str, found: re.Match[str]) -> bool:
    start = found.start()
    return (
        found.group() == "\u200d"
        and _EMOJI.search(text, max(0, start - 2), start) is not None
        and _EMOJI.match(text[found.end() : found.end() + 1]) is not None
    )


def _decoded(kind: HiddenKind, found: str) -> str:
    if kind is HiddenKind.COMMENT:
        return found.removeprefix("<!--").removesuffix("-->").strip()
    if kind is HiddenKind.TAG_CHARACTERS:
        shown = (ord(char) - _TAGS for char in found)
        return "".join(chr(code) if 0x20 <= code < 0x7F else f"[{code:#04x}]" for code in shown)
    return " ".join(f"U+{ord(char):04X}" for char in found)
