"""What a sentence is about: the act itself, a report or a check after it, or a trusted boundary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from retire.deployments.simulated.ages import read_age
from retire.deployments.simulated.cues import conditions, is_stopping
from retire.deployments.simulated.wording import normalise

if TYPE_CHECKING:
    from retire.deployments.simulated.splitting import Sentence

_BOUNDARY: Final = re.compile(
    r"\b(?:boundary|monitor|gatekeeper|enforcement point|policy check|trusted sink|trusted check"
    r"|reference monitor|safety layer|guard layer)\b[^.;]{0,80}?\b(?:decid\w+|check\w*|enforc\w+"
    r"|verif\w+|refus\w+|block\w*|judg\w+|den\w+|allow\w*|permit\w*|hold\w*|responsib\w+"
    r"|approv\w+|mediat\w+)\b"
)
_REPORTING: Final = re.compile(
    r"^(?:and |then |always |only |please |finally |also |you (?:may |must "
    r"|should )?(?:only )?)*(?:never |do not |must not |may not |not |only )*(?:report|claim"
    r"|announce|tell|say|state|mention|call it|call the|log|name|write|quote|answer|reply"
    r"|conclude|declare|promise|retry|repeat|try again|mark|show the user|consider|describe"
    r"|assume|explain|summari[sz]e|apologi[sz]e|speak|thank|translate|guess|resend|send (?:it"
    r"|the (?:same )?(?:call|command|request)) again|poll|round|convert)\b"
)
_WRITING: Final = re.compile(
    r"^(?:do not |never |only )?(?:leave|keep|put|add|include|give|note"
    r"|spell) [^,;:]*\b(?:report|log|message|summary|note|answer|reply)\b"
)
_AFTER_ACT: Final = re.compile(
    r"^(?:afterwards?|then,? |finally|at the end|next,? |once (?:it|that|this"
    r"|the \w+(?: \w+)?) (?:is|has|was) (?:open|done|set|gone|through|live|up|down|on|off|shut"
    r"|\w+ed)\b|after (?:the |each |every |any |a )?(?!check|confirm|verif|read|mak"
    r"|ask)(?:\w+ing\b|call\b|command\b|unlock\b|move\b|change\b|request\b|run\b|action\b"
    r"|start\b|session\b|tool\b|act\b|it\b))"
)
_DELAY: Final = re.compile(
    r"\b(?:after (?:about |some |another )?(?:\w+|\d+) (?:seconds?|minutes?)|(?:seconds?"
    r"|minutes?) later|up to (?:\w+|\d+) (?:seconds?|minutes?)|within (?:\w+|\d+) (?:seconds?"
    r"|minutes?)(?: of (?:the|your|this))?(?! old)|afterwards?|by then)\b"
)
_REPORTED_LATELY: Final = re.compile(
    r"\b(?:old|older|age|fresh|last|past|report\w*|updat\w+|reading)\b"
)
_LEAD_CONNECTOR: Final = re.compile(
    r"^(?P<head>.*\b(?:if|when|while|unless|until|without|once|that|with|provided|only|never"
    r"|sure|ensure|check|confirm|verify|as long as|needs?|requires?))\b(?P<tail>[^:]*)$"
)
_LIST_JOINER: Final = re.compile(r"[.;,]*(?: (?:or|and))?[.;,]*$")
_LIST_TALK: Final = re.compile(
    r"^(?:,? ?(?:(?:one|any|all|each|every|either|both|none)(?: one)? of )?(?:these"
    r"|the following|those|all|any|each|everything|this|both|the list below"
    r"|what follows)?(?: \w+)? ?(?:below|following|conditions?|points?|things?|rules?|facts?"
    r"|checks?|is|are|hold|holds|true|met|apply|applies|satisfied|here|first|and)?)*$"
)
_LEAD_DEMAND: Final = re.compile(
    r"\b(?:must|preconditions?|prerequisites?|requirements?|required?|requires|needs?|needed"
    r"|only|rules?|conditions?|gates?|checklist|check|before (?:you|any|each|every|\w+ing))\b"
)
_LEAD_FORBID: Final = re.compile(r"\b(?:never|do not|stop|refuse|forbidden|blockers?|red lines?)\b")


def restricts_acting(sentence: str) -> bool:
    """Say whether a lower-case sentence can restrict the act, not a report or a later check."""
    after = _AFTER_ACT.match(sentence)
    if _REPORTING.match(sentence) or _WRITING.match(sentence):
        return False
    if after and not is_stopping(sentence):
        return False
    delay = _DELAY.search(sentence)
    return delay is None or bool(_REPORTED_LATELY.search(sentence) and read_age(sentence))


def is_boundary_statement(sentence: str) -> bool:
    """Say whether a sentence states that a trusted boundary decides."""
    return _BOUNDARY.search(normalise(sentence)) is not None


def with_lead(sentence: Sentence) -> str:
    """Put the line that a list item or row hangs on before it, as far as it restricts."""
    own = _LIST_JOINER.sub("", normalise(sentence.text))
    lead = normalise(sentence.lead or sentence.heading)[:200].rstrip(": ")
    if not lead:
        return own
    connector = _LEAD_CONNECTOR.match(lead)
    if connector and _LIST_TALK.match(connector["tail"]):
        return f"{connector['head']} {own}"
    if conditions(own):
        return own
    if _LEAD_FORBID.search(lead):
        return f"never if {own}"
    if _LEAD_DEMAND.search(lead):
        return f"make sure that {own}"
    return own
