"""Reading numeric bounds: comparisons and ranges, in digits or words, with units."""

from __future__ import annotations

import re
from typing import Final

from retire.deployments.simulated.expectations import Combined, Expectation, Number
from retire.deployments.simulated.quantities import QUANTITY, Quantity, quantity_of

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
