"""Reading bounds: how old a reading may be, numbers with their units, and versions."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from retire.deployments.simulated.expectations import Age, Combined, Expectation, Number, Release
from retire.deployments.simulated.quantities import (
    QUANTITY,
    SPAN,
    Quantity,
    quantity_of,
    seconds_of,
)

_OLD: Final = r"(?:old|ago|of age|earlier|back|stale)"
_MORE: Final = r"(?:more|longer|greater|over|above|beyond|older)"
_LESS: Final = r"(?:less|fewer|under|below|shorter|younger)"
_NO: Final = r"(?:no|not|never|nor)(?: \w+){0,2}?"

# Tried in this order: a pattern with its own "not" stands before the one without.
_PATTERNS: Final = tuple(
    (re.compile(pattern), comparison)
    for pattern, comparison in (
        (rf"{_NO} (?:older|staler|longer ago|earlier|further back) than (?P<span>{SPAN})", "<="),
        (rf"{_NO} {_MORE} than (?P<span>{SPAN}) {_OLD}\b", "<="),
        (rf"{_NO} (?:exceed|be over|be above) (?P<span>{SPAN})(?: {_OLD}|$)", "<="),
        (rf"{_NO} (?:younger|fresher|newer|more recent) than (?P<span>{SPAN})", ">="),
        (
            (
                rf"{_NO} (?:within|in|during|inside|for) (?:the )?(?:last |past )?(?:(?:more"
                rf"|longer) than |over |at least )?(?P<span>{SPAN})"
            ),
            ">",
        ),
        (rf"(?:older|staler|longer ago|earlier) than (?P<span>{SPAN})", ">"),
        (rf"(?:younger|fresher|newer|more recent) than (?P<span>{SPAN})", "<"),
        (
            (
                rf"(?:within|in|during|inside|from|of|over) (?:the )?(?:last|past|previous"
                rf"|preceding) (?P<span>{SPAN})"
            ),
            "<=",
        ),
        (rf"(?P<span>{SPAN}) (?:old )?or (?:less|younger|newer|fresher)\b", "<="),
        (rf"(?P<span>{SPAN}) (?:old )?or (?:more|older)\b", ">="),
        (rf"(?:at most|no more than|not over|up to) (?P<span>{SPAN})[- ]{_OLD}\b", "<="),
        (rf"{_LESS} (?:than )?(?P<span>{SPAN})[- ]{_OLD}\b", "<"),
        (rf"(?:{_MORE}|at least) (?:than )?(?P<span>{SPAN})[- ]{_OLD}\b", ">"),
        (rf"\bage\b[^,;]{{0,60}}? (?:below|under|less than) (?P<span>{SPAN})", "<"),
        (rf"\bage\b[^,;]{{0,60}}? (?:at most|up to|within) (?P<span>{SPAN})", "<="),
        (rf"\bage\b[^,;]{{0,60}}? (?:above|over|exceeds?|more than) (?P<span>{SPAN})", ">"),
        (
            (
                rf"(?:silent|quiet|unheard|stale|dumb) (?:for )?(?:(?:more|longer) than "
                rf"|over )?(?P<span>{SPAN})"
            ),
            ">",
        ),
    )
)


def find_age(text: str) -> tuple[Age, str] | None:
    """Return the age that a text asks for, and the text without the words that say it."""
    for pattern, comparison in _PATTERNS:
        match = pattern.search(text)
        seconds = seconds_of(match["span"]) if match else None
        if match and seconds is not None:
            after = text[match.end() :].partition(",")[0]
            rest = f"{text[: match.start()].rstrip()} {after.lstrip()}".strip()
            return Age(comparison, Fraction(seconds)), rest
    return None


def read_age(text: str) -> Age | None:
    """Return the age that a lower-case text asks for, with the sense it is stated in, or None.

    "not ... within the last minute" and "older than a minute" ask for more than 60 seconds,
    "no older than a minute" for at most 60.
    """
    found = find_age(text)
    return found[0] if found else None


_Q: Final = rf"(?P<a>{QUANTITY})"
_RANGES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        (
            rf"\b(?:between|from|within|inside"
            rf"|outside(?: of)?) (?:the )?(?:range )?(?:of )?{_Q} ?(?:and|to|-|\u2013"
            rf"|;) ?(?P<b>{QUANTITY})"
        ),
        rf"{_Q} ?(?:to|-|\u2013) ?(?P<b>{QUANTITY})",
    )
)
_AFTER_WORDS: Final = (
    (r"or (?:less|lower|below|under|fewer|cooler|colder)\b|and below\b|at most\b|maximum\b", "<="),
    (r"or (?:more|higher|above|over|warmer|hotter|greater)\b|and (?:above|up)\b|upwards?\b", ">="),
)
_BEFORE_WORDS: Final = (
    (r"at most|no more than|not more than|up to|a maximum of|max\.?|<=|\u2264", "<="),
    (r"at least|no less than|not less than|no fewer than|a minimum of|min\.?|>=|\u2265", ">="),
    (
        (
            r"below|under|beneath|short of|<|(?:less|lower|fewer|cooler|colder|smaller|slower"
            r"|weaker|lighter|quieter|shorter) than"
        ),
        "<",
    ),
    (
        (
            r"above|over|tops?|surpass(?:es|ed)?|beyond|past|exceed(?:s|ed|ing)?|>|(?:more"
            r"|higher|greater|warmer|hotter|larger|bigger|stronger|faster|louder|longer|heavier"
            r"|deeper) than"
        ),
        ">",
    ),
    (r"reach(?:es|ed)?|hits?", ">="),
    (r"exactly|equals?|equal to|=", "=="),
    (r"(?:is|are|be|reads?|shows?|says?|stands? at|sits? at|at)", "=="),
)
_AFTER: Final = tuple((re.compile(rf"{_Q} (?:{words})"), sign) for words, sign in _AFTER_WORDS)
_BEFORE: Final = tuple((re.compile(rf"(?<!\w)(?:{words}) {_Q}"), s) for words, s in _BEFORE_WORDS)
OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
NEGATED: Final = re.compile(r"\b(?:not|never|no|nor|no longer)(?: \w+){0,2} ?$")


def read_number(text: str) -> Expectation | None:
    """Return the range or the comparison that a lower-case text states, or None."""
    for pattern in _RANGES:
        match = pattern.search(text)
        if match:
            return _range(text, match)
    found = [
        (match.start(), sign, match)
        for table in (_AFTER, _BEFORE)
        for pattern, sign in table
        for match in [pattern.search(text)]
        if match
    ]
    if not found:
        return None
    # "is at most 60" holds "is 60"-like shorter readings; the first table entry that fits wins,
    # and a second one at another number ("above 40 and below 60") is joined to it.
    numbers: dict[int, Number] = {}
    for _, sign, match in found:
        bound = quantity_of(match["a"])
        if bound is not None and match.start("a") not in numbers:
            negated = NEGATED.search(text[: match.start()]) is not None
            numbers[match.start("a")] = Number(OPPOSITE[sign] if negated else sign, bound)
    parts = tuple(numbers[position] for position in sorted(numbers))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 else Combined(parts, any_of=" or " in text)


def _range(text: str, match: re.Match[str]) -> Expectation | None:
    low, high = quantity_of(match["a"]), quantity_of(match["b"])
    if low is None or high is None:
        return None
    low = Quantity(low.number, low.unit or high.unit)
    outside = match[0].startswith("outside") or NEGATED.search(text[: match.start()])
    if outside:
        return Combined((Number("<", low), Number(">", high)), any_of=True)
    return Combined((Number(">=", low), Number("<=", high)))


_QUOTED: Final = re.compile(r"\"([^\"]{1,60})\"")
_RELEASE: Final = r"v?(?P<release>\d{1,9}(?:\.(?:\d{1,9}|x))*)(?P<plus>\+)?"
_RELEASE_FORMS: Final = tuple(
    (re.compile(pattern), sign)
    for pattern, sign in (
        (
            (
                rf"{_RELEASE} ?(?:or|and) (?:newer|later|higher|above|up|upwards?|more recent"
                rf"|greater|after)\b"
            ),
            ">=",
        ),
        (rf"{_RELEASE} (?:onwards?|upwards?)\b", ">="),
        (rf"{_RELEASE} ?(?:or|and) (?:older|earlier|lower|below|before)\b", "<="),
        (
            (
                rf"\b(?:at least|no older than|not older than|no earlier than|no lower than"
                rf"|not below|not before|not under|since|minimum|>=|starting (?:with|at"
                rf"|from)) (?:the )?(?:version |release |firmware )?{_RELEASE}"
            ),
            ">=",
        ),
        (
            (
                rf"\b(?:at most|no newer than|not newer than|no later than|not above|up to"
                rf"|<=) (?:version |release |firmware )?{_RELEASE}"
            ),
            "<=",
        ),
        (
            (
                rf"\b(?:newer|later|higher|more recent) than (?:version |release "
                rf"|firmware )?{_RELEASE}"
            ),
            ">",
        ),
        (rf"\b(?:above|beyond|after|over) (?:version |release |firmware )?{_RELEASE}", ">"),
        (
            (
                rf"\b(?:older|earlier|lower|less recent) than (?:version |release "
                rf"|firmware )?{_RELEASE}"
            ),
            "<",
        ),
        (
            (
                rf"\b(?:below|before|under|predates?|prior to|behind) (?:version |release "
                rf"|firmware )?{_RELEASE}"
            ),
            "<",
        ),
        (
            (
                rf"\b(?:other than|anything but|but|different from|differs from|not|except"
                rf"|not exactly) (?:be |is |at |on )?(?:exactly )?(?:version |release |firmware "
                rf"|schema )?{_RELEASE}"
            ),
            "!=",
        ),
        (rf"{_RELEASE} (?:series|line|branch|family)\b", "prefix"),
        (rf"(?<![\w.]){_RELEASE}(?![\w.]*\d)", "=="),
    )
)


def read_version(text: str) -> Expectation | None:
    """Return the comparison with a dotted version, or the quoted release name, or None."""
    for pattern, sign in _RELEASE_FORMS:
        match = pattern.search(text)
        if match is None:
            continue
        bound = match["release"].removesuffix(".x")
        if match["plus"]:
            sign = ">="  # noqa: PLW2901  # "3.2+" means that or newer, whatever stands before it
        elif match["release"].endswith(".x"):
            sign = "prefix"  # noqa: PLW2901  # "3.2.x"
        elif NEGATED.search(text[: match.start()]):
            sign = OPPOSITE.get(sign, sign)  # noqa: PLW2901  # "is not 3.2 or newer"
        return Release(sign, bound)
    quoted = _QUOTED.findall(text)
    if quoted:
        negated = re.search(r"\b(?:not|other than|anything but)\b", text[: text.index('"')])
        return Release("!=" if negated else "==", quoted[0])
    return None
