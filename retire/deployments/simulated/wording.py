"""The words of a text, made comparable, and its sentences, list items and table rows.

This is the reading of a stand-in for a model, not the cutting of a skill into clauses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_CONTRACTIONS = (
    (re.compile(r"\bcan['\u2019]?t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon['\u2019]t\b"), "will not"),
    (re.compile(r"n['\u2019]t\b"), " not"),
    (re.compile(r"\b(it|that|there|what|who|nobody)['\u2019]s\b"), r"\1 is"),
    (re.compile(r"['\u2019]re\b"), " are"),
    (re.compile(r"['\u2019]ve\b"), " have"),
    (re.compile(r"['\u2019]ll\b"), " will"),
)
_QUOTES = re.compile(r"[\u201c\u201d\u00ab\u00bb`]+")
_DASHES = re.compile(r"\s[\u2013\u2014-]+\s|\s?\u2014\s?")
_SPACES = re.compile(r"\s+")
_DEGREES = re.compile(r"\u00b0\s*")
_TOKEN = re.compile(r"[^\W_]+(?:\.\d+)*", re.UNICODE)
_POSSESSIVE = re.compile(r"['\u2019]s?(?=\s|$|[.,;:!?\")])")
_IZE = re.compile(r"is(e|ed|es|ing|ation|ations)$")


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


STOP_WORDS = word_set(
    "a an the this that these those and or nor but if when while unless until till without with "
    "within of off on in into at to from for by as is are be been being was were am has have had "
    "having do does did not no never only must may might can could shall should will would it its "
    "they them their he she his her him you your we our us i my me any all both each every either "
    "neither one two three than then so such there here up down out over under above below before "
    "after during per via about again also too very just still yet already now ever even more most "
    "less least last same other another which who whom whose what how why where some someone "
    "anyone nobody nothing everything anything please"
)
"""Words that never identify an entry, a tool or a target."""


@lru_cache(maxsize=8192)
def normalise(text: str) -> str:
    """Return the text in lower case on one line, contractions spelled out, quotes straight."""
    plain = _DEGREES.sub(" ", text.lower())
    for pattern, replacement in _CONTRACTIONS:
        plain = pattern.sub(replacement, plain)
    plain = _QUOTES.sub('"', plain)
    plain = _DASHES.sub(", ", plain)
    return _SPACES.sub(" ", plain).strip()


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return a light stem: plural, -ing, -ed and a final e are dropped, -ise is spelled -ize."""
    if len(word) > 6:
        word = _IZE.sub(r"iz\1", word)
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("ches", "shes", "sses", "xes")):
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, shortest in (("ing", 6), ("ed", 5)):
        if word.endswith(ending) and len(word) >= shortest:
            word = _undouble(word[: -len(ending)])
            break
    if len(word) > 7 and word.endswith(("ancy", "ency")):
        return word[:-4]
    return word[:-1] if word.endswith(("e", "y")) and len(word) > 4 else word


def _undouble(word: str) -> str:
    doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if doubled else word


@lru_cache(maxsize=16384)
def tokens(text: str) -> tuple[str, ...]:
    """Return the words and numbers of a text in lower case; hyphens and underscores separate."""
    return tuple(_TOKEN.findall(_POSSESSIVE.sub(" ", text.lower())))


