"""Where a sentence restricts: the conditions in it, and which way each of them points."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from retire.deployments.simulated.cue_words import (
    ACTING,
    BARE_MAIN,
    BLOCKS,
    CLAUSE_END,
    FORBIDDEN,
    FORBIDS_ACT,
    LACKING,
    MAIN_AFTER,
    MODAL,
    MODAL_ACT,
    NEED,
    NO_NO,
    ONLY,
    ONLY_IF,
    ONLY_LAST,
    ONLY_SUBJECT,
    ONLY_WITH,
    OTHERWISE,
    REFUSED,
    REQUIRED,
    STOPS,
    SURE,
    TAIL,
    TREATED,
    TRUSTED,
    UNLESS,
    WHEN,
    WITH,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Condition:
    """A piece of a sentence that must hold, or with ``forbid`` must not.

    ``noun_is_enough``: it follows a word of need, so naming a grant or consent asks for it.
    ``bare_state``: a state may stand in it without a verb.
    """

    text: str
    forbid: bool = False
    noun_is_enough: bool = False
    bare_state: bool = False


Reader: TypeAlias = "Callable[[str, re.Match[str]], list[Condition]]"
Way: TypeAlias = "tuple[Condition, ...]"
"""One way to read a clause."""


@lru_cache(maxsize=8192)
def conditions(sentence: str) -> tuple[tuple[Way, ...], ...]:
    """Return for each clause of a lower-case sentence the ways to read it, the likeliest first.

    A reader takes of each clause the first way of which it understands at least one condition.
    A clause without a cue has no way to be read as a restriction.

    Direction: "only if", "as long as", "make sure", "needs", "unless" after a prohibition and
    their kin demand; "if" and "with" together with a prohibition forbid; "unless" after a
    permission forbids.
    """
    clauses = (clause.strip(" ,.:!?") for clause in CLAUSE_END.split(sentence))
    return tuple(ways for clause in clauses if (ways := _ways(clause)))


@lru_cache(maxsize=8192)
def unsplit_conditions(sentence: str) -> tuple[Way, ...]:
    """Return the ways to read a sentence whose colons and semicolons only join."""
    return _ways(re.sub(r"[:;]", ",", sentence).strip(" ,.!?"))


def _ways(clause: str) -> tuple[Way, ...]:
    placed = (_prepositional(clause, match) for match in WITH.finditer(clause))
    found = [_framed(clause), *_connected(clause), *_direct(clause), *placed]
    return tuple(dict.fromkeys(tuple(way) for way in found if way))


def is_stopping(sentence: str) -> bool:
    """Say whether a lower-case sentence forbids an act or tells to stop."""
    return STOPS.search(sentence) is not None


def _framed(clause: str) -> list[Condition]:
    """Read a clause whose whole shape says what it demands: "no grant, no unlock"."""
    for pattern, forbid, needed in (
        (NO_NO, False, True),
        (TREATED, True, False),
        (REQUIRED, False, True),
        (ONLY_SUBJECT, False, True),
        (REFUSED, True, False),
    ):
        match = pattern.search(clause)
        if match:
            text = next(group for group in match.groups() if group is not None)
            return [Condition(text, forbid, noun_is_enough=needed, bare_state=True)]
    return []


def _direct(clause: str) -> list[list[Condition]]:
    """Read a clause without a connector: a blocker, a modal about a state, a closing "only"."""
    ways: list[list[Condition]] = []
    blocker, last = BLOCKS.match(clause), ONLY_LAST.match(clause)
    trusted, modal = TRUSTED.search(clause), MODAL.match(clause)
    if blocker:
        ways.append([Condition(blocker["c"], forbid=True, bare_state=True)])
    if trusted:
        ways.append([Condition(trusted["c"] or trusted["d"], forbid=True, bare_state=True)])
    if last:
        ways.append([Condition(last["c"], noun_is_enough=True, bare_state=True)])
    if modal and not MODAL_ACT.search(clause):
        ways.append([Condition(_trim(modal["c"]))])
    return ways


def _connected(clause: str) -> list[list[Condition]]:
    """Read what stands after each connector that restricts."""
    return [reader(clause, m) for pattern, reader in _CONNECTORS for m in pattern.finditer(clause)]


def _demanded(clause: str, match: re.Match[str]) -> list[Condition]:
    text = _until_main(clause, match)
    if match[0].endswith("long as"):
        outside = clause[: match.start()] + " , " + clause[match.end() + len(text) :]
        if STOPS.search(outside) and not ONLY.search(outside) and not OTHERWISE.search(outside):
            return [Condition(text, forbid=True, bare_state=True)]
    rest = _ways(clause[match.end() + len(text) + 1 :].strip(" ,"))
    later = [c for c in (rest[0] if rest else ()) if c.text not in text]
    return [Condition(text, bare_state=True), *later] if text else []


def _demanded_noun(clause: str, match: re.Match[str]) -> list[Condition]:
    text = _trim(clause[match.end() :])
    return [Condition(text, noun_is_enough=True, bare_state=True)] if text else []


def _excepted(clause: str, match: re.Match[str]) -> list[Condition]:
    word, text = match[0], _until_main(clause, match)
    outside = clause[: match.start()] + " , " + clause[match.end() + len(text) :]
    gerund = re.match(r"(?:\w+ )?\w+ing\b", text) and word in {"without", "before"}
    if word == "before" and not re.search(
        r"\b(?:never|do not|no \w+|nothing|wait|refuse)\b", outside
    ):
        return []
    bare = not gerund and word != "before"
    if word in {"absent", "lacking", "in the absence of", "without"} and not match.start():
        return (
            [Condition(text, noun_is_enough=True, bare_state=bare)] if STOPS.search(outside) else []
        )
    if FORBIDS_ACT.search(outside) or STOPS.search(outside):
        needed = word not in {"until", "till"} and not gerund
        return [Condition(text, noun_is_enough=needed, bare_state=bare)]
    if (
        word == "unless"
        and not match.start()
        and not ACTING.match(clause[match.end() + len(text) :])
    ):
        return [Condition(text, noun_is_enough=True, bare_state=True)]
    if word.startswith(("unless", "except")):
        return [Condition(text, forbid=True, bare_state=True)]
    return []


def _lacked(clause: str, match: re.Match[str]) -> list[Condition]:
    """Read "refuse whatever is not covered by ..." as a demand for what covers it."""
    if not STOPS.search(clause[: match.start()]) or WHEN.search(clause[: match.start()]):
        return []
    return [Condition(_trim(clause[match.end() :]), noun_is_enough=True)]


def _conditional(clause: str, match: re.Match[str]) -> list[Condition]:
    text = _until_main(clause, match)
    outside = clause[: match.start()] + " , " + clause[match.end() + len(text) :]
    if not text or match[0] == "even if":
        return []
    if OTHERWISE.search(outside) or ONLY.search(clause[: match.start()]):
        return [Condition(text, bare_state=True)]
    if STOPS.search(outside):
        return [Condition(text, forbid=True, bare_state=True)]
    return []


def _prepositional(clause: str, match: re.Match[str]) -> list[Condition]:
    before = clause[: match.start()]
    text = _trim(clause[match.end() :])
    if not before.strip():
        text = _until_main(clause, match)
        stopped = STOPS.search(clause[match.end() + len(text) :])
        return [Condition(text, forbid=True, bare_state=True)] if stopped else []
    if ONLY.search(before) and not STOPS.search(before):
        return [Condition(text, noun_is_enough=True, bare_state=True)]
    forbidden = FORBIDDEN.match(clause[match.end() + len(text) :])
    if not (STOPS.search(before) or forbidden) or before.startswith("wait"):
        return []
    return [Condition(text, forbid=True, bare_state=True)]


def _until_main(clause: str, match: re.Match[str]) -> str:
    """Return the text of the condition that starts after a connector.

    A connector at the head of the clause governs it up to the comma before the main clause; a
    later one governs it to the end.
    """
    rest = clause[match.end() :]
    if not clause[: match.start()].strip(" ,:") or clause[: match.start()].rstrip().endswith(","):
        main = MAIN_AFTER.search(rest) or BARE_MAIN.search(rest)
        if main:
            return _trim(rest[: main.start()])
        if "," in rest and not match[0].startswith(
            ("make", "ensure", "check", "confirm", "verify")
        ):
            head, _, tail = rest.partition(",")
            if not re.search(r"\b(?:or|and) ", tail):
                return _trim(head)
    return _trim(rest)


def _trim(text: str) -> str:
    tail = TAIL.search(text)
    return (text[: tail.start()] if tail else text).strip(" ,.:!?")


_CONNECTORS: Final[tuple[tuple[re.Pattern[str], Reader], ...]] = (
    (ONLY_IF, _demanded),
    (ONLY_WITH, _demanded_noun),
    (LACKING, _lacked),
    (UNLESS, _excepted),
    (SURE, _demanded),
    (NEED, _demanded_noun),
    (WHEN, _conditional),
)
