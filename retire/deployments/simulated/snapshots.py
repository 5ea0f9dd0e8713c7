"""What the reader finds in the messages: request, guiding text, and the snapshot's entries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from retire.deployments.simulated.wording import GENERIC_WORDS, content_stems, stem, tokens

if TYPE_CHECKING:
    from retire.domain.digests import Json


SECTIONS: Final = ("grants", "consents", "facts", "versions")
_COVERED: Final = 0.4
_GENERIC_WEIGHT: Final = 0.25
_HEAD_WEIGHT: Final = 1.5
_HINTED: Final = 0.6
_NAMED: Final = 0.5

HINTS: Final = {
    "grants": re.compile(
        r"\b(?:grants?|permits?|authori[sz]ations?|bookings?|pass(?:es)?|entitlements?"
        r"|licen[cs]es?|warrants?|permissions?|mandates?|reservations?|work orders?"
        r"|clearances?)\b"
    ),
    "consents": re.compile(
        r"\b(?:consent\w*|agree\w*|yes(?:es)?|approv\w+|refus\w+|votes?|assent\w*|says? no"
        r"|said no|saying no|permission|(?:a|one|single|any|first|'s) no|declin\w+|object(?:s|ed"
        r"|ions?|ing)?|veto\w*|go-ahead|signed off|opt(?:s|ed)? (?:in|out)|withdr\w+|dissent\w*"
        r"|green light)\b"
    ),
    "facts": re.compile(r"\b(?:sensors?|readings?|measurements?|telemetry|contacts?|detectors?)\b"),
    "versions": re.compile(r"\b(?:versions?|firmware|releases?|schemas?|software|builds?)\b"),
}
"""Words by which a sentence says which kind of entry it speaks of."""


_IMPLIED: Final = tuple(
    (re.compile(rf"\b(?:{said})\b"), frozenset(stem(word) for word in implied.split()))
    for said, implied in (
        (
            "empty|occupied|vacant|somebody|someone|anybody|anyone|nobody|no one|people|persons?",
            "occupancy presence person people motion",
        ),
        ("(?:dis|un)?armed", "alarm"),
        ("warm(?:er)?|hot(?:ter)?|cold(?:er)?|cool(?:er)?|heat", "temperature"),
        ("cars?|vehicles?|vans?|trucks?", "car vehicle"),
        ("full|fill level|filled", "level"),
        ("charged", "battery charge"),
        ("weighs?|kilos?|kg", "weight"),
        ("releases?|versions?|software|builds?", "firmware version software release"),
    )
)


@dataclass(frozen=True, slots=True)
class EntryName:
    """What the text of a rule can be matched against; no value of the entry is in it."""

    section: str
    key: str
    stems: tuple[str, ...]
    voters: tuple[tuple[str, frozenset[str]], ...] = ()
    unit: str = ""


def text_of(value: object) -> str:
    """Return a JSON value as text; containers and null give the empty text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else ""


def mapping_of(value: object) -> Mapping[str, Json]:
    """Return a JSON object, or an empty one for everything else."""
    return value if isinstance(value, Mapping) else {}


def time_of(value: Json) -> datetime | None:
    """Return an RFC 3339 time as an aware datetime, or None when it cannot be read."""
    try:
        time = datetime.fromisoformat(text_of(value))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _names_of(key: str, entry: Mapping[str, Json]) -> str:
    return text_of(entry.get("name")) or key


def entry_names(snapshot: Json) -> tuple[EntryName, ...]:
    """Return the entries of a snapshot by section and then by friendly name.

    The order depends on ids only where two friendly names are equal.
    """
    sections = mapping_of(snapshot)
    found: list[EntryName] = []
    for section in SECTIONS:
        entries = mapping_of(sections.get(section))
        by_name = sorted(entries, key=lambda key: (_names_of(key, mapping_of(entries[key])), key))
        for key in by_name:
            entry = mapping_of(entries[key])
            stems = tuple(dict.fromkeys(content_stems(_names_of(key, entry))))
            found.append(EntryName(section, key, stems, _voters(entry), text_of(entry.get("unit"))))
    return tuple(found)


def _voters(entry: Mapping[str, Json]) -> tuple[tuple[str, frozenset[str]], ...]:
    votes = mapping_of(entry.get("votes"))
    named = [(_names_of(key, mapping_of(votes[key])), key) for key in votes]
    return tuple((key, frozenset(tokens(name))) for name, key in sorted(named))


