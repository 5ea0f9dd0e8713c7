"""Reading the rules of a text: which entry each speaks of, and whether the entry satisfies it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from retire.deployments.simulated.bounds import read_age, read_version
from retire.deployments.simulated.cues import (
    Condition,
    Way,
    conditions,
    is_stopping,
    unsplit_conditions,
)
from retire.deployments.simulated.expectations import Combined, Expectation, combine
from retire.deployments.simulated.facts import read_consent, read_fact, read_grant
from retire.deployments.simulated.snapshots import (
    EntryName,
    entry_names,
    facts_hinted,
    mapping_of,
    matches,
    time_of,
)
from retire.deployments.simulated.wording import LONGEST_SENTENCE, Sentence, normalise, split_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from retire.deployments.simulated.wording import Sentence
    from retire.domain.digests import Json


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


@dataclass(frozen=True, slots=True)
class RuleReading:
    """One rule as the reader understood it, judged against one snapshot.

    ``paths`` are JSON pointers (RFC 6901) of the raw values it rests on; ``kind`` is grant,
    consent, freshness, number, state or version; ``ordinal`` counts from 0 within the kind.
    """

    text: str
    section: str
    entry: str
    paths: tuple[str, ...]
    kind: str
    ordinal: int
    satisfied: bool


@dataclass(frozen=True, slots=True)
class _Term:
    """What one condition expects of one entry."""

    entry: EntryName
    expectation: Expectation


@dataclass(frozen=True, slots=True)
class _Rule:
    """Terms joined by "and" or "or", demanded or forbidden together."""

    text: str
    terms: tuple[_Term, ...]
    any_of: bool
    forbid: bool


_PIECES: Final = re.compile(
    r"(, and |, or | and | or |, but | but (?!v?\d)|, nor | nor | as well as | plus |, )"
)
_PRONOUN: Final = re.compile(r"\b(?:it|its|they|this|that|both)\b")


def read_rules(text: str, snapshot: Json) -> tuple[RuleReading, ...]:
    """Return every rule of a text that speaks of a snapshot entry, judged on raw values.

    Args:
        text: Markdown or plain text; frontmatter contributes its description.
        snapshot: A ``retire.snapshot/v1`` object. Anything else holds no entries.

    A sentence that matches an entry but states no expectation that the grammar knows gives no
    reading. An entry value that is missing or unreadable leaves its rule unsatisfied. Nothing
    raises, whatever the text holds.
    """
    sections = mapping_of(snapshot)
    as_of = time_of(sections.get("as_of"))
    counts: dict[str, int] = {}
    readings: list[RuleReading] = []
    for rule in _rules(text, entry_names(snapshot)):
        verdict = combine(
            [
                term.expectation.judge(
                    mapping_of(mapping_of(sections.get(term.entry.section)).get(term.entry.key)),
                    as_of,
                )
                for term in rule.terms
            ],
            any_of=rule.any_of,
        )
        satisfied = verdict is not None and verdict != rule.forbid
        for term in rule.terms:
            kind = term.expectation.kind
            ordinal = counts.get(kind, 0)
            counts[kind] = ordinal + 1
            readings.append(
                RuleReading(
                    rule.text,
                    term.entry.section,
                    term.entry.key,
                    _paths(term),
                    kind,
                    ordinal,
                    satisfied,
                )
            )
    return tuple(readings)


def _paths(term: _Term) -> tuple[str, ...]:
    entry = term.entry
    base = f"/{entry.section}/{_escape(entry.key)}"
    paths: list[str] = []
    for field in _fields(term.expectation, entry):
        if field in {"votes", "at"}:
            named = _voters(term.expectation) or tuple(key for key, _ in entry.voters)
            leaf = "answer" if field == "votes" else "at"
            paths.extend(f"{base}/votes/{_escape(key)}/{leaf}" for key in named)
        else:
            paths.append(f"{base}/{field}")
    return tuple(paths)


def _fields(expectation: Expectation, entry: EntryName) -> tuple[str, ...]:
    names = expectation.fields
    return tuple("at" if n == "reported_at" and entry.voters else n for n in names)


def _voters(expectation: Expectation) -> tuple[str, ...]:
    if isinstance(expectation, Combined):
        return tuple(key for part in expectation.parts for key in _voters(part))
    return getattr(expectation, "voters", ())


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@lru_cache(maxsize=1024)
def _rules(text: str, entries: tuple[EntryName, ...]) -> tuple[_Rule, ...]:
    """Read the rules of a text against the names (never the values) of a snapshot."""
    if not entries:
        return ()
    found: list[_Rule] = []
    for sentence in split_text(text):
        found.extend(_rules_of(sentence, entries))
    return tuple(found)


@lru_cache(maxsize=16384)
def _rules_of(sentence: Sentence, entries: tuple[EntryName, ...]) -> tuple[_Rule, ...]:
    if len(sentence.text) > LONGEST_SENTENCE or sentence.text.endswith(":"):
        return ()
    spoken = with_lead(sentence)
    if is_boundary_statement(spoken) or not restricts_acting(spoken):
        return ()
    previous = normalise(sentence.previous)[:LONGEST_SENTENCE]
    rules: list[_Rule] = []
    context = (spoken, previous)
    for ways in conditions(spoken):
        rules.extend(_first_understood(sentence.text, ways, context, entries))
    return tuple(
        rules or _first_understood(sentence.text, unsplit_conditions(spoken), context, entries)
    )


def _first_understood(
    text: str, ways: Iterable[Way], context: tuple[str, ...], entries: tuple[EntryName, ...]
) -> list[_Rule]:
    for way in ways:
        rules = [
            rule for condition in way for rule in _read_condition(text, condition, context, entries)
        ]
        if rules:
            return rules
    return []


def _read_condition(
    text: str,
    condition: Condition,
    context: tuple[str, ...],
    entries: tuple[EntryName, ...],
) -> list[_Rule]:
    groups = _group(condition, entries)
    if not any(found for _, _, found in groups):
        groups = _by_context(condition, context, entries)
    terms: list[_Term] = []
    any_of = False
    for joiner, piece, found in groups:
        new = _terms(piece, condition, found)
        for other in () if new else matches(piece, entries)[1:]:
            # The likeliest entry was only mentioned ("old at the moment of sharing").
            new = new or _terms(piece, condition, other)
        if new and terms:
            any_of = any_of or " or " in joiner or "nor" in joiner
        terms.extend(new)
    if not terms:
        return []
    if any_of == condition.forbid or len(terms) == 1:
        # Forbidding any of them is forbidding each; demanding all is demanding each.
        return [_Rule(text, (term,), any_of=False, forbid=condition.forbid) for term in terms]
    return [_Rule(text, tuple(terms), any_of, condition.forbid)]


def _group(
    condition: Condition, entries: tuple[EntryName, ...]
) -> list[tuple[str, str, tuple[EntryName, ...]]]:
    """Cut a condition at "and", "or" and commas wherever another entry is spoken of."""
    parts = _PIECES.split(condition.text)
    groups: list[tuple[str, str, tuple[EntryName, ...]]] = []
    for position in range(0, len(parts), 2):
        joiner = parts[position - 1] if position else ""
        piece = parts[position]
        found = _spoken_of(piece, entries)
        last = groups[-1] if groups else None
        if last and set(last[2]) <= set(found):
            # "... and that its window has begun" goes on about the entry before it.
            found = last[2] or found
        if last and (not found or found == last[2] or not last[2]):
            groups[-1] = (last[0], f"{last[1]}{joiner}{piece}", found or last[2])
        else:
            groups.append((joiner, piece, found))
    return groups


def _spoken_of(text: str, entries: tuple[EntryName, ...]) -> tuple[EntryName, ...]:
    ranked = matches(text, entries)
    if ranked:
        return ranked[0]
    return facts_hinted(text, entries) if read_age(text) else ()


def _by_context(
    condition: Condition, context: Iterable[str], entries: tuple[EntryName, ...]
) -> list[tuple[str, str, tuple[EntryName, ...]]]:
    """Take the entry from the rest of the sentence, or for a pronoun from the one before."""
    hinted = facts_hinted(condition.text, entries)
    for position, text in enumerate(context):
        if position and not _PRONOUN.search(condition.text):
            break
        ranked = [g for g in matches(text, entries) if g[0].section in {"facts", "versions"}]
        if ranked:
            return [("", condition.text, ranked[0])]
    return [("", condition.text, hinted)]


def _terms(piece: str, condition: Condition, found: tuple[EntryName, ...]) -> list[_Term]:
    terms: list[_Term] = []
    for entry in found:
        expectation = _expectation(piece, condition, entry)
        if expectation is not None:
            terms.append(_Term(entry, expectation))
    return terms


def _expectation(piece: str, condition: Condition, entry: EntryName) -> Expectation | None:
    if entry.section == "grants":
        return read_grant(piece, noun_is_enough=condition.noun_is_enough)
    if entry.section == "consents":
        return read_consent(piece, entry)
    if entry.section == "versions":
        return read_version(piece)
    return read_fact(piece, entry, bare_state=condition.bare_state)


def rule_holds(text: str, snapshot: bytes) -> bool | None:
    """Return whether every rule read in a text is satisfied; None where none can be read.

    What lint asks of a condition: its sentence, under the bytes of a frozen snapshot.
    """
    readings = read_rules(text, json.loads(snapshot))
    return all(reading.satisfied for reading in readings) if readings else None
