"""The words by which a sentence restricts, as regular expressions over lower-case text."""

from __future__ import annotations

import re
from typing import Final

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