@lru_cache(maxsize=256)
def _frequencies(entries: tuple[EntryName, ...]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for entry in entries:
        for word in entry.stems:
            counts[word] = counts.get(word, 0) + 1
    return counts


def voters_named(text: str, entry: EntryName) -> tuple[str, ...]:
    """Return the keys of the voters whose whole name stands in the text."""
    words = set(tokens(text))
    return tuple(key for key, name in entry.voters if name and name <= words)


@lru_cache(maxsize=16384)
def matches(text: str, entries: tuple[EntryName, ...]) -> tuple[tuple[EntryName, ...], ...]:
    """Return the entries that a piece of text may speak of, the likeliest first.

    Each group holds the entries of one section that tie.

    An entry is spoken of when the text covers two fifths of its name by weight (the last content
    word weighs 1.5, a generic noun 0.25, others 1), or names one of its voters, or when a word
    decides its section. Words that several entries share count less in the comparison.
    """
    words = frozenset(content_stems(text))
    implied = _implied(text)
    scores = {
        entry: _score(text, words | implied if words & set(entry.stems) else words, entry, entries)
        for entry in entries
    }
    groups: dict[tuple[float, str], list[EntryName]] = {}
    for entry in entries:
        if scores[entry] > 0:
            groups.setdefault((scores[entry], entry.section), []).append(entry)
    ranked = sorted(groups, key=lambda group: (-group[0], SECTIONS.index(group[1])))
    return tuple(tuple(groups[group]) for group in ranked)


def _implied(text: str) -> frozenset[str]:
    """Return stems of entry names that other words of a text point at."""
    return frozenset(
        word for pattern, implied in _IMPLIED if pattern.search(text) for word in implied
    )


def _score(
    text: str, words: frozenset[str], entry: EntryName, entries: tuple[EntryName, ...]
) -> float:
    frequencies = _frequencies(entries)
    weights = dict.fromkeys(entry.stems, 1.0)
    content = [word for word in entry.stems if word not in GENERIC_WORDS]
    if content:
        named = [word for word in content if not word.isdigit()] or content
        weights[named[-1]] = _HEAD_WEIGHT
        weights.update((w, _GENERIC_WEIGHT) for w in entry.stems if w in GENERIC_WORDS)
    covered = sum(weight for word, weight in weights.items() if word in words)
    ranked = sum(weight / frequencies[w] for w, weight in weights.items() if w in words)
    hinted = bool(HINTS[entry.section].search(text))
    voter = bool(entry.voters and voters_named(text, entry))
    if covered <= _COVERED * sum(weights.values()) and not voter:
        # A fact is too easily hinted at; the freshness of "a reading" is asked for elsewhere.
        return _HINTED + ranked if hinted and entry.section != "facts" else 0.0
    # "Jonas must hold a grant" speaks of the grant, "Jonas must agree" of his vote.
    named_weight = _HEAD_WEIGHT if hinted else _NAMED
    return ranked + (_HINTED if hinted else 0.0) + (named_weight if voter else 0.0)


def facts_hinted(text: str, entries: tuple[EntryName, ...]) -> tuple[EntryName, ...]:
    """Return all facts when the text speaks of "a reading" or "the sensor" without naming one."""
    if not HINTS["facts"].search(text):
        return ()
    return tuple(entry for entry in entries if entry.section == "facts")


SNAPSHOT_SCHEMA: Final = "retire.snapshot/v1"
_DECODER: Final = json.JSONDecoder(parse_float=str)
_REQUEST: Final = re.compile(r"(?im)^\s*(?:the )?(?:user )?request\s*:\s*")
_MOST_BRACES: Final = 64


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of the messages: ``guidance`` is all system text without the snapshot."""

    request: str
    guidance: str
    snapshot: Mapping[str, Json]


def read_prompt(messages: Sequence[Mapping[str, str]]) -> Prompt:
    """Find the snapshot wherever it stands, the request in the last user message, the guidance.

    A prompt without a snapshot gives an empty one; the reader then knows no facts.
    """
    snapshot: Mapping[str, Json] = {}
    guidance: list[str] = []
    request = ""
    for message in messages:
        before, found, after = _part(text_of(message.get("content")))
        snapshot = found or snapshot
        if message.get("role") == "user":
            request = _request_of(before, after, cut=bool(found))
        elif message.get("role") in {"system", "developer"}:
            guidance.append("\n".join(part for part in (before, after) if part.strip()))
    return Prompt(request, "\n\n".join(guidance), snapshot)


@lru_cache(maxsize=512)
def _part(content: str) -> tuple[str, Mapping[str, Json], str]:
    """Cut a text around the snapshot object that stands in it, if any."""
    marker = content.find(SNAPSHOT_SCHEMA)
    while marker >= 0:
        line = content.rfind("\n", 0, marker) + 1
        starts = [match.start() for match in re.finditer(r"\{", content[line:marker])]
        candidates = [line + offset for offset in starts[:_MOST_BRACES]]
        outer = content.rfind("\n{", 0, marker)
        candidates.extend([outer + 1] if outer >= 0 else [0] if content[:1] == "{" else [])
        for start in candidates:
            value, end = _decode(content, start)
            if isinstance(value, Mapping) and value.get("schema") == SNAPSHOT_SCHEMA:
                return content[:start], value, content[end:]
        marker = content.find(SNAPSHOT_SCHEMA, marker + 1)
    return content, {}, ""


def _decode(content: str, start: int) -> tuple[Json, int]:
    try:
        value, end = _DECODER.raw_decode(content, start)
    except (ValueError, RecursionError):
        return None, start
    return value, end


def _request_of(before: str, after: str, *, cut: bool) -> str:
    lines = before.rstrip().split("\n")
    if cut and len(lines) > 1 and lines[-1].rstrip(" `").endswith(":"):
        # The line that introduces the snapshot is no part of the request.
        lines.pop()
    text = "\n".join(lines).strip()
    said = _REQUEST.search(text) or _REQUEST.search(after)
    if said:
        return said.string[said.end() :].strip("` \n")
    return "\n".join(part for part in (text, after.strip("` \n")) if part)
