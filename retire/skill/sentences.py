"""Where a paragraph may be cut: behind a sentence, outside code, emphasis, brackets and quotes.

Every rule here looks at the end of one sentence or at the beginning of one, never at two
together. So the cuts between sentences stay where they are when other sentences are removed.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from retire.skill.protected import Protection, protect

Span: TypeAlias = tuple[int, int]

_WIDE = "\u3002\uff01\uff1f\uff0e"
_END = re.compile(rf"[.!?\u2026]+|[{_WIDE}]+")
_CLOSERS = re.compile(
    r"(?:[\"'\u2019\u201d\u201c\u00bb\u00ab\u203a\u300d\u300f\uff09\u3011\u300b\])*_~]|<!--.{0,4000}?-->"
    r"|[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
    r"|[\U000e0000-\U000e0fff])*",
    re.DOTALL,
)
_NOT_A_START = re.compile(
    r"[-+*](?:[ \t\n]|\Z)|\d{1,9}[.)](?:[ \t\n]|\Z)|\#{1,6}(?:[ \t\n]|\Z)|>|```|~~~|<[A-Za-z/!?]"
    r"|[-=:|_*+ \t]+(?:\n|\Z)"
    # A German date: "am 3. Mai".
    r"|(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b"
)
_LABEL = re.compile(r"\[(?:[^\[\]\\\n]|\\.)+\]:")
_DEFINITION = re.compile(
    _LABEL.pattern + r"[ \t]*\S+(?<![.!?])(?<![.!?][\"')*_\]])"
    r"(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?(?=[ \t]*(?:\n|\Z))"
)
_DELIMITER_ROW = re.compile(r"^[ \t]*[-:|][-:| \t]*$", re.MULTILINE)
_TICKS = re.compile(r"^[ \t]*```", re.MULTILINE)
_BULLET = re.compile(r"^(?:[-+*]|\d{1,9}[.)])[ \t]+\S", re.MULTILINE)
_WORD = re.compile(r"[^\s(\[{\"'*_\u201c\u201e\u2018\u00ab]*\Z")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_LONGEST_WORD = 40
_NEEDS_ROOM = frozenset("\"'*_~\u2019")
_ABBREVIATIONS = re.compile(
    # English, then German.
    r"approx|appx|ca|cf|corp|dept|dr|eds?|eq|esp|est|etc|ext?|figs?|hrs?|inc|incl|jr|lbs|ltd|max"
    r"|mins?|misc|mrs?|ms|nos?|opt|pp|pos|prof|pt|refs?|resp|secs?|sect|sr|st|temp|tel|viz|vol|vs"
    r"|abb|abs|abschn|allg|bspw|bzgl|bzw|eigtl|einschl|evtl|exkl|ggf|grds|inkl|kap|mio|mrd|nrn?"
    r"|sek|sog|std|usf|usw|vgl|vorh|zb|zzgl",
    re.IGNORECASE,
)


def cut_paragraph(text: str) -> list[Span]:
    """Return the spans of the sentences of a paragraph's text (lines joined by line feeds).

    The spans leave out the white space between sentences; together with it they cover the text.
    """
    if _DELIMITER_ROW.search(text, text.find("\n") + 1 or len(text)) or _TICKS.search(text):
        # Without one of its sentences this could become a table, a heading or a code fence.
        return [(0, len(text))]
    protection = protect(text)
    pieces: list[Span] = []
    start = 0
    while start < len(text):
        end = _next_end(text, start, protection)
        pieces.append((start, end))
        start = _skip_space(text, end)
    return pieces


def cut_raw_lines(text: str) -> list[Span]:
    """Return the spans to cut the text between a pair of invented tags into.

    Text that begins with a bullet is cut at its bullets, other text into sentences.
    """
    if not _BULLET.match(text):
        return cut_paragraph(text)
    starts = [found.start() for found in _BULLET.finditer(text)]
    ends = [*starts[1:], len(text)]
    return [
        (start, start + len(text[start:end].rstrip(" \t\n")))
        for start, end in zip(starts, ends, strict=True)
    ]


def _next_end(text: str, start: int, protection: Protection) -> int:
    definition = _DEFINITION.match(text, start)
    if definition and _begins_line(text, start) and _may_start(text, definition.end()):
        return definition.end()
    for found in _END.finditer(text, start):
        closers = _CLOSERS.match(text, found.end())
        end = closers.end() if closers else found.end()
        if (
            _has_room(text, found, end)
            and not protection.no_cut[end]
            and _ends_sentence(text, start, found, protection)
            and _may_start(text, end)
        ):
            return end
    return len(text)


def _has_room(text: str, found: re.Match[str], end: int) -> bool:
    """Whether white space follows; full-width marks need none, unless emphasis ends there too."""
    if text[end : end + 1] in {" ", "\t", "\n"}:
        return True
    return found.group()[0] in _WIDE and not _NEEDS_ROOM.intersection(text[found.end() : end])


def _begins_line(text: str, at: int) -> bool:
    while at and text[at - 1] in " \t":
        at -= 1
    return at == 0 or text[at - 1] == "\n"


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\n":
        at += 1
    return at


def _may_start(text: str, end: int) -> bool:
    """Whether what follows would still be a paragraph, were it the beginning of one."""
    following = _skip_space(text, end)
    if following == len(text) or _NOT_A_START.match(text, following):
        return False
    # A link definition is one only at the beginning of a line.
    return _begins_line(text, following) or not _LABEL.match(text, following)


def _ends_sentence(text: str, start: int, found: re.Match[str], protection: Protection) -> bool:
    at, marks = found.start(), found.group()
    if protection.literal[at] or "\u2026" in marks or marks.startswith(".."):
        return False
    if protection.bracket[at] >= 0 and protection.bracket[at] != start:
        return False
    if protection.quoted[at] and marks not in {".", "\u3002", "\uff0e"}:
        return False
    return marks != "." or _is_full_stop(text, start, at)


def _is_full_stop(text: str, start: int, at: int) -> bool:
    """Whether the dot behind a word ends a sentence: no abbreviation, initial or bare number."""
    if text[start:at].isdigit():
        return False
    word = _WORD.search(text, max(start, at - _LONGEST_WORD), at)
    before = word.group() if word else ""
    if len(before) == 1 and before.isalpha():
        return False
    return not _ABBREVIATIONS.fullmatch(before) and not _DOTTED.search(before)
