"""Writing the raw answer text of a simulated deployment."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.deployments.simulated.arguments import Value

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
