"""Stretches of a paragraph that no sentence end may fall into.

Code spans, tags, comments, emphasis, brackets and quotation marks are matched from left to right,
each kind for itself and always with the nearest opener. A mark without a partner protects
nothing, and it has no partner in any selection of the sentences either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"\\[!-/:-@\[-`{-~]"
    r"|(?P<ticks>`+)"
    # A tag that held the end of a sentence could come and go with another sentence.
    r"|(?P<comment><!--)"
    r"|(?P<raw></?[A-Za-z](?:[^<>\n.!?\u2026\u3002\uff01\uff1f\uff0e]|[.!?](?=[\w/=&%#:+-]))*>)"
    r"|(?P<run>\*+|_+|~~+)"
    r"|(?P<mark>[()\[\]{}\"'\uff08\uff09\u300a-\u300f\u2018-\u201a\u201c-\u201e\u00ab\u00bb])",
    re.DOTALL,
)
_BRACKETS = dict(zip(")]}\uff09\u300d\u300f\u300b", "([{\uff08\u300c\u300e\u300a", strict=True))
_QUOTE_PARTNERS = {
    '"': '"',
    "'": "'",
    "\u201c": "\u201e",
    "\u201d": "\u201c\u201e",
    "\u2018": "\u201a",
    "\u2019": "\u2018",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab",
}
_BEFORE_OPENER = frozenset(" \t\n=([{\uff08-\u2013\u2014/*_\u3002\uff01\uff1f\uff0e")


@dataclass(frozen=True, slots=True)
class Protection:
    """What each position of a paragraph's text lies in.

    ``no_cut[i]`` tells whether a cut in front of character i would fall into a stretch,
    ``literal[i]`` and ``quoted[i]`` whether character i is code or a tag, or quoted. ``bracket[i]``
    is the position of the outermost bracket around character i, or -1.
    """

    no_cut: bytearray
    literal: bytearray
    quoted: bytearray
    bracket: list[int]


@dataclass(slots=True)
class _Scan:
    text: str
    protection: Protection
    brackets: dict[str, list[int]] = field(default_factory=dict)
    pairs: list[tuple[int, int]] = field(default_factory=list)
    quotes: dict[str, int] = field(default_factory=dict)
    runs: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def close(self, start: int, end: int, flags: bytearray | None = None) -> None:
        self.protection.no_cut[start + 1 : end] = b"\x01" * (end - start - 1)
        if flags is not None:
            flags[start:end] = b"\x01" * (end - start)

    def before(self, at: int) -> str:
        return self.text[at - 1] if at else "\n"

    def after(self, at: int) -> str:
        return self.text[at] if at < len(self.text) else "\n"

    def ticks(self, start: int, end: int) -> int:
        """Protect a code span; return where scanning goes on."""
        closing = re.compile(rf"(?<!`)`{{{end - start}}}(?!`)").search(self.text, end)
        if closing is None:
            return end
        self.close(start, closing.end(), self.protection.literal)
        return closing.end()

    def comment(self, start: int) -> int:
        """Protect a comment; return where scanning goes on."""
        end = self.text.find("-->", start)
        if end < 0:
            return start + len("<!--")
        self.close(start, end + len("-->"), self.protection.literal)
        return end + len("-->")

    def mark(self, char: str, at: int) -> None:
        if char in _BRACKETS:
            self._close_bracket(_BRACKETS[char], at)
        elif char in _BRACKETS.values():
            self.brackets.setdefault(char, []).append(at)
        else:
            self._quote(char, at)

    def _close_bracket(self, opener: str, at: int) -> None:
        waiting = self.brackets.get(opener)
        if waiting:
            start = waiting.pop()
            self.close(start, at + 1)
            self.pairs.append((start, at + 1))

    def _quote(self, char: str, at: int) -> None:
        can_close = not self.before(at).isspace() and not (
            char in "'\u2019" and self.after(at + 1).isalnum()
        )
        for partner in _QUOTE_PARTNERS.get(char, "") if can_close else "":
            if partner in self.quotes:
                self.close(self.quotes.pop(partner), at + 1, self.protection.quoted)
                return
        can_open = self.before(at) in _BEFORE_OPENER and not self.after(at + 1).isspace()
        if can_open and char != "\u2019":
            self.quotes.setdefault(char, at)

    def run(self, start: int, end: int) -> None:
        """Match a run of emphasis marks by CommonMark's flanking rules."""
        char, length = self.text[start], end - start
        before, after = self.before(start), self.after(end)
        left = not after.isspace() and (after.isalnum() or not before.isalnum())
        right = not before.isspace() and (before.isalnum() or not after.isalnum())
        if char == "_":
            left, right = left and not before.isalnum(), right and not after.isalnum()
        waiting = self.runs.setdefault(char, [])
        while right and length and waiting:
            opened, count = waiting.pop()
            used = min(count, length)
            self.close(opened, end)
            length -= used
            if count > used:
                waiting.append((opened, count - used))
        if left and length:
            waiting.append((start, length))


def protect(text: str) -> Protection:
    """Return what may not be cut in a paragraph's text."""
    size = len(text)
    protection = Protection(bytearray(size + 1), bytearray(size), bytearray(size), [-1] * size)
    scan = _Scan(text, protection)
    at = 0
    while found := _TOKEN.search(text, at):
        at = found.end()
        if found["ticks"]:
            at = scan.ticks(*found.span())
        elif found["comment"]:
            at = scan.comment(found.start())
        elif found["raw"]:
            scan.close(*found.span(), protection.literal)
        elif found["run"]:
            scan.run(*found.span())
        elif found["mark"]:
            scan.mark(found["mark"], found.start())
    covered = 0
    for start, end in sorted(scan.pairs):
        first = max(start, covered)
        protection.bracket[first:end] = [start] * (end - first)
        covered = max(covered, end)
    return protection
