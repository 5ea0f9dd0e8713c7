"""JSON from a server, with every number as it was written. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypeAlias

EXCERPT_CHARACTERS = 200
MOST_LEVELS = 64
"""Deepest nesting read; a completion has about eight levels."""


class Unreadable(Exception):
    """The bytes hold no completed turn; the message says what they hold instead."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is no plain integer, as it was written; no text, and never a float."""

    written: str

    def __repr__(self) -> str:
        return self.written


Value: TypeAlias = "str | int | bool | Number | list[Value] | dict[str, Value] | None"


def written(value: Value) -> str:
    """Write a decoded value back as JSON, every number as it came."""
    if isinstance(value, Number):
        return value.written
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)}: {written(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    return json.dumps(value)


def read_object(data: bytes) -> tuple[dict[str, Value], str]:
    """Return the JSON object, and what is wrong with it although it can be read.

    Raises:
        Unreadable: No JSON, no object, or nested too deeply.
    """
    faults: list[str] = []
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        faults.append(f"not UTF-8 at byte {error.start}")
        text = data.decode("utf-8", "replace")
    try:
        value = _decoded(text.removeprefix("\ufeff"), faults)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"the answer is no JSON: {excerpt(text)!r}") from error
    if not isinstance(value, dict):
        raise Unreadable(f"the answer is no JSON object: {excerpt(text)!r}")
    if _deeper_than(MOST_LEVELS, value):
        raise Unreadable("the answer is nested too deeply")
    try:
        # A lone surrogate is no text: neither the store nor a digest could take it.
        json.dumps({**value, "usage": None}, ensure_ascii=False, default=repr).encode("utf-8")
    except UnicodeEncodeError:
        faults.append("not Unicode text")
    return value, faults[0] if faults else ""


def _decoded(text: str, faults: list[str]) -> Value:
    def unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
        value = dict(pairs)
        if len(value) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in value if names.count(name) > 1)
            faults.append(f"the key {twice[:EXCERPT_CHARACTERS]!r} stands twice")
        return value

    value: Value = json.loads(
        text,
        parse_int=_integer,
        parse_float=Number,
        parse_constant=Number,
        object_pairs_hook=unique,
    )
    return value


def _integer(text: str) -> int | Number:
    return int(text) if len(text) < 16 and text != "-0" else Number(text)


def _deeper_than(levels: int, value: Value) -> bool:
    layer: list[Value] = [value]
    for _ in range(levels):
        layer = [
            item
            for outer in layer
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not layer:
            return False
    return True


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    return clean(" ".join(text.split()))[:EXCERPT_CHARACTERS]


def clean(text: str) -> str:
    """Return a text without lone surrogates, which no store and no digest takes."""
    return text.encode("utf-8", "replace").decode("utf-8")
