"""Reading how old a reading or an answer may be."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

from retire.deployments.simulated.expectations import Age
from retire.deployments.simulated.quantities import SPAN, seconds_of

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
