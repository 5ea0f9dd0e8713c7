"""The observer's end of a recipient's tap: which streams arrived, and their bytes."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from observer.port import SensorError

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 5.0
_MAX_HEADER = 4_194_304
_MAX_BYTES = 67_108_864


@dataclass(frozen=True, slots=True)
class TappedStream:
    """One stream that a recipient received; times on the recipient's clock, in seconds.

    Attributes:
        number: Counted from 1 by the recipient.
        recipient: The name of the door it came through.
        attempt: For which attempt the sender said it was.
        granted: Seconds from its opening until the permission ended, as the sender said.
        closed: None while it is open.
        ended: The recipient's words for how it ended.
        satisfied: Whether the recipient ended it, having what it wanted.
    """

    number: int
    recipient: str
    attempt: str
    content_type: str
    granted: float | None
    opened: float
    closed: float | None
    ended: str
    satisfied: bool


def _stream(value: dict[str, Any]) -> TappedStream:
    granted, closed = value["granted"], value["closed"]
    return TappedStream(
        int(value["number"]),
        str(value["recipient"]),
        str(value["attempt"]),
        str(value["content_type"]),
        None if granted is None else float(granted),
        float(value["opened"]),
        None if closed is None else float(closed),
        str(value["ended"]),
        value["satisfied"] is True,
    )


class Tap:
    """Reads a recipient; one connection per question."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def streams(self) -> list[TappedStream]:
        """Return every stream that arrived; raises SensorError where that cannot be read."""
        header, _ = self._ask({})
        try:
            return [_stream(item) for item in header["sessions"]]
        except (KeyError, TypeError, ValueError) as error:
            raise SensorError("the recipient's list of streams cannot be read") from error

    def chunks(self, number: int) -> list[tuple[float, bytes]]:
        """Return the reads of one stream with their arrival; raises SensorError."""
        header, payload = self._ask({"session": number})
        if "error" in header:
            raise SensorError(str(header["error"]))
        try:
            lengths = [(float(at), int(length)) for at, length in header["chunks"]]
        except (KeyError, TypeError, ValueError) as error:
            raise SensorError("the recipient's reads cannot be read") from error
        if sum(length for _, length in lengths) != len(payload):
            raise SensorError("the recipient gave fewer bytes than it announced")
        found, position = [], 0
        for at, length in lengths:
            found.append((at, payload[position : position + length]))
            position += length
        return found

    def _ask(self, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_SECONDS)
                connection.connect(str(self._path))
                connection.sendall(json.dumps(question).encode() + b"\n")
                with connection.makefile("rb") as answer:
                    header = json.loads(answer.readline(_MAX_HEADER))
                    payload = answer.read(_MAX_BYTES)
        except (OSError, ValueError) as error:
            raise SensorError(f"the recipient cannot be read: {type(error).__name__}") from error
        if not isinstance(header, dict):
            raise SensorError("the recipient's answer is no object")
        return header, payload
