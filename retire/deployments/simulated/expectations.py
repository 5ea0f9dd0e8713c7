"""What a rule expects of one snapshot entry, judged against the entry's raw values.

``judge`` returns whether the condition holds as it is stated, or None when the raw value is
missing or unreadable; a reader then takes the rule to be violated, whichever way it points.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

from retire.deployments.simulated.quantities import Quantity, decimal_of
from retire.deployments.simulated.snapshots import mapping_of, text_of, time_of
from retire.deployments.simulated.wording import stem, tokens, word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from retire.domain.digests import Json

Entry: TypeAlias = "Mapping[str, Json]"

COMPARISONS: Final[Mapping[str, Callable[[Fraction, Fraction], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

POSITIVE_STATUS: Final = word_set(
    "active granted valid approved current live open effective enabled ok"
)
POSITIVE_ANSWERS: Final = word_set(
    "yes agreed agrees agree granted given approved approves accepted consented "
    "consents y ok true allowed allow"
)
NEGATIVE_ANSWERS: Final = word_set(
    "no declined declines denied refused refuses withdrawn withdrew revoked rejected "
    "objected opposed disagreed against veto n false"
)
UNREADABLE: Final = frozenset({"", "unknown", "unavailable", "none", "null", "n/a"})

_SAME_STATES: Final = tuple(
    frozenset(stem(word) for word in group.split())
    for group in (
        "closed shut",
        "open ajar",
        "off disabled",
        "on enabled",
        "running moving",
        "idle stopped stationary still",
        "clear empty vacant free unoccupied absent none undetected nobody false no",
        "occupied present detected blocked obstructed seen true yes",
        "disarmed unarmed unset",
        "locked bolted latched",
        "unlocked unbolted unlatched",
        "dry",
        "wet damp",
        "ok normal fine healthy good",
        "faulty fault failed broken",
    )
)


def same_state(expected: tuple[str, ...], actual: str) -> bool:
    """Say whether the words of a rule name the state that a fact reports."""
    said = [stem(word) for word in expected]
    held = [stem(word) for word in tokens(actual)]
    if not said or not held:
        return False
    if said[: len(held)] == held:
        return True
    one, other = _single(said), _single(held)
    if len(held) > 1 and not other:
        return False
    return any(one in group and other in group for group in _SAME_STATES)


def _single(words: list[str]) -> str:
    """Reduce "not detected" and the like to one word; other phrases give their first word."""
    if words[0] == "not" and len(words) > 1:
        return "undetect" if words[1] in {"detect", "seen", "present", "occupi"} else ""
    return words[0]


@dataclass(frozen=True, slots=True)
class GrantHolds:
    """Status active and ``not_before <= as_of < not_after``; ``negated`` asks for the opposite."""

    negated: bool = False
    kind = "grant"
    fields = ("status", "not_before", "not_after")

    def judge(self, entry: Entry, as_of: datetime | None) -> bool | None:
        """Judge the grant; a bound that cannot be compared makes it not hold."""
        return self.negated != grant_holds(entry, as_of)


def grant_holds(entry: Entry, as_of: datetime | None) -> bool:
    """Say whether a grant is active and ``as_of`` lies in its window (missing bounds are open)."""
    if text_of(entry.get("status")).lower() not in POSITIVE_STATUS:
        return False
    start, end = entry.get("not_before"), entry.get("not_after")
    first, last = time_of(start), time_of(end)
    if (start is not None and first is None) or (end is not None and last is None):
        return False
    if as_of is None:
        return first is None and last is None
    return (first is None or first <= as_of) and (last is None or as_of < last)


@dataclass(frozen=True, slots=True)
class Votes:
    """How many votes answer in a way: ``answer`` is "yes", "no" or "not yes".

    ``comparison`` and ``count`` bound the number of such votes among ``voters`` (keys; empty for
    all); a count of -1 means all of them, -2 more than half.
    """

    answer: str
    comparison: str
    count: int
    voters: tuple[str, ...] = ()
    kind = "consent"
    fields = ("votes",)

    def judge(self, entry: Entry, as_of: datetime | None) -> bool | None:
        """Judge the votes; nobody to ask is unreadable."""
        del as_of
        votes = mapping_of(entry.get("votes"))
        asked = [mapping_of(votes.get(key)) for key in (self.voters or votes)]
        if not asked:
            return None
        found = sum(self._answers(vote) for vote in asked)
        if self.count == -2:
            return 2 * found > len(asked)
        needed = len(asked) if self.count == -1 else self.count
        return COMPARISONS[self.comparison](Fraction(found), Fraction(needed))

    def _answers(self, vote: Entry) -> bool:
        answer = text_of(vote.get("answer")).lower().strip()
        if self.answer == "no":
            return answer in NEGATIVE_ANSWERS
        return (answer in POSITIVE_ANSWERS) != (self.answer == "not yes")


@dataclass(frozen=True, slots=True)
class Age:
    """The age in seconds of a fact (or of every vote of a consent) against a bound."""

    comparison: str
    seconds: Fraction
    kind = "freshness"
    fields = ("reported_at",)

    def judge(self, entry: Entry, as_of: datetime | None) -> bool | None:
        """Judge the age; a missing time is unreadable, a time in the future counts as fresh."""
        votes = mapping_of(entry.get("votes"))
        stamps = [mapping_of(vote).get("at") for vote in votes.values()]
        times = [time_of(stamp) for stamp in (stamps or [entry.get("reported_at")])]
        if as_of is None or any(time is None for time in times):
            return None
        known = [time for time in times if time is not None]
        ages = [Fraction((as_of - time).total_seconds()) for time in known]
        holds = [COMPARISONS[self.comparison](age, self.seconds) for age in ages]
        return all(holds) if self.comparison.startswith("<") else any(holds)


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric fact against a bound, converted into the fact's unit."""

    comparison: str
    bound: Quantity
    kind = "number"
    fields = ("value",)

    def judge(self, entry: Entry, as_of: datetime | None) -> bool | None:
        """Judge the number; another dimension or a value without a number is unreadable."""
        del as_of
        value = decimal_of(text_of(entry.get("value")))
        bound = self.bound.into(text_of(entry.get("unit")))
        if value is None or bound is None:
            return None
        return COMPARISONS[self.comparison](value, bound)


