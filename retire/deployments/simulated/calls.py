"""What is called: the tool and target that a request means, its arguments, the written answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from retire.deployments.simulated.quantities import (
    NUMBER,
    QUANTITY,
    Quantity,
    decimal_of,
    dimension_of,
    quantity_of,
)
from retire.deployments.simulated.snapshots import mapping_of, text_of
from retire.deployments.simulated.wording import content_stems, normalise, split_text, stem, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

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


Value: TypeAlias = "str | bool | Fraction"
Schema: TypeAlias = "Mapping[str, Json]"

_QUANTITY: Final = re.compile(rf"(?<![\w.:/-]){QUANTITY}(?![\w:])")
_PERIOD: Final = re.compile(r"\b(?:a|an|last|past|this) (?P<unit>minute|hour|day|week)\b")
_QUOTED: Final = re.compile(r"[\"\u201c]([^\"\u201c\u201d]{1,200})[\"\u201d]")
_ADDRESS: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
_BOUND: Final = re.compile(
    r"\b(?:between|at most|at least|no more than|no less than|up to|maximum|minimum|never|above"
    r"|below|over|under|exceed\w*|from \S+ to|ranges?|limit\w*|leave (?:it )?out|omit\w*|unless"
    r"|only if|older)\b"
    rf"|{NUMBER} ?(?:to|-|\u2013) ?{NUMBER}"
)
_FORBIDDING: Final = re.compile(r"\b(?:never|do not|must not|may not|without|instead of)\b")
_UNIT_WORDS: Final = re.compile(r"[a-z%]+")
_NEGATIVE: Final = re.compile(r"\b(?:no|without|not|off|mute[d]?|disable[d]?)\b(?: \w+)?$")


def is_number(schema: Schema) -> bool:
    """Say whether a property takes a number."""
    return schema.get("type") in {"number", "integer"}


def bound_of(schema: Schema, name: str) -> Fraction | None:
    """Return a numeric keyword of a schema ("minimum", "maximum", "default"), or None."""
    return decimal_of(text_of(schema.get(name)))


def requested(request: str, tool: Tool, target: str) -> dict[str, Value]:
    """Return the values that the request itself states, by property."""
    target_schema = tool.properties.get(TARGET, {})
    label = friendly_names(text_of(target_schema.get("description"))).get(target, target)
    spoken = _without_digits_of(normalise(request), label)
    values: dict[str, Value] = {}
    taken: set[int] = set()
    for name, schema in tool.properties.items():
        if name == TARGET:
            continue
        found: Value | None
        if is_number(schema):
            found = _number_for(name, schema, spoken, taken, required=name in tool.required)
        else:
            found = _word_for(name, schema, request, spoken)
        if found is not None:
            values[name] = found
    return values


def _without_digits_of(text: str, label: str) -> str:
    for word in tokens(label):
        if word[:1].isdigit():
            text = re.sub(rf"(?<![\w.]){re.escape(word)}(?![\w.])", "#", text, count=1)
    return text


def _property_words(name: str, schema: Schema) -> frozenset[str]:
    return frozenset(content_stems(f"{name} {text_of(schema.get('description'))}"))


def unit_of(name: str, schema: Schema) -> str:
    """Return the unit that a property's name ("range_days"), unit or description tells, if any."""
    stated = text_of(schema.get("unit")) or text_of(schema.get("x-unit"))
    words = [stated.lower(), *reversed(tokens(name))]
    words += _UNIT_WORDS.findall(text_of(schema.get("description")).lower().replace("\u00b0", " "))
    # A single letter is trusted as a unit only where it is an unlikely word.
    trusted = (w for w in words if dimension_of(w) and (len(w) > 1 or w in {"c", "f", "w", "%"}))
    return next(trusted, "")


def _number_for(
    name: str, schema: Schema, text: str, taken: set[int], *, required: bool
) -> Fraction | None:
    """Return the number of a text that fits a property best: by unit, by word, or alone."""
    unit, words = unit_of(name, schema), _property_words(name, schema)
    best: tuple[int, int, Fraction] | None = None
    for start, quantity, before, after in _quantities(text):
        value = quantity.into(unit) if unit else quantity.number
        if start in taken or value is None:
            continue
        same_unit = bool(
            unit and quantity.unit and dimension_of(quantity.unit) == dimension_of(unit)
        )
        near = set(content_stems(before)[-3:]) | set(content_stems(after)[:2])
        fit = 2 * same_unit + bool(near & words)
        if (fit or (required and not (quantity.unit and not unit))) and (not best or fit > best[0]):
            best = (fit, start, value)
    if best is None:
        return None
    taken.add(best[1])
    return best[2]


def _quantities(text: str) -> list[tuple[int, Quantity, str, str]]:
    found: list[tuple[int, Quantity, str, str]] = []
    for match in _QUANTITY.finditer(text):
        quantity = quantity_of(match[0])
        if quantity is not None:
            found.append((match.start(), quantity, text[: match.start()], text[match.end() :]))
    for match in _PERIOD.finditer(text):
        one = Quantity(Fraction(1), match["unit"])
        found.append((match.start(), one, text[: match.start()], text[match.end() :]))
    return found


