"""Values as contracts and proposals write them: identifiers, instants, exact decimals."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator

if TYPE_CHECKING:
    from collections.abc import Sequence

_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*\.[a-z0-9][a-z0-9_]*\Z")
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\Z")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")


def _check_identifier(value: str) -> str:
    if not _IDENTIFIER.match(value):
        raise ValueError(
            f"{value!r} is not a literal identifier such as lock.front_door "
            "(ASCII a-z, 0-9, _ and one dot; no pattern, no list)"
        )
    return value


def _check_name(value: str) -> str:
    if not _NAME.match(value):
        raise ValueError(f"{value!r} is not a name (ASCII a-z, 0-9 and _)")
    return value


def instant(text: str) -> datetime:
    """Read a UTC instant written ``YYYY-MM-DDTHH:MM:SSZ``.

    Raises:
        ValueError: Any other form; other offsets and fractions are not used in these files.
    """
    if not _INSTANT.match(text):
        raise ValueError(f"{text!r} is not an instant of the form 2026-03-02T18:30:00Z")
    return datetime.fromisoformat(text)


def _check_instant(value: str) -> str:
    instant(value)
    return value


def decimal_text(value: str) -> str:
    """Return the canonical form of a decimal number: no exponent, no trailing zeros, no ``-0``.

    Raises:
        ValueError: The text is not a plain decimal number.
    """
    if not _DECIMAL.match(value):
        raise ValueError(f"{value!r} is not a plain decimal number")
    return canonical_decimal(Decimal(value))


def canonical_decimal(value: Decimal) -> str:
    """Return the canonical text of a finite decimal: 21, 21.0 and 2.1e1 all give ``21``."""
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


Identifier: TypeAlias = Annotated[str, AfterValidator(_check_identifier)]
"""A literal registry identity, byte for byte; never a pattern, list, area or group."""
Name: TypeAlias = Annotated[str, AfterValidator(_check_name)]
Instant: TypeAlias = Annotated[str, AfterValidator(_check_instant)]
Scalar: TypeAlias = bool | int | Decimal | str
"""A parameter's value as a file or a proposal gives it."""


def same_value(left: Scalar, right: Scalar) -> bool:
    """Whether two parameter values are equal: 21 and 2.1e1 are, 21 and "21" are not."""
    return canonical_scalar(left) == canonical_scalar(right)


def canonical_scalar(value: Scalar) -> str | bool:
    """Return text and booleans as they are, numbers as canonical decimal text with a mark.

    The mark ``#`` keeps the number 21 apart from the text "21".
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return "'" + value
    return "#" + canonical_decimal(Decimal(value))


def unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; a hook for readers of what the sink relies on.

    Raises:
        ValueError: A key stands twice. Readers disagree about which of the two counts (RFC 8259,
            section 4), so none may.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return result