@lru_cache(maxsize=16384)
def content_stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words that carry content, in order, repeats kept."""
    return tuple(stem(word) for word in tokens(text) if word not in STOP_WORDS)


GENERIC_WORDS = frozenset(
    stem(word)
    for word in word_set(
        "grant consent permission approval agreement authorization permit pass booking sensor "
        "reading "
        "version firmware release schema software temperature status state value measurement level "
        "current"
    )
)
"""Stems that many entries share by nature: they may decide a section, hardly an entry."""


LONGEST_SENTENCE: Final = 800
"""Characters; a longer sentence is kept as text and never read as a rule."""

_HIDDEN: Final = re.compile("<!--.*?(?:-->|\\Z)", re.DOTALL)
_INVISIBLE: Final = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\U000e0000-\U000e007f]"
)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>")
_LINK: Final = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^()\n]{0,300}\)")
_EMPHASIS: Final = re.compile(r"\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)|~~")
_HEADING: Final = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM: Final = re.compile(r"(\s*)(?:[-*+\u2022]|\d{1,3}[.)])\s+(.*)$")
_CHECKBOX: Final = re.compile(r"\[[ xX]\]\s+")
_RULER: Final = re.compile(r"\s*(?:[-=*_]\s*){3,}$")
_DELIMITER_ROW: Final = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_FRONTMATTER_KEY: Final = re.compile(r"([A-Za-z][\w-]*):(?:\s+(.*))?$")
_SENTENCE_END: Final = re.compile(r"[.!?\u3002\uff01\uff1f]+[\"')\]\u201d\u2019*_]*\s+")
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|approx|no|etc|min|max|vs|cf|fig|sec|resp|incl|ca|mr|mrs|ms|dr|st"
    r"|[a-z]))\.$",
    re.IGNORECASE,
)
_ROW_DEMAND: Final = re.compile(
    r"\b(?:must|required?|needed|needs?|expected|expectation|condition|shall|has to|allowed)\b",
    re.IGNORECASE,
)
_OPEN_END: Final = re.compile(r"\b(?:if|when|while|unless|until|that|only|never)$", re.IGNORECASE)
_CONDITION_HEAD: Final = re.compile(r"(?:if|when|while|unless)\b", re.IGNORECASE)
_BARE_STOP: Final = re.compile(
    r"(?:refuse|stop|do nothing|leave it|skip|decline|abort|do not)\b.{0,30}$", re.IGNORECASE
)
_COPULA: Final = re.compile(
    r"(?:must|has to|is|are|be|reads?|not|never|only|holds?|stays?|no|both|all|every|each)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, list item or table row as plain text.

    ``lead`` is the line it hangs on: a paragraph or parent item that ends with a colon, or the
    heading of a list or table. ``previous`` is the sentence before it in the same block.
    """

    text: str
    lead: str = ""
    heading: str = ""
    previous: str = ""
    row: bool = False


@dataclass
class _Cutter:
    """State while going through the lines once."""

    sentences: list[Sentence]
    buffer: list[str]
    indent: int = -1
    heading: str = ""
    leads: tuple[tuple[int, str], ...] = ()
    header: tuple[str, ...] = ()

    def flush(self) -> None:
        """Close the open block and cut it into sentences."""
        text, self.buffer = " ".join(self.buffer), []
        listed = self.indent >= 0
        lead = self.leads[-1][1] if self.leads and listed else ""
        heading = self.heading if listed and not lead else ""
        previous = ""
        for sentence in cut_sentences(text):
            self.sentences.append(Sentence(sentence, lead, heading, previous))
            previous = sentence
        if previous.endswith(":") or _OPEN_END.search(previous):
            self.leads = (*self.leads, (self.indent, previous))

    def open_block(self, indent: int, text: str) -> None:
        """Start a list item (indent of its marker) or a paragraph (-1)."""
        self.flush()
        self.indent = indent
        if indent < 0:
            self.leads = ()
        else:
            self.leads = tuple(lead for lead in self.leads if lead[0] < indent)
        self.buffer = [text]

    def row(self, line: str) -> None:
        """Take one table row; the first one is the header."""
        if self.buffer:
            self.flush()
            self.buffer = []
        cells = tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
        if not self.header:
            self.header = cells
            return
        lead = self.leads[-1][1] if self.leads else ""
        self.sentences.append(
            Sentence(_row_text(self.header, cells), lead, "" if lead else self.heading, row=True)
        )


def _row_text(header: tuple[str, ...], cells: tuple[str, ...]) -> str:
    """Join a row to a sentence; a column headed by a demand makes its bare values demands."""
    if len(cells) > 1 and (_CONDITION_HEAD.match(header[0]) or _BARE_STOP.match(cells[-1])):
        word = header[0].split(" ")[0] if _CONDITION_HEAD.match(header[0]) else "If"
        return f"{word} {' '.join(cells[:-1])}, {cells[-1]}"
    parts = [cells[0]]
    for position, cell in enumerate(cells[1:], start=1):
        title = header[position] if position < len(header) else ""
        demanded = _ROW_DEMAND.search(title) and not _COPULA.match(cell)
        parts.append(f"must be {cell}" if demanded and cell else cell)
    return " ".join(parts)