def _word_for(name: str, schema: Schema, request: str, spoken: str) -> Value | None:
    if schema.get("type") == "boolean":
        return _flag_for(name, spoken)
    if choices(schema):
        return choose_option(request, schema)
    address, quoted = _ADDRESS.search(request), _QUOTED.search(request)
    if address:
        return address[0]
    return quoted[1] if quoted else None


def _flag_for(name: str, spoken: str) -> bool | None:
    words = set(content_stems(name.replace("include_", "").replace("with_", "")))
    for word in tokens(spoken):
        if words & set(content_stems(word)):
            before = spoken[: spoken.index(word)].rstrip()
            return _NEGATIVE.search(before) is None
    return None


def stated(guidance: str, name: str, schema: Schema) -> Value | None:
    """Return the value that a sentence of the guidance gives a property, or None.

    The sentence must name the property (its name as written, or two of its words) and state one
    value; a sentence that only bounds the value states none.
    """
    for sentence in split_text(guidance):
        spoken = normalise(sentence.text)
        place = speaks_of(spoken, name, schema)
        if place < 0 or (_BOUND if is_number(schema) else _FORBIDDING).search(spoken):
            continue
        value = _stated_value(spoken[place:], spoken, name, schema)
        if value is not None:
            return value
    return None


def speaks_of(spoken: str, name: str, schema: Schema) -> int:
    """Return where a lower-case sentence names a property, or -1."""
    for form in (name.lower(), name.lower().replace("_", " ")):
        # A property called "minutes" is named by `minutes`, not by every duration.
        mark = '"' if dimension_of(form) else ""
        match = re.search(rf"(?<!\w){mark}{re.escape(form)}{mark}(?!\w)", spoken)
        if match:
            return match.start()
    words = _property_words(name, schema)
    shared = len(words & set(content_stems(spoken)))
    return 0 if shared >= 2 and 2 * shared >= len(words) else -1


def _stated_value(rest: str, spoken: str, name: str, schema: Schema) -> Value | None:
    if is_number(schema):
        found = _quantities(rest) or _quantities(spoken)
        unit = unit_of(name, schema)
        fitting = [
            q
            for _, q, _, _ in found
            if not unit or dimension_of(q.unit) in {"", dimension_of(unit)}
        ]
        values = [q.into(unit) if unit else q.number for q in fitting[:1]]
        return values[0] if values and within(values[0], schema) else None
    if schema.get("type") == "boolean":
        word = re.search(r"\b(true|false|on|off|yes|no)\b", rest)
        return word[1] in {"true", "on", "yes"} if word else None
    if choices(schema):
        said = set(tokens(rest))
        named = [option for option in choices(schema) if set(tokens(option)) <= said]
        return named[0] if len(named) == 1 else None
    quoted = [text for text in _QUOTED.findall(rest) if text != name.lower()]
    return quoted[0] if quoted else None


def within(value: Fraction | None, schema: Schema) -> bool:
    """Say whether a number lies in a schema's bounds; missing bounds are open."""
    if value is None:
        return False
    low, high = bound_of(schema, "minimum"), bound_of(schema, "maximum")
    return (low is None or value >= low) and (high is None or value <= high)


def default_of(schema: Schema) -> Value | None:
    """Return the schema's default, or None."""
    default = schema.get("default")
    if isinstance(default, bool):
        return default
    if is_number(schema):
        return decimal_of(text_of(default))
    return text_of(default) or None


_DECIMALS: Final = 6
BREAKAGES: Final = ("fence", "comma", "prose", "cut", "quotes")
"""The ways in which an answer can fail to be one JSON object."""


def proposal(tool: str, arguments: Mapping[str, Value]) -> str:
    """Return a tool call as one JSON object; numbers are written exactly, without exponent."""
    pairs = ", ".join(f"{_text(key)}: {_value(value)}" for key, value in arguments.items())
    return f'{{"tool": {_text(tool)}, "arguments": {{{pairs}}}}}'


def refusal(reason: str) -> str:
    """Return a refusal as one JSON object."""
    return f'{{"refusal": {_text(reason)}}}'


def broken(answer: str, way: int) -> str:
    """Return an answer that a strict parser refuses, in one of the ways of BREAKAGES."""
    kind = BREAKAGES[way % len(BREAKAGES)]
    if kind == "fence":
        return f"```json\n{answer}\n```"
    if kind == "comma":
        return f"{answer[:-1]},}}"
    if kind == "prose":
        return f"Sure, here is the call: {answer}"
    if kind == "cut":
        return answer[: max(1, len(answer) * 2 // 3)]
    return answer.replace('"', "'")


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def _value(value: Value) -> str:
    return _decimal(value) if isinstance(value, Fraction) else json.dumps(value)


def _decimal(number: Fraction) -> str:
    """Write a number as a JSON decimal; one that does not end is rounded to six places."""
    scaled = round(number * 10**_DECIMALS)
    sign, digits = ("-" if scaled < 0 else ""), str(abs(scaled)).rjust(_DECIMALS + 1, "0")
    text = f"{digits[:-_DECIMALS]}.{digits[-_DECIMALS:]}".rstrip("0").rstrip(".")
    return sign + text
