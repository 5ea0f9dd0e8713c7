"""Where a sentence restricts: the conditions in it, and which way each of them points."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

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


_STOPPING: Final = (
    r"(?:never|the answer (?:is|must be|stays) no|declined|denied|rejected|there (?:is|are"
    r"|will be|can be) no|nothing|nobody|no one|do not|does not|must not"
    r"|may not|can not|shall not|should not|will not|not to be"
    r"|not be"
    r"|not allowed|not permitted|not acceptable|refuse[sd]?|refusing|stop|skip|abort|decline"
    r"|deny|halt"
    r"|reject|cancel|forbidden|prohibited|banned|forbids?|prohibits?|off limits|hold off"
    r"|hold back|hold"
    r"|back off|give up|pause|postpone|defer|wait|leave|do nothing|stay put|walk away"
    r"|no \w+(?: \w+)?"
    r"(?= (?:if|when|while|unless|without|until|before|with|as long|during|on|under|against|once"
    r"|after)"
    r"\b)|under no circumstances|call it off|call off|out of the question|turn (?:it|the request"
    r"|this)"
    r" down|say no|keep (?:it|the [\w -]{1,40}?) (?:shut|closed|locked|off|down|up|still)"
    r"|(?:stays?|remains?) (?:shut|closed|locked|off|down|up|put|blocked|dark|cold|silent|muted"
    r"|still"
    r"|dry|parked|inside|empty|untouched|private|as (?:it|they)|where (?:it|they))"
    r"|(?:send|turn) (?:it|them|him|her|the [\w -]{1,30}?) (?:away|back)|nothing (?:happens"
    r"|moves|opens"
    r"|goes)|is not an option|no-go|drop the request|end here|go no further|veto)"
)
_CLAUSE_END: Final = re.compile(
    r";(?! ?(?:otherwise|or else|else|if not|failing)\b)"
    r"|,? (?:which is why|that is why|and therefore|therefore|hence|,so)\b|, so (?!long|that)"
    r"|(?<!if)(?<!when)(?<!that)(?<!unless)(?<!only)(?<!while)(?<!until)(?<!never): "
)
_STOPS: Final = re.compile(rf"\b{_STOPPING}\b")
_OTHERWISE: Final = re.compile(
    rf"\b(?:otherwise|or else|else|if not|failing that)\b.*?\b{_STOPPING}\b"
    r"|\band not (?:before|otherwise|sooner|earlier)\b"
)
_ONLY: Final = re.compile(r"\b(?:only|solely|exclusively|nothing but)\b")
_FORBIDS_ACT: Final = re.compile(
    r"\b(?:never|do not|must not|may not|can not|shall not|should not|refuse|no \w+|not allowed"
    r"|hold off|nothing|wait|not permitted|leave|forbidden|under no circumstances|not to be)\b"
)

_IF: Final = (
    r"if and only if|even if|if|whenever|when|while|whilst|once|as soon as|in case(?: of)?"
    r"|in the event"
    r"(?: that| of)?|where|should"
)
_PREPOSITION: Final = (
    r"with|on|under|between|below|above|up to|against|using|for|after|outside|past|beyond|during"
    r"|by|at|over|in|inside"
    r"|within|from"
)
_ONLY_IF: Final = re.compile(
    rf"\b(?:only|solely|exclusively)(?: ever| then| again)? (?P<if>{_IF})\b"
    r"|\b(?:as|so|for as|for so) long as\b|\bprovid(?:ed|ing)(?: that)?\b|\bassuming(?: that)?\b"
    r"|\bon (?:the )?(?:sole |one )?condition that\b"
)
_ONLY_WITH: Final = re.compile(rf"\b(?:only|solely|exclusively)(?: ever)? (?=(?:{_PREPOSITION})\b)")
_SURE: Final = re.compile(
    r"\b(?:(?:make|making|be) (?:sure|certain)(?: first)?(?: that)?|ensur(?:e|es"
    r"|ing)(?: first)?(?: that)?"
    r"|insist(?:s|ing)? (?:that|on)|see (?:to it )?that|(?:essential|important|vital|crucial"
    r"|necessary|imperative) that|it must be (?:true|the case) that"
    r"|wait (?:until|till)(?: after)?"
    r"|(?:double-|cross-)?(?:check|confirm|verify|checking|confirming|verifying"
    r"|establish)(?: first)?"
    r"(?: that| whether| on|(?= (?:the|both|all|every|each|at least|a|an)\b)))(?= |$)"
)
_NEED: Final = re.compile(
    r"\b(?:(?:always |first |also |still )?(?:requires?|needs?|demands?|takes|presupposes?"
    r"|calls for"
    r"|depends on|hinges on|relies on|rests on|subject to|conditional on|contingent on)"
    r"|(?:must|has to|have to|needs to|need to) (?:have|hold|carry|show|present|possess|come with"
    r"|be covered by|be backed by|rest on|rely on|be based on|be under))"
    r"(?= (?!to\b|(?:not |all |both |each )?(?:been|said|given|\w+ed)\b))"
)
_UNLESS: Final = re.compile(
    rf"\b(?:unless|except(?: (?:{_IF}|with|under|on|after))?|other than (?:{_IF}|with)"
    rf"|save (?:{_IF}|with)"
    r"|until(?: after)?|till|without|absent|in the absence of|lacking|before)\b"
)
_LACKING: Final = re.compile(
    r"\b(?:that|which|who|whose \w+) (?:is|are|has|have|does|do|was|were) (?:not|no)\b"
)
_ACTING: Final = re.compile(
    r"[ ,]*(?:then )?(?:you (?:may|can|should) |the \w+(?: \w+)? (?:may|can) |please )?(?:just )?"
    r"(?:open|unlock|start|set|run|heat|stream|share|export|proceed|go ahead|go on|call|move|raise"
    r"|close|lower|retract|record|pump|turn on|switch on|act|continue|do (?:it|so)|be )\b"
)
_WHEN: Final = re.compile(rf"\b(?:{_IF}|whose)\b")
_WITH: Final = re.compile(rf"\b(?=(?:{_PREPOSITION})\b)")

_REQUIRED: Final = re.compile(
    r"^(?P<c>.{3,}?),? (?:is|are)(?: \w+ly| also| always| still| first)? (?:required|needed"
    r"|necessary"
    r"|mandatory|a must|obligatory|indispensable|compulsory|essential|a precondition"
    r"|a prerequisite|a requirement)\b|^(?P<d>.{3,}?) (?:comes? first|goes first)\b"
)
_NO_NO: Final = re.compile(r"^no (?P<c>[^,;]{2,}?)(?:,| means| equals|:)? no\b")
_ONLY_SUBJECT: Final = re.compile(
    r"^only (?P<c>.{3,}?) (?:may|can|allows?|permits?|opens?|authori[sz]es?|entitles?|lets?"
    r"|counts?|do"
    r"|does|will do|is enough|suffices?|is accepted|are accepted|is good enough|justif\w+"
    r"|unlocks?|starts?"
    r"|makes?|gives?|gets?|is to be|are to be|is allowed|are allowed|qualif\w+)\b"
)
_ONLY_LAST: Final = re.compile(
    r"^(?P<c>.{3,}?),? (?:only|(?:and )?nothing (?:else|older|newer|less|more|below|above))$"
)
_BLOCKS: Final = re.compile(
    r"^(?P<c>.{3,}?) (?:(?:always )?(?:blocks?|rules? out|forbids?|prevents?|prohibits?|vetoe?s?"
    r"|excludes?|ends|cancels?|voids?|stops|overrides?|settles it|kills)\b"
    rf"|means? (?:a |an |that |the )*(?:no\b|not\b|[\w -]{{0,30}}{_STOPPING})"
    r"|(?:is|are|counts? as) (?:a |an |reason |enough |grounds |sufficient )*"
    r"(?:to (?:stop|refuse|decline|leave|abort|skip)|for refus\w+|refus\w+|veto|no-go))"
)
_REFUSED: Final = re.compile(
    r"^(?P<c>.{3,}?) (?:must|has to|have to|is to|are to|shall|should) (?:always )?be (?:refused"
    r"|rejected|declined|denied|turned (?:down|away)|blocked|skipped|ignored)\b"
)
_TREATED: Final = re.compile(
    r"\btreat (?P<c>.{3,}?) as (?:if )?(?:a |an )?(?:missing|unknown|no|refusal|absent|stale"
    r"|invalid|none"
    r"|not |unsafe|unusable|unfit)|^(?P<d>.{3,}?) counts? as (?:a |an )?(?:missing|none|no\b|absent"
    r"|unknown|stale|refusal|nothing)"
)
_TRUSTED: Final = re.compile(
    r"\b(?:never|do not|must not|may not) (?:act|go|rely|depend|build|work) (?:on|by|from"
    r"|with) (?P<c>.+)$"
    r"|\b(?:never|do not|must not|may not) (?:use|trust|accept|believe|take) (?P<d>.+)$"
)
_MODAL: Final = re.compile(
    r"^(?P<c>(?:(?:nobody|no one|nothing|no \w+) (?:may|can)"
    r"|.+? (?:must|has to|have to|needs to|need to|shall|should|may not|can not|may never|is to"
    r"|may(?= (?:be|hold|contain|read|show) (?:at most|no |not |up to|only|never))"
    r"|are to|may only|ought to))(?: \w+){0,2}? (?:be|read|show|say|report|stay|remain|stand|sit"
    r"|lie|hold|exceed|fall|drop|rise|go|get|indicate|agree|consent|approve|accept|cover|include"
    r"|have(?: been)?|give|vote|contain|equal|run|match|reach|weigh|speak|use"
    r"|carry|(?=(?:more|less|higher|lower|over|above|below|under|at least|at most"
    r"|between)\b))\b.*)$"
)
_MODAL_ACT: Final = re.compile(
    r"^(?:you|the agent|it|this skill|agents?|we|the assistant)\b|\b(?:must|shall|should|may"
    r"|can) (?:not |never )?"
    r"be (?:sent|set|used|called|passed|told|given|asked|opened|started|unlocked|moved|made|done"
    r"|shared|shown"
    r"|exported|raised|logged|reported|named)\b(?! (?:if|when))"
)


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
    clauses = (clause.strip(" ,.:!?") for clause in _CLAUSE_END.split(sentence))
    return tuple(ways for clause in clauses if (ways := _ways(clause)))


@lru_cache(maxsize=8192)
def unsplit_conditions(sentence: str) -> tuple[Way, ...]:
    """Return the ways to read a sentence whose colons and semicolons only join."""
    return _ways(re.sub(r"[:;]", ",", sentence).strip(" ,.!?"))


def _ways(clause: str) -> tuple[Way, ...]:
    placed = (_prepositional(clause, match) for match in _WITH.finditer(clause))
    found = [_framed(clause), *_connected(clause), *_direct(clause), *placed]
    return tuple(dict.fromkeys(tuple(way) for way in found if way))


def is_stopping(sentence: str) -> bool:
    """Say whether a lower-case sentence forbids an act or tells to stop."""
    return _STOPS.search(sentence) is not None


def _framed(clause: str) -> list[Condition]:
    """Read a clause whose whole shape says what it demands: "no grant, no unlock"."""
    for pattern, forbid, needed in (
        (_NO_NO, False, True),
        (_TREATED, True, False),
        (_REQUIRED, False, True),
        (_ONLY_SUBJECT, False, True),
        (_REFUSED, True, False),
    ):
        match = pattern.search(clause)
        if match:
            text = next(group for group in match.groups() if group is not None)
            return [Condition(text, forbid, noun_is_enough=needed, bare_state=True)]
    return []


def _direct(clause: str) -> list[list[Condition]]:
    """Read a clause without a connector: a blocker, a modal about a state, a closing "only"."""
    ways: list[list[Condition]] = []
    blocker, last = _BLOCKS.match(clause), _ONLY_LAST.match(clause)
    trusted, modal = _TRUSTED.search(clause), _MODAL.match(clause)
    if blocker:
        ways.append([Condition(blocker["c"], forbid=True, bare_state=True)])
    if trusted:
        ways.append([Condition(trusted["c"] or trusted["d"], forbid=True, bare_state=True)])
    if last:
        ways.append([Condition(last["c"], noun_is_enough=True, bare_state=True)])
    if modal and not _MODAL_ACT.search(clause):
        ways.append([Condition(_trim(modal["c"]))])
    return ways


def _connected(clause: str) -> list[list[Condition]]:
    """Read what stands after each connector that restricts."""
    return [reader(clause, m) for pattern, reader in _CONNECTORS for m in pattern.finditer(clause)]


def _demanded(clause: str, match: re.Match[str]) -> list[Condition]:
    text = _until_main(clause, match)
    if match[0].endswith("long as"):
        outside = clause[: match.start()] + " , " + clause[match.end() + len(text) :]
        if _STOPS.search(outside) and not _ONLY.search(outside) and not _OTHERWISE.search(outside):
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
            [Condition(text, noun_is_enough=True, bare_state=bare)]
            if _STOPS.search(outside)
            else []
        )
    if _FORBIDS_ACT.search(outside) or _STOPS.search(outside):
        needed = word not in {"until", "till"} and not gerund
        return [Condition(text, noun_is_enough=needed, bare_state=bare)]
    if (
        word == "unless"
        and not match.start()
        and not _ACTING.match(clause[match.end() + len(text) :])
    ):
        return [Condition(text, noun_is_enough=True, bare_state=True)]
    if word.startswith(("unless", "except")):
        return [Condition(text, forbid=True, bare_state=True)]
    return []


def _lacked(clause: str, match: re.Match[str]) -> list[Condition]:
    """Read "refuse whatever is not covered by ..." as a demand for what covers it."""
    if not _STOPS.search(clause[: match.start()]) or _WHEN.search(clause[: match.start()]):
        return []
    return [Condition(_trim(clause[match.end() :]), noun_is_enough=True)]


def _conditional(clause: str, match: re.Match[str]) -> list[Condition]:
    text = _until_main(clause, match)
    outside = clause[: match.start()] + " , " + clause[match.end() + len(text) :]
    if not text or match[0] == "even if":
        return []
    if _OTHERWISE.search(outside) or _ONLY.search(clause[: match.start()]):
        return [Condition(text, bare_state=True)]
    if _STOPS.search(outside):
        return [Condition(text, forbid=True, bare_state=True)]
    return []


def _prepositional(clause: str, match: re.Match[str]) -> list[Condition]:
    before = clause[: match.start()]
    text = _trim(clause[match.end() :])
    if not before.strip():
        text = _until_main(clause, match)
        stopped = _STOPS.search(clause[match.end() + len(text) :])
        return [Condition(text, forbid=True, bare_state=True)] if stopped else []
    if _ONLY.search(before) and not _STOPS.search(before):
        return [Condition(text, noun_is_enough=True, bare_state=True)]
    forbidden = _FORBIDDEN.match(clause[match.end() + len(text) :])
    if not (_STOPS.search(before) or forbidden) or before.startswith("wait"):
        return []
    return [Condition(text, forbid=True, bare_state=True)]


_MAIN_AFTER: Final = re.compile(
    rf"(?:,|\bthen\b|:| and(?= (?:stop"
    rf"|refuse)))(?: then)?(?= (?:please )?(?:you (?:must )?)?(?:the \w+(?: \w+)? )?{_STOPPING}\b)"
)
_BARE_MAIN: Final = re.compile(
    r" (?=(?:stop|refuse|abort|decline|do not|never|halt|skip|there (?:is|are|will be) no"
    r"|nothing (?=\w+s\b))\b(?!ped))"
)
_FORBIDDEN: Final = re.compile(
    r" (?:is|are) (?:strictly |never )?(?:forbidden|prohibited|not allowed|not permitted|allowed"
    r"|out of the question|off limits)\b"
)
_TAIL: Final = re.compile(
    r",? (?:before (?:you |any|the |it |un|open|start|send|act|call|go|mov|set|shar|stream)"
    r"|in order to|or else|otherwise|else (?=stop|refuse|leave|do)"
    r"|and (?:then |only then )?(?:report|tell|say|explain|log|ask|stop|refuse|leave|name|mention"
    r"|write|inform|answer|not (?:before|otherwise|sooner|earlier))\b"
    r"|because\b|since (?!\d)|even (?:if|when|though)\b|regardless\b|no matter\b|so that\b"
    r"|for that\b|at (?:the|that) (?:moment|time|point)\b"
    r"|(?:is|are) (?:strictly |never )?(?:forbidden|prohibited|not allowed|not permitted|allowed"
    r"|out of the question|off limits)\b)"
    r"|, (?:which|who|whose|where|the one|one|as|so|ask|report|tell|explain|leave|wait|answer|say"
    r"|stop|refuse|treat (?:it|this|that))\b"
)


def _until_main(clause: str, match: re.Match[str]) -> str:
    """Return the text of the condition that starts after a connector.

    A connector at the head of the clause governs it up to the comma before the main clause; a
    later one governs it to the end.
    """
    rest = clause[match.end() :]
    if not clause[: match.start()].strip(" ,:") or clause[: match.start()].rstrip().endswith(","):
        main = _MAIN_AFTER.search(rest) or _BARE_MAIN.search(rest)
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
    tail = _TAIL.search(text)
    return (text[: tail.start()] if tail else text).strip(" ,.:!?")


_CONNECTORS: Final[tuple[tuple[re.Pattern[str], Reader], ...]] = (
    (_ONLY_IF, _demanded),
    (_ONLY_WITH, _demanded_noun),
    (_LACKING, _lacked),
    (_UNLESS, _excepted),
    (_SURE, _demanded),
    (_NEED, _demanded_noun),
    (_WHEN, _conditional),
)
