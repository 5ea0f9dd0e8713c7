"""Reading what a text expects of a grant or of a consent."""

from __future__ import annotations

import re
from typing import Final

from retire.deployments.simulated.ages import read_age
from retire.deployments.simulated.expectations import Combined, Expectation, GrantHolds, Votes
from retire.deployments.simulated.quantities import NUMBER, UNIT, number_of
from retire.deployments.simulated.snapshots import EntryName, voters_named

_NEGATION: Final = re.compile(r"\b(?:not|never|no|without|neither|nor|lacks?|un)\b")
_HOLDING: Final = re.compile(
    r"\b(?:active|valid|current|currently|live|in force|in effect|good|standing|open|running"
    r"|granted|approved|effective|unexpired|unrevoked|covers?|covering|in date|up to date"
    r"|on file|exists?|present|starts?|started|begins?|begun|holds?|held|in place|runs|lasts"
    r"|within|inside|includes?|contains?|usable|genuine|available|applies|apply|stands"
    r"|in its window)\b"
)
_LAPSED: Final = re.compile(
    r"\b(?:expire[sd]?|expiring|expiry|revoked|revocation|inactive|lapse[sd]?|suspended"
    r"|withdrawn|cancel+ed|missing|absent|absence|gone|is over|ended|ends|run out|ran out"
    r"|runs out|stale|invalid|outdated|void|past|outside|pending|denied|terminated|elapsed"
    r"|closed|used up|lost|rejected|refused|blocked|disabled|out of date|beyond|dormant)\b"
)

_DISSENT: Final = re.compile(
    r"\b(?:sa(?:id|ys?|ying) no|answer(?:s|ed)? no|a no|one no|single no|any no|is no|\"no\""
    r"|votes? no|voted no|declin\w+|refus\w+|object\w*|withdr\w+|against|oppos\w+|veto\w*"
    r"|den(?:y|ies|ied)|withheld|revok\w+|disagree\w*|reject\w*|opt(?:s|ed)? out|dissent\w*"
    r"|'s no)\b|\"no\""
)
_ASSENT: Final = re.compile(
    r"\b(?:agree\w*|consent\w*|yes(?:es)?|approv\w+|accept(?:s|ed|ance)?|okay(?:s|ed)?|ok(?:s"
    r"|ed)?|permissions?|opt(?:s|ed)? in|in favou?r|allow(?:s|ed)?|assent\w*|grant(?:s|ed)?"
    r"|go-ahead|green light|signed off|sign-offs?|support(?:s|ed)?|on board|voted?|thumbs up)\b"
)
_UNGIVEN: Final = re.compile(
    r"\b(?:not|never|without|yet to|lack(?:s|ing)?|missing|pending|absent|has no|have no|is no"
    r"|are no)\b"
)
_NOBODY: Final = re.compile(r"\b(?:nobody|no one|none|neither|no \w+ (?:has|have|who|objects?))\b")
_EVERYBODY: Final = re.compile(
    r"\b(?:both|all|every|everyone|everybody|each|unanimous\w*|entire|whole|full)\b"
)
_SOMEBODY: Final = re.compile(
    r"\b(?:either|any(?:one|body)?|some(?:one|body)?|one (?:of|resident|person|adult|yes|vote"
    r"|tenant|parent|member|approval|consent)|at least one|a single|an?(?: \w+)? (?:resident"
    r"|person|adult|tenant|parent|guardian|member|owner|neighbour|neighbor|occupant|user"
    r"|housemate|flatmate))\b"
)
_SECOND: Final = re.compile(r"\b(?:a|the) second\b|\banother\b")
_MAJORITY: Final = re.compile(r"\b(?:majority|most of|more than half)\b")
_NOUN: Final = r"(?: (?!of\b)\w+){0,2}"
_COUNTED: Final = re.compile(
    rf"(?P<bound>at least|no fewer than|not fewer than|no less than|more than|fewer than"
    rf"|less than|only|exactly|a minimum of"
    rf"|the)? ?\b(?P<number>{NUMBER})(?P<more> or more)?(?= (?:out )?of\b|{_NOUN} (?:agree"
    rf"|consent|yes|approv|accept|vote|say|said|sign|okay|ok\b|assent|have|has|give|gave"
    rf"|permission)| \w+s?\b|$)"
)
_UNIT: Final = re.compile(UNIT)
_BOUNDS: Final = {
    "more than": ">",
    "fewer than": "<",
    "less than": "<",
}


def read_grant(text: str, *, noun_is_enough: bool) -> Expectation | None:
    """Return whether a text wants a grant to hold or to have lapsed.

    ``noun_is_enough`` says that the mere mention is governed by a word of need ("without a
    pass"), so no word about its status has to stand there.
    """
    lapsed, holding = _LAPSED.search(text), _HOLDING.search(text)
    word = lapsed or holding
    if word is None:
        if not noun_is_enough:
            return None
        return GrantHolds(negated=bool(re.match(r"(?:there (?:is|are) )?no\b|not\b", text)))
    negated = bool(_NEGATION.search(text[: word.start()]))
    return GrantHolds(negated=negated != bool(lapsed))


def read_consent(text: str, entry: EntryName) -> Expectation | None:
    """Return the quorum, the person or the dissent that a text speaks of, with any age."""
    votes = _read_votes(text, entry)
    age = read_age(text)
    if votes is None or age is None:
        return votes
    return Combined((votes, age))


def _read_votes(text: str, entry: EntryName) -> Votes | None:
    voters = voters_named(text, entry)
    dissent = _DISSENT.search(text)
    if dissent:
        return _read_dissent(text, dissent, voters)
    assent = _ASSENT.search(text)
    if assent is None:
        return None
    if _NOBODY.search(text):
        return Votes("yes", "==", 0, voters)
    counted = _read_count(text)
    if counted:
        return Votes("yes", counted[0], counted[1], voters)
    ungiven = _UNGIVEN.search(text[: assent.start()]) or re.search(
        r"\b(?:missing|pending|absent|lacking|not (?:yet )?(?:given|on file|there|recorded|in))\b",
        text,
    )
    if ungiven:
        return Votes("not yes", ">=", 1, voters)
    return Votes("yes", ">=", _quorum(text, voters), voters)


def _read_dissent(text: str, dissent: re.Match[str], voters: tuple[str, ...]) -> Votes:
    before = text[: dissent.start()]
    spared = _NOBODY.search(text) or re.search(r"\b(?:not|never|without)\b", before)
    if spared or re.match(r"no\b(?! of)", text):
        return Votes("no", "==", 0, voters)
    both = _EVERYBODY.search(text) or (len(voters) > 1 and " or " not in text)
    return Votes("no", ">=", -1 if both else 1, voters)


def _quorum(text: str, voters: tuple[str, ...]) -> int:
    if _MAJORITY.search(text):
        return -2
    if _EVERYBODY.search(text):
        return -1
    if _SECOND.search(text) and not voters:
        return 2
    if voters:
        return 1 if " or " in text else -1
    return 1 if _SOMEBODY.search(text) else -1


def _read_count(text: str) -> tuple[str, int] | None:
    counted = _COUNTED.search(text)
    if counted is None or re.search(
        r"\b(?:seconds?|minutes?|hours?|days?|weeks?)\b", counted["number"]
    ):
        return None
    after = text[counted.end() :].lstrip()
    if _UNIT.match(after):
        return None
    number = number_of(counted["number"])
    if number is None or number.denominator != 1 or not 1 <= number <= 1000:
        return None
    return _BOUNDS.get(counted["bound"] or "", ">="), int(number)
