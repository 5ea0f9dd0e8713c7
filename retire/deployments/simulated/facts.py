"""Reading what a text expects of an entry: a fact (age, number, state), a grant, a consent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from retire.deployments.simulated.bounds import find_age, read_age, read_number
from retire.deployments.simulated.expectations import (
    Combined,
    Expectation,
    GrantHolds,
    Number,
    State,
    Votes,
)
from retire.deployments.simulated.quantities import NUMBER, UNIT, number_of
from retire.deployments.simulated.snapshots import EntryName, voters_named
from retire.deployments.simulated.wording import STOP_WORDS, content_stems, stem, tokens, word_set

if TYPE_CHECKING:
    from retire.deployments.simulated.snapshots import EntryName


_ADVERB: Final = (
    r"(?:(?:currently|still|fully|now|already|firmly|properly|completely|actually|really"
    r"|securely|safely|again|always|reported as|reported|as|to be|to|standing|marked|shown as"
    r"|set to|in|the|a|an|state|mode|position|at) )*"
)
_COPULA: Final = re.compile(
    r"\b(?:is|are|be|being|been|was|reads?|reading|shows?|showing|says?|saying|reports?"
    r"|reporting|stays?|staying|stands?|remains?|remaining|indicates?|equals?|has been|set to"
    r"|goes|gone|turns?|becomes?|sits|rests?) "
    + _ADVERB
    + r"(?P<negation>(?:not|never|no longer|anything but"
    r"|anything other than|other than|anything except|different from) )?"
    + _ADVERB
    + r"(?P<state>.+)$"
)
_OTHER_THAN: Final = re.compile(
    r"\b(?:other than|anything but|anything except|different from) (?:the )?(?P<state>.+)$"
)
_QUOTED: Final = re.compile(r"\"([^\"]{1,60})\"")
_STATE_ENDS: Final = word_set(
    "at for when before while by to during the a an in on of so that this then first "
    "yet still now right again with if unless until as from and anymore currently "
    "already it you we"
)
_PLAIN_STATES: Final = word_set(
    "closed shut open ajar running moving idle stopped empty vacant occupied blocked obstructed "
    "armed disarmed locked unlocked bolted wet engaged released raised lowered"
)
_ONLY_STATES: Final = frozenset({"on", "off", "in", "out", "no", "open", "up", "down"})
_NOT_STATES: Final = frozenset(
    stem(word)
    for word in (
        word_set(
            "reported measured given shown listed called known named used based updated found "
            "mounted checked fresh recent stale old older newer available visible reachable "
            "required needed necessary mandatory important safe fine there sure asked told "
            "allowed permitted able done due meant part one about always only never possible "
            "wrong right correct same different unclear missing read reading check look ask "
            "consult touch test tell know confirm verify do make see get say use using acting "
            "act going go start hear believe assume"
        )
    )
)
_PAST_FORM: Final = re.compile(r".+ed$")
_NOBODY: Final = re.compile(
    r"(?:there (?:is|are|must be) )?\b(?:no|nobody|no one|none|nothing|free of|clear of)\b"
)
_SOMEBODY: Final = re.compile(
    r"^(?:there (?:is|are) (?!no\b|nobody\b|nothing\b)|(?:some(?:body|one|thing)|any(?:body|one"
    r"|thing)|a person|people) (?:is|are|in|at|on|inside|stands?|remains?|moves?)\b)"
)
_PRESENCE: Final = re.compile(
    r"\b(?:there (?:is|are)|detects?|detected|sees?|seen|present|spotted|in the way|somebody"
    r"|someone|anyone|anybody|something|anything)\b"
)
_PRESENT: Final = State((("present",), ("on",), ("home",), ("motion",)))
_ABSENT: Final = State((("clear",), ("idle",), ("off",), ("away",), ("not", "detected")))


def read_fact(text: str, entry: EntryName, *, bare_state: bool) -> Expectation | None:
    """Return the age, number or state that a text expects of a fact, or None.

    ``bare_state`` allows a state without a verb before it ("with the alarm armed").
    """
    aged = find_age(text)
    rest = aged[1] if aged else text
    number = read_number(rest)
    if number is not None and not _measures(number, entry.unit):
        number = None
    # Beside an age, words without a verb ("its reading") are hardly ever a state.
    state = None if number else _read_state(rest, entry, bare_state=bare_state and not aged)
    expected = number or state
    if aged is None:
        return expected
    return Combined((aged[0], expected), any_of=" or " in text) if expected else aged[0]


def _measures(number: Expectation, unit: str) -> bool:
    """Say whether a bound is of the kind that a fact with this unit measures."""
    if isinstance(number, Combined):
        return all(_measures(part, unit) for part in number.parts)
    return isinstance(number, Number) and number.bound.into(unit) is not None


def _read_state(text: str, entry: EntryName, *, bare_state: bool) -> State | None:
    quoted = _QUOTED.findall(text)
    copula = _COPULA.search(text)
    if quoted:
        return _quoted_state(text, quoted)
    other = _OTHER_THAN.search(text)
    if other:
        return _states(other["state"], negated=True)
    if _SOMEBODY.match(text):
        return _PRESENT
    if _NOBODY.match(text) and not (copula and copula["negation"]):
        return _ABSENT
    if copula:
        early = re.search(r"\b(?:not|never|no longer)\b", text[: copula.start()])
        return _states(
            copula["state"], negated=bool(early) != bool(copula["negation"]), entry=entry
        )
    return _without_copula(text, entry) if bare_state else None


def _quoted_state(text: str, quoted: list[str]) -> State | None:
    states = tuple(tokens(word) for word in quoted if tokens(word))
    before = text[: text.index('"')]
    negated = re.search(
        r"\b(?:not|never|no longer|other than|anything but|anything except)\b", before
    )
    return State(states, negated=bool(negated)) if states else None


def _states(text: str, *, negated: bool, entry: EntryName | None = None) -> State | None:
    """Read "off", "off or disarmed", "fully open at the time" as alternatives of states."""
    states: list[tuple[str, ...]] = []
    for alternative in re.split(r" or |, or |, ", text):
        words = _leading_state(alternative)
        if words:
            states.append(words)
    if not states:
        return None
    if entry is not None and _PRESENCE.match(text):
        return State(_PRESENT.states, negated=negated)
    return State(tuple(states), negated=negated)


def _leading_state(text: str) -> tuple[str, ...]:
    """Return up to three words that can name a state, or nothing for a passive or a clause."""
    words = tokens(text)
    if not words:
        return ()
    first, following = words[0], words[1] if len(words) > 1 else ""
    if stem(first) in _NOT_STATES or (first in STOP_WORDS and first not in _ONLY_STATES | {"not"}):
        return ()
    if _PAST_FORM.match(first) and following in {"in", "as", "from", "to", "with"}:
        return ()
    taken = [first]
    for word in words[1:3]:
        if word in _STATE_ENDS:
            break
        taken.append(word)
    return tuple(taken)


def _without_copula(text: str, entry: EntryName) -> State | None:
    """Read "the alarm armed", "an armed alarm", "the pump runs": what is left beside the name."""
    if _PRESENCE.search(text):
        return _PRESENT
    words = [word for word in tokens(text) if stem(word) not in entry.stems]
    negated = any(word in {"not", "never", "no"} for word in words)
    left = [w for w in words if w not in STOP_WORDS or w in {"on", "off"}]
    left = [w for w in left if stem(w) not in {"sensor", "contact", "detector", "read", "state"}]
    outside = set(content_stems(text)) & set(entry.stems)
    known = [word for word in tokens(text) if word in _PLAIN_STATES]
    if len(known) == 1:
        left = known
    if (
        re.search(r"\d", text)
        or len(left) != 1
        or not outside
        or stem(left[0]) in _NOT_STATES
        or left[0][:1].isdigit()
    ):
        return None
    return State((tuple(left),), negated=negated)


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
_NO_VOTER: Final = re.compile(
    r"\b(?:nobody|no one|none|neither|no \w+ (?:has|have|who|objects?))\b"
)
_EVERYBODY: Final = re.compile(
    r"\b(?:both|all|every|everyone|everybody|each|unanimous\w*|entire|whole|full)\b"
)
_SOME_VOTER: Final = re.compile(
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
    if _NO_VOTER.search(text):
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
    spared = _NO_VOTER.search(text) or re.search(r"\b(?:not|never|without)\b", before)
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
    return 1 if _SOME_VOTER.search(text) else -1


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
