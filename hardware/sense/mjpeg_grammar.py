"""The written form of a picture stream: content type, headers, and what is said of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003  # in a dataclass field
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105  # a grammar rule, RFC 9110
_TYPE = re.compile(rf"\s*({_TOKEN}/{_TOKEN})\s*")
_PARAMETER = re.compile(rf';\s*({_TOKEN})\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]+)\s*')
_HEADER = re.compile(rf"({_TOKEN}):[ \t]*(.*?)[ \t]*\Z")
_MAX_BOUNDARY = 72
"""RFC 2046 allows 70 characters; two dashes may have been put in front."""


class ProtocolError(Exception):
    """The content type announces no stream that can be read."""


class Fault(StrEnum):
    """Why a stream cannot be followed any further."""

    NO_DELIMITER = "the stream begins with neither its delimiter nor a part's header"
    FOREIGN_DELIMITER = "a delimiter that is not the announced one"
    BAD_HEADER = "a part's header does not follow the format"
    HEADER_TOO_LONG = "a part's header is longer than allowed"
    PART_TOO_LARGE = "a part is larger than allowed"
    LENGTH_WRONG = "no delimiter where the announced length ends"
    TRUNCATED = "the stream ended inside a part"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in bytes; a stream that passes one is not followed any further."""

    part: int = 8_388_608
    header_line: int = 1024
    header: int = 8192
    trailing: int = 65_536
    """Between a picture's end marker and the delimiter, where the part has no length."""


@dataclass(frozen=True, slots=True)
class Part:
    """One whole part. Header names are in lower case. ``note`` says what was unusual."""

    headers: Mapping[str, str]
    body: bytes
    note: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """The stream cannot be followed any further; later bytes are not read."""

    fault: Fault
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The stream's end: ``closed`` by its last delimiter, or simply no more bytes."""

    closed: bool


Event: TypeAlias = Part | Broken | Ended


@dataclass(slots=True)
class Variant:
    """How the stream was written; recorded with what was observed."""

    declared: str
    quoted: bool = False
    delimiter: str = ""
    first_delimiter: bool = True
    bare_line_feeds: bool = False
    with_length: int = 0
    without_length: int = 0

    def words(self) -> str:
        """Return the variant in a few words."""
        dashes = "boundary announced with its dashes"
        found = [
            dashes if self.delimiter and self.delimiter == self.declared else "",
            "quoted boundary" if self.quoted else "",
            "" if self.first_delimiter else "no first delimiter",
            "bare line feeds" if self.bare_line_feeds else "",
            "parts without length" if self.without_length else "",
        ]
        return ", ".join(item for item in found if item) or "as the standard has it"


def read_content_type(value: str) -> tuple[str, bool]:
    """Return the announced boundary, and whether it was quoted.

    Raises:
        ProtocolError: Another type, no boundary, or one that cannot be used.
    """
    matched = _TYPE.match(value)
    if matched is None or matched[1].lower() != "multipart/x-mixed-replace":
        raise ProtocolError(f"the content type is no picture stream: {value[:100]!r}")
    found: list[str] = []
    position = matched.end()
    while position < len(value):
        parameter = _PARAMETER.match(value, position)
        if parameter is None:
            raise ProtocolError(f"the content type cannot be read: {value[:100]!r}")
        if parameter[1].lower() == "boundary":
            found.append(parameter[2])
        position = parameter.end()
    if len(found) != 1:
        raise ProtocolError(f"the content type has {len(found)} boundaries in place of one")
    quoted = found[0].startswith('"')
    boundary = re.sub(r"\\(.)", r"\1", found[0][1:-1]) if quoted else found[0]
    printable = boundary.isascii() and boundary.isprintable()
    if not printable or not boundary.strip() or len(boundary) > _MAX_BOUNDARY:
        raise ProtocolError("the boundary is empty, too long, or not printable ASCII")
    return boundary, quoted


def read_header(line: bytes | bytearray) -> tuple[str, str] | None:
    """Return the name in lower case and the value of a header line, or None where it is none."""
    matched = _HEADER.match(line.decode("latin-1").rstrip("\r\n"))
    return None if matched is None else (matched[1].lower(), matched[2])
