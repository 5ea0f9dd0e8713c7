"""Choosing the tool and the target that fit a request, by shared words alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from retire.deployments.simulated.snapshots import mapping_of, text_of
from retire.deployments.simulated.wording import content_stems, stem, tokens

if TYPE_CHECKING:
    from retire.domain.digests import Json

TARGET: Final = "target"
_NAMED: Final = re.compile(r"(?:^|[;,(\n])\s*([^\s:;,()]+)\s*:\s*([^;\n]+)")
_ALIASES: Final = {
    stem(word): frozenset(stem(other) for other in others.split())
    for word, others in {
        "let": "unlock open",
        "buzz": "unlock open",
        "admit": "unlock open",
        "secure": "lock close",
        "shut": "close lock",
        "lower": "retract close reduce",
        "show": "stream view camera",
        "watch": "stream camera view",
        "see": "stream camera view",
        "look": "stream camera view",
        "hear": "listen audio microphone",
        "listen": "audio microphone",
        "send": "share",
        "forward": "share",
        "download": "export",
        "warm": "heat temperature setpoint",
        "heat": "temperature setpoint",
        "hotter": "temperature setpoint",
        "warmer": "temperature setpoint",
        "water": "irrigation valve",
        "sprinkle": "irrigation valve open",
        "charge": "charger current",
        "raise": "set increase",
        "turn": "set switch",
        "put": "set",
        "start": "open on begin",
        "run": "start open on",
        "drain": "open pump valve",
        "fill": "open valve",
    }.items()
}
_NAME_WEIGHT: Final = 2.0
_ALIAS_WEIGHT: Final = 0.6


@dataclass(frozen=True, slots=True)
class Tool:
    """One offered function as the reader sees it."""

    name: str
    description: str
    properties: Mapping[str, Mapping[str, Json]]
    required: tuple[str, ...]


def read_tools(tools: Sequence[Json]) -> tuple[Tool, ...]:
    """Return the offered functions; whatever has no name is left out."""
    found: list[Tool] = []
    for offered in tools:
        outer = mapping_of(offered)
        function = mapping_of(outer.get("function")) or outer
        parameters = mapping_of(function.get("parameters"))
        properties = mapping_of(parameters.get("properties"))
        required = parameters.get("required")
        names = required if isinstance(required, Sequence) and not isinstance(required, str) else ()
        if text_of(function.get("name")):
            found.append(
                Tool(
                    text_of(function.get("name")),
                    text_of(function.get("description")),
                    {key: mapping_of(value) for key, value in properties.items()},
                    tuple(text_of(name) for name in names),
                )
            )
    return tuple(found)


def choices(schema: Mapping[str, Json]) -> tuple[str, ...]:
    """Return the texts that an enum or a const offers."""
    offered = schema.get("enum")
    if isinstance(offered, Sequence) and not isinstance(offered, str):
        return tuple(text for text in map(text_of, offered) if text)
    return (text_of(schema["const"]),) if text_of(schema.get("const")) else ()


@lru_cache(maxsize=1024)
def friendly_names(description: str) -> Mapping[str, str]:
    """Return the names that a property's description gives ids ("id: name; id: name")."""
    return {key: name.strip(" .") for key, name in _NAMED.findall(description)}


def choose_tool(request: str, tools: Sequence[Tool]) -> Tool | None:
    """Return the tool that shares most words with the request, or None when none shares any.

    A word counts less the more tools have it, twice in a tool's name, and words of related
    meaning ("show" and stream) a little. Ties go to the shorter description, then the name.
    """
    vocabularies = [_vocabulary(tool) for tool in tools]
    spread: dict[str, int] = {}
    for vocabulary in vocabularies:
        for word in vocabulary:
            spread[word] = spread.get(word, 0) + 1
    asked = content_stems(request)
    scored = [
        (_fit(asked, vocabulary, spread), -len(tool.description), tool)
        for tool, vocabulary in zip(tools, vocabularies, strict=True)
    ]
    best = max(scored, key=lambda item: item[:2], default=None)
    if best is None or best[0] <= 0:
        return tools[0] if len(tools) == 1 else None
    return best[2]


def _vocabulary(tool: Tool) -> Mapping[str, float]:
    said = [tool.description, *(text_of(p.get("description")) for p in tool.properties.values())]
    weights = dict.fromkeys(content_stems(" ".join(said)), 1.0)
    for key in tool.properties:
        for word in content_stems(key):
            weights.setdefault(word, 1.0)
    for schema in tool.properties.values():
        for word in content_stems(" ".join(choices(schema))):
            weights.setdefault(word, 0.5)
    weights.update(dict.fromkeys((stem(word) for word in tokens(tool.name)), _NAME_WEIGHT))
    return weights


def _fit(asked: Sequence[str], vocabulary: Mapping[str, float], spread: Mapping[str, int]) -> float:
    total = 0.0
    for word in dict.fromkeys(asked):
        if word in vocabulary:
            total += vocabulary[word] / spread[word] ** 2
            continue
        related = [w for w in _ALIASES.get(word, frozenset()) if w in vocabulary]
        total += max((_ALIAS_WEIGHT * vocabulary[w] / spread[w] for w in related), default=0.0)
    return total


def choose_option(request: str, schema: Mapping[str, Json]) -> str | None:
    """Return the offered id or word that the request names best, or None when it names none.

    Friendly names are compared where the description gives them, otherwise the id itself.
    """
    names = friendly_names(text_of(schema.get("description")))
    offered = choices(schema)
    asked = set(content_stems(request)) | set(tokens(request))
    labels = {option: names.get(option, option) for option in offered}
    words = {option: _label_words(label) for option, label in labels.items()}
    scored = [(_overlap(words[o], asked, words), labels[o], o) for o in offered]
    best = max((score for score, _, _ in scored), default=0.0)
    if best <= 0:
        return None
    return min((label, option) for score, label, option in scored if score == best)[1]


def _label_words(label: str) -> frozenset[str]:
    # A label made of stop words alone ("on", "off", "all") is compared as it stands.
    return frozenset(content_stems(label) or tokens(label))


def _overlap(words: frozenset[str], asked: set[str], others: Mapping[str, frozenset[str]]) -> float:
    shared = words & asked
    rarity = sum(1 / sum(word in other for other in others.values()) for word in sorted(shared))
    return rarity + 0.5 * len(shared) / max(1, len(words)) if shared else 0.0


def choose_target(request: str, tool: Tool) -> str | None:
    """Return the sole offered target, or the one that the request names best, or None."""
    schema = tool.properties.get(TARGET, {})
    offered = choices(schema)
    return offered[0] if len(offered) == 1 else choose_option(request, schema)
