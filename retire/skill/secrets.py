"""Codes and passwords written into a skill: such a skill is held until they are gone. Pure.

A code must come from the device's own secret store after authorisation. In a skill every reader
of the text has it, and so has every model that is shown the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORDS = r"(?:code|pin|password|passcode|passphrase|secret|token|api[ _-]?key|key ?code)"
_DIGITS = re.compile(
    rf"\b{_WORDS}s?\b(?:\s+(?:is|was|for|to|of|the|a|an|door|lock|gate|alarm|panel|keypad)\b)*"
    r"\s*(?:is|=|:|,)?\s*[`\"'(]?([0-9]{4,10})(?![0-9.]*\s*(?:[A-Za-z%]))\b",
    re.IGNORECASE,
)
_LONG = re.compile(
    rf"\b{_WORDS}s?\b\s*(?:is|to|=|:)?\s*[`\"'(]?((?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{{16,}})",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SecretLike:
    """A place that looks like a secret: the line, and how long it is. Never the secret itself."""

    line: int
    length: int


def find_secrets(text: str) -> tuple[SecretLike, ...]:
    """Return every place of a text that names a code, a password or a key and gives its value."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern in (_DIGITS, _LONG):
            found += [SecretLike(number, len(hit.group(1))) for hit in pattern.finditer(line)]
    return tuple(found)
