"""Reading what a user names on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.domain.errors import InputError
from retire.matrix import Protocol

if TYPE_CHECKING:
    from pathlib import Path


def read_input(path: Path) -> bytes:
    """Read a file the user named; raises InputError with advice."""
    place = path / "SKILL.md" if path.is_dir() else path
    try:
        return place.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(place), mend="Check the path"
        ) from error


def printable(text: str) -> str:
    """Return text with control and direction characters shown as escapes."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def protocol_for(**values: object) -> Protocol:
    """Build a protocol from command-line values.

    Raises:
        InputError: A value is out of its range.
    """
    try:
        return Protocol.model_validate({"schema": "retire.protocol/v1", **values})
    except ValueError as error:
        raise InputError(
            f"these options make no protocol: {first_line(error)}", mend="See --help for ranges"
        ) from error


def first_line(error: ValueError) -> str:
    """Return the informative part of a pydantic error on one line."""
    lines = str(error).splitlines()
    return " ".join(part.strip() for part in lines[1:3]) if len(lines) > 1 else lines[0]
