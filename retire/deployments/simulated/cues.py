"""Where a sentence restricts: the conditions in it, and which way each of them points.

The words by which it restricts are regular expressions over lower-case text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable


STOPPING: Final = (
    r"(?:never|the answer (?:is|must be|stays) no|declined|denied|rejected|there (?:is|are"
    r"|will be|can be) no|nothing|nobody|no one|do not|does not|must not|may not|can not"
    r"|shall not|should not|will not|not to be|not be|not allowed|not permitted|not acceptable"
    r"|refuse[sd]?|refusing|stop|skip|abort|decline|deny|halt|reject|cancel|forbidden|prohibited"
    r"|banned|forbids?|prohibits?|off limits|hold off|hold back|hold|back off|give up|pause"
    r"|postpone|defer|wait|leave|do nothing|stay put|walk away|no \w+(?: \w+)?(?= (?:if|when"
    r"|while|unless|without|until|before|with|as long|during|on|under|against|once|after)\b)"
    r"|under no circumstances|call it off|call off|out of the question|turn (?:it|the request"
    r"|this) down|say no|keep (?:it|the [\w -]{1,40}?) (?:shut|closed|locked|off|down|up|still)"
    r"|(?:stays?|remains?) (?:shut|closed|locked|off|down|up|put|blocked|dark|cold|silent|muted"
    r"|still|dry|parked|inside|empty|untouched|private|as (?:it|they)|where (?:it|they))|(?:send"
    r"|turn) (?:it|them|him|her|the [\w -]{1,30}?) (?:away|back)|nothing (?:happens|moves|opens"
    r"|goes)|is not an option|no-go|drop the request|end here|go no further|veto)"
)
CLAUSE_END: Final = re.compile(
    r";(?! ?(?:otherwise|or else|else|if not|failing)\b)|,? (?:which is why|that is why"
    r"|and therefore|therefore|hence|,so)\b|, so (?!long|that)"
    r"|(?<!if)(?<!when)(?<!that)(?<!unless)(?<!only)(?<!while)(?<!until)(?<!never): "
)
STOPS: Final = re.compile(rf"\b{STOPPING}\b")
OTHERWISE: Final = re.compile(
    rf"\b(?:otherwise|or else|else|if not|failing that)\b.*?\b{STOPPING}\b"
    r"|\band not (?:before|otherwise|sooner|earlier)\b"
)
ONLY: Final = re.compile(r"\b(?:only|solely|exclusively|nothing but)\b")
FORBIDS_ACT: Final = re.compile(
    r"\b(?:never|do not|must not|may not|can not|shall not|should not|refuse|no \w+|not allowed"
    r"|hold off|nothing|wait|not permitted|leave|forbidden|under no circumstances|not to be)\b"
)
IF: Final = (
    r"if and only if|even if|if|whenever|when|while|whilst|once|as soon as|in case(?: of)?"
    r"|in the event(?: that| of)?|where|should"
)
PREPOSITION: Final = (
    r"with|on|under|between|below|above|up to|against|using|for|after|outside|past|beyond|during"
    r"|by|at|over|in|inside|within|from"
)
ONLY_IF: Final = re.compile(
    rf"\b(?:only|solely|exclusively)(?: ever| then| again)? (?P<if>{IF})\b"
    r"|\b(?:as|so|for as|for so) long as\b|\bprovid(?:ed|ing)(?: that)?\b|\bassuming(?: that)?\b"
    r"|\bon (?:the )?(?:sole |one )?condition that\b"
)
ONLY_WITH: Final = re.compile(rf"\b(?:only|solely|exclusively)(?: ever)? (?=(?:{PREPOSITION})\b)")
SURE: Final = re.compile(
    r"\b(?:(?:make|making|be) (?:sure|certain)(?: first)?(?: that)?|ensur(?:e|es"
    r"|ing)(?: first)?(?: that)?|insist(?:s|ing)? (?:that|on)|see (?:to it )?that|(?:essential"
    r"|important|vital|crucial|necessary|imperative) that|it must be (?:true|the case) that"
    r"|wait (?:until|till)(?: after)?|(?:double-|cross-)?(?:check|confirm|verify|checking"
    r"|confirming|verifying|establish)(?: first)?(?: that| whether| on|(?= (?:the|both|all|every"
    r"|each|at least|a|an)\b)))(?= |$)"
)
NEED: Final = re.compile(
    r"\b(?:(?:always |first |also |still )?(?:requires?|needs?|demands?|takes|presupposes?"
    r"|calls for|depends on|hinges on|relies on|rests on|subject to|conditional on"
    r"|contingent on)|(?:must|has to|have to|needs to|need to) (?:have|hold|carry|show|present"
    r"|possess|come with|be covered by|be backed by|rest on|rely on|be based on"
    r"|be under))(?= (?!to\b|(?:not |all |both |each )?(?:been|said|given|\w+ed)\b))"
)
UNLESS: Final = re.compile(
    rf"\b(?:unless|except(?: (?:{IF}|with|under|on|after))?|other than (?:{IF}|with)"
    rf"|save (?:{IF}|with)"
    r"|until(?: after)?|till|without|absent|in the absence of|lacking|before)\b"
)
LACKING: Final = re.compile(
    r"\b(?:that|which|who|whose \w+) (?:is|are|has|have|does|do|was|were) (?:not|no)\b"
)
ACTING: Final = re.compile(
    r"[ ,]*(?:then )?(?:you (?:may|can|should) |the \w+(?: \w+)? (?:may|can) "
    r"|please )?(?:just )?(?:open|unlock|start|set|run|heat|stream|share|export|proceed|go ahead"
    r"|go on|call|move|raise|close|lower|retract|record|pump|turn on|switch on|act|continue"
    r"|do (?:it|so)|be )\b"
)
WHEN: Final = re.compile(rf"\b(?:{IF}|whose)\b")
WITH: Final = re.compile(rf"\b(?=(?:{PREPOSITION})\b)")
REQUIRED: Final = re.compile(
    r"^(?P<c>.{3,}?),? (?:is|are)(?: \w+ly| also| always| still| first)? (?:required|needed"
    r"|necessary|mandatory|a must|obligatory|indispensable|compulsory|essential|a precondition"
    r"|a prerequisite|a requirement)\b|^(?P<d>.{3,}?) (?:comes? first|goes first)\b"
)
NO_NO: Final = re.compile(r"^no (?P<c>[^,;]{2,}?)(?:,| means| equals|:)? no\b")
ONLY_SUBJECT: Final = re.compile(
    r"^only (?P<c>.{3,}?) (?:may|can|allows?|permits?|opens?|authori[sz]es?|entitles?|lets?"
    r"|counts?|do|does|will do|is enough|suffices?|is accepted|are accepted|is good enough"
    r"|justif\w+|unlocks?|starts?|makes?|gives?|gets?|is to be|are to be|is allowed|are allowed"
    r"|qualif\w+)\b"
)
ONLY_LAST: Final = re.compile(
    r"^(?P<c>.{3,}?),? (?:only|(?:and )?nothing (?:else|older|newer|less|more|below|above))$"
)
BLOCKS: Final = re.compile(
    r"^(?P<c>.{3,}?) (?:(?:always )?(?:blocks?|rules? out|forbids?|prevents?|prohibits?|vetoe?s?"
    r"|excludes?|ends|cancels?|voids?|stops|overrides?|settles it|kills)\b"
    rf"|means? (?:a |an |that |the )*(?:no\b|not\b|[\w -]{{0,30}}{STOPPING})"
    r"|(?:is|are|counts? as) (?:a |an |reason |enough |grounds |sufficient )*(?:to (?:stop"
    r"|refuse|decline|leave|abort|skip)|for refus\w+|refus\w+|veto|no-go))"
)
REFUSED: Final = re.compile(
    r"^(?P<c>.{3,}?) (?:must|has to|have to|is to|are to|shall|should) (?:always )?be (?:refused"
    r"|rejected|declined|denied|turned (?:down|away)|blocked|skipped|ignored)\b"
)
TREATED: Final = re.compile(
    r"\btreat (?P<c>.{3,}?) as (?:if )?(?:a |an )?(?:missing|unknown|no|refusal|absent|stale"
    r"|invalid|none|not |unsafe|unusable|unfit)|^(?P<d>.{3,}?) counts? as (?:a |an )?(?:missing"
    r"|none|no\b|absent|unknown|stale|refusal|nothing)"
)
TRUSTED: Final = re.compile(
    r"\b(?:never|do not|must not|may not) (?:act|go|rely|depend|build|work) (?:on|by|from"
    r"|with) (?P<c>.+)$|\b(?:never|do not|must not|may not) (?:use|trust|accept|believe"
    r"|take) (?P<d>.+)$"
)
MODAL: Final = re.compile(
    r"^(?P<c>(?:(?:nobody|no one|nothing|no \w+) (?:may|can)|.+? (?:must|has to|have to|needs to"
    r"|need to|shall|should|may not|can not|may never|is to|may(?= (?:be|hold|contain|read"
    r"|show) (?:at most|no |not |up to|only|never))|are to|may only"
    r"|ought to))(?: \w+){0,2}? (?:be|read|show|say|report|stay|remain|stand|sit|lie|hold|exceed"
    r"|fall|drop|rise|go|get|indicate|agree|consent|approve|accept|cover|include|have(?: been)?"
    r"|give|vote|contain|equal|run|match|reach|weigh|speak|use|carry|(?=(?:more|less|higher"
    r"|lower|over|above|below|under|at least|at most|between)\b))\b.*)$"
)
MODAL_ACT: Final = re.compile(
    r"^(?:you|the agent|it|this skill|agents?|we|the assistant)\b|\b(?:must|shall|should|may"
    r"|can) (?:not |never )?be (?:sent|set|used|called|passed|told|given|asked|opened|started"
    r"|unlocked|moved|made|done|shared|shown|exported|raised|logged|reported|named)\b(?! (?:if"
    r"|when))"
)
MAIN_AFTER: Final = re.compile(
    rf"(?:,|\bthen\b|:| and(?= (?:stop"
    rf"|refuse)))(?: then)?(?= (?:please )?(?:you (?:must )?)?(?:the \w+(?: \w+)?"
    rf" )?{STOPPING}\b)"
)
BARE_MAIN: Final = re.compile(
    r" (?=(?:stop|refuse|abort|decline|do not|never|halt|skip|the answer is no|there (?:is|are"
    r"|will be) no|nothing (?=\w+s\b))\b(?!ped))"
)
FORBIDDEN: Final = re.compile(
    r" (?:is|are) (?:strictly |never )?(?:forbidden|prohibited|not allowed|not permitted|allowed"
    r"|out of the question|off limits)\b"
)
TAIL: Final = re.compile(
    r",? (?:before (?:you |any|the |it |un|open|start|send|act|call|go|mov|set|shar|stream)"
    r"|in order to|or else|otherwise|else (?=stop|refuse|leave|do)|and (?:then "
    r"|only then )?(?:report|tell|say|explain|log|ask|stop|refuse|leave|name|mention|write"
    r"|inform|answer|not (?:before|otherwise|sooner|earlier))\b|because\b|since (?!\d)"
    r"|even (?:if|when|though)\b|regardless\b|no matter\b|so that\b|for that\b|at (?:the"
    r"|that) (?:moment|time|point)\b|(?:is|are) (?:strictly |never )?(?:forbidden|prohibited"
    r"|not allowed|not permitted|allowed|out of the question|off limits)\b)|, (?:which|who|whose"
    r"|where|the one|one|as|so|ask|report|tell|explain|leave|wait|answer|say|stop|refuse"
    r"|treat (?:it|this|that))\b"
)


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
