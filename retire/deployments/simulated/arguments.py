"""Filling the parameters of a chosen tool from the request, then from the guiding text."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

from retire.deployments.simulated.choosing import (
    TARGET,
    Tool,
    choices,
    choose_option,
    friendly_names,
)
from retire.deployments.simulated.quantities import (
    NUMBER,
    QUANTITY,
    Quantity,
    decimal_of,
    dimension_of,
    quantity_of,
)
from retire.deployments.simulated.snapshots import text_of
from retire.deployments.simulated.splitting import split_text
from retire.deployments.simulated.wording import content_stems, normalise, tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.domain.digests import Json

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