@dataclass(frozen=True, slots=True)
class State:
    """A fact that reports one of several states, or none of them when ``negated``."""

    states: tuple[tuple[str, ...], ...]
    negated: bool = False
    kind = "state"
    fields = ("value",)

    def judge(self, entry: Entry, as_of: datetime | None) -> bool | None:
        """Judge the state; an empty or unknown one satisfies nothing."""
        del as_of
        value = text_of(entry.get("value"))
        if any(same_state(state, value) for state in self.states):
            return not self.negated
        return None if value.lower().strip() in UNREADABLE else self.negated


@dataclass(frozen=True, slots=True)
class Release:
    """A dotted version against a bound; ``comparison`` "prefix" accepts 3.2.1 for 3.2."""

    comparison: str
    bound: str
    kind = "version"
    fields = ("value",)

    def judge(self, entry: Entry, as_of: datetime | None) -> bool | None:
        """Judge the version; a value without a number is compared as text."""
        del as_of
        value, bound = text_of(entry.get("value")).lower(), self.bound.lower()
        mine, other = _parts(value), _parts(bound)
        if not mine or not other:
            equal = value.lstrip("v") == bound.lstrip("v")
            return {"==": equal, "!=": not equal}.get(self.comparison)
        if self.comparison == "prefix":
            return mine[: len(other)] == other
        width = max(len(mine), len(other))
        padded = [parts + (0,) * (width - len(parts)) for parts in (mine, other)]
        order = (padded[0] > padded[1]) - (padded[0] < padded[1])
        return COMPARISONS[self.comparison](Fraction(order), Fraction(0))


def _parts(version: str) -> tuple[int, ...]:
    match = re.search(r"\d{1,9}(?:\.\d{1,9}){0,5}", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


@dataclass(frozen=True, slots=True)
class Combined:
    """Several expectations of one entry, joined by "and" or by "or"."""

    parts: tuple[Expectation, ...]
    any_of: bool = False

    @property
    def kind(self) -> str:
        """The kind of the first part."""
        return self.parts[0].kind

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of all parts."""
        return tuple(dict.fromkeys(name for part in self.parts for name in part.fields))

    def judge(self, entry: Entry, as_of: datetime | None) -> bool | None:
        """Judge all parts; a decisive part wins over an unreadable one."""
        return combine([part.judge(entry, as_of) for part in self.parts], any_of=self.any_of)


def combine(verdicts: list[bool | None], *, any_of: bool) -> bool | None:
    """Join truth values with "or" (``any_of``) or "and", unknown staying unknown."""
    if any(verdict is any_of for verdict in verdicts):
        return any_of
    return None if None in verdicts else not any_of


Expectation: TypeAlias = GrantHolds | Votes | Age | Number | State | Release | Combined
