"""What the reader finds in the messages: the request, the snapshot and the guiding text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from retire.deployments.simulated.snapshots import text_of

if TYPE_CHECKING:
    from retire.domain.digests import Json

SNAPSHOT_SCHEMA: Final = "retire.snapshot/v1"
_DECODER: Final = json.JSONDecoder(parse_float=str)
_REQUEST: Final = re.compile(r"(?im)^\s*(?:the )?(?:user )?request\s*:\s*")
_MOST_BRACES: Final = 64


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of the messages: ``guidance`` is all system text without the snapshot."""

    request: str
    guidance: str
    snapshot: Mapping[str, Json]


def read_prompt(messages: Sequence[Mapping[str, str]]) -> Prompt:
    """Find the snapshot wherever it stands, the request in the last user message, the guidance.

    A prompt without a snapshot gives an empty one; the reader then knows no facts.
    """
    snapshot: Mapping[str, Json] = {}
    guidance: list[str] = []
    request = ""
    for message in messages:
        before, found, after = _part(text_of(message.get("content")))
        snapshot = found or snapshot
        if message.get("role") == "user":
            request = _request_of(before, after, cut=bool(found))
        elif message.get("role") in {"system", "developer"}:
            guidance.append("\n".join(part for part in (before, after) if part.strip()))
    return Prompt(request, "\n\n".join(guidance), snapshot)


@lru_cache(maxsize=512)
def _part(content: str) -> tuple[str, Mapping[str, Json], str]:
    """Cut a text around the snapshot object that stands in it, if any."""
    marker = content.find(SNAPSHOT_SCHEMA)
    while marker >= 0:
        line = content.rfind("\n", 0, marker) + 1
        starts = [match.start() for match in re.finditer(r"\{", content[line:marker])]
        candidates = [line + offset for offset in starts[:_MOST_BRACES]]
        outer = content.rfind("\n{", 0, marker)
        candidates.extend([outer + 1] if outer >= 0 else [0] if content[:1] == "{" else [])
        for start in candidates:
            value, end = _decode(content, start)
            if isinstance(value, Mapping) and value.get("schema") == SNAPSHOT_SCHEMA:
                return content[:start], value, content[end:]
        marker = content.find(SNAPSHOT_SCHEMA, marker + 1)
    return content, {}, ""


def _decode(content: str, start: int) -> tuple[Json, int]:
    try:
        value, end = _DECODER.raw_decode(content, start)
    except (ValueError, RecursionError):
        return None, start
    return value, end


def _request_of(before: str, after: str, *, cut: bool) -> str:
    lines = before.rstrip().split("\n")
    if cut and len(lines) > 1 and lines[-1].rstrip(" `").endswith(":"):
        # The line that introduces the snapshot is no part of the request.
        lines.pop()
    text = "\n".join(lines).strip()
    said = _REQUEST.search(text) or _REQUEST.search(after)
    if said:
        return said.string[said.end() :].strip("` \n")
    return "\n".join(part for part in (text, after.strip("` \n")) if part)
