"""Reading what a user names on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import ValidationError

    from retire.deployments import Catalog
    from retire.matrix import Protocol


def read_input(path: Path) -> bytes:
    """Read a file the user named; raises InputError with advice."""
    from retire.bundle.loading import read_file

    return read_file(path)


def read_skill(path: Path) -> bytes:
    """Read a skill: a file, or the ``SKILL.md`` of a folder; raises InputError with advice."""
    return read_input(path / "SKILL.md" if path.is_dir() else path)


def printable(text: str) -> str:
    """Return text with control and direction characters shown as escapes."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def protocol_for(**values: object) -> Protocol:
    """Build a protocol from command-line values.

    Raises:
        InputError: A value is out of its range.
    """
    from pydantic import ValidationError

    from retire.matrix import Protocol

    try:
        return Protocol.model_validate({"schema": "retire.protocol/v1", **values})
    except ValidationError as error:
        raise InputError(
            reason_of(error), where=option_of(error), mend="See --help for what is possible"
        ) from error


_OPTIONS = {"margin_points": "--margin", "deployments": "--deployment"}


def option_of(error: ValidationError) -> str:
    """Return the option behind the first field that a protocol refuses; empty where none is."""
    place = error.errors(include_url=False)[0]["loc"]
    if not place:
        return ""
    return _OPTIONS.get(str(place[0]), f"--{place[0]}")


def reason_of(error: ValidationError) -> str:
    """Return why the first field was refused, with the value that was given, on one line."""
    first = error.errors(include_url=False)[0]
    reason = first["msg"].removeprefix("Value error, ")
    given = f" ({first['input']!r} was given)" if first["loc"] else ""
    return f"{reason[:1].lower()}{reason[1:]}{given}"


def check_deployments(protocol: Protocol, where: str, catalog: Catalog) -> None:
    """Check that every deployment of a protocol file is known.

    Raises:
        InputError: One is not; names the file, and suggests a close name.
    """
    for name in protocol.deployments:
        try:
            catalog.named(name)
        except InputError as error:
            raise InputError(error.what, where=where, mend=error.mend) from error


def many(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