@lru_cache(maxsize=512)
def split_text(text: str) -> tuple[Sentence, ...]:
    """Return the sentences, list items and table rows of a text, in order.

    Frontmatter contributes its description, code its lines (text in code may restrict too), raw
    HTML its words; comments and invisible characters contribute nothing.
    """
    visible = _INVISIBLE.sub("", _HIDDEN.sub(" ", text))
    lines = visible.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    cutter = _Cutter(sentences=[], buffer=[])
    fence = ""
    for line in _without_frontmatter_keys(lines):
        bare = line.lstrip("> ") if line.lstrip().startswith(">") else line
        mark = bare.strip()[:3]
        if mark in {"```", "~~~"} and fence in {"", mark}:
            fence = "" if fence else mark
            cutter.flush()
        elif fence:
            cutter.flush()
            cutter.buffer = [_plain(bare)]
        else:
            _take(cutter, bare)
    cutter.flush()
    return tuple(cutter.sentences)


def _take(cutter: _Cutter, line: str) -> None:
    """Let one line outside code continue or end the open block."""
    stripped = line.strip()
    if stripped.startswith("|") or (cutter.header and "|" in stripped):
        if not _DELIMITER_ROW.match(line):
            cutter.row(_plain(line))
        return
    cutter.header = ()
    heading, item = _HEADING.match(line), _ITEM.match(line)
    if not stripped:
        cutter.flush()
        cutter.buffer = []
    elif heading:
        cutter.open_block(-1, "")
        cutter.heading = _plain(heading[1])
    elif _RULER.match(line):
        cutter.flush()
    elif item:
        cutter.open_block(len(item[1]), _plain(_CHECKBOX.sub("", item[2], count=1)))
    elif cutter.buffer or (cutter.indent >= 0 and line[:1] in {" ", "\t"}):
        cutter.buffer.append(_plain(stripped))
    else:
        cutter.open_block(-1, _plain(stripped))


def _without_frontmatter_keys(lines: list[str]) -> list[str]:
    """Reduce each frontmatter block to its description; other lines pass."""
    kept: list[str] = []
    position = 0
    while position < len(lines):
        end = _frontmatter_end(lines, position)
        if end is None:
            kept.append(lines[position])
            position += 1
            continue
        inside = False
        for line in lines[position + 1 : end]:
            key = _FRONTMATTER_KEY.match(line)
            if key:
                inside = key[1] == "description"
                line = (key[2] or "").strip("\"'>|+- ")  # noqa: PLW2901  # the value of the key
            if inside:
                kept.append(line.strip())
        kept.append("")
        position = end + 1
    return kept


def _frontmatter_end(lines: list[str], start: int) -> int | None:
    if lines[start].rstrip() != "---" or start + 1 >= len(lines):
        return None
    if not _FRONTMATTER_KEY.match(lines[start + 1]):
        return None
    closing = (
        i for i in range(start + 1, min(start + 60, len(lines))) if lines[i].rstrip() == "---"
    )
    return next(closing, None)


def _plain(text: str) -> str:
    """Drop Markdown marks; a code span keeps its ticks as a quotation."""
    return _EMPHASIS.sub("", _LINK.sub(r"\1", _TAG.sub(" ", text))).strip()


@lru_cache(maxsize=2048)
def cut_sentences(text: str) -> tuple[str, ...]:
    """Cut one block of plain text after . ! ? and white space, not after an abbreviation."""
    found: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        head = text[start : end.end()].strip()
        if _ABBREVIATION.search(text[max(start, end.start() - 12) : end.start() + 1]):
            continue
        found.append(head)
        start = end.end()
    rest = text[start:].strip()
    return tuple(part for part in (*found, rest) if part)
