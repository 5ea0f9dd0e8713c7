"""Server-sent events, as far as streamed completions use them. Pure.

(WHATWG HTML, section 9.2.6: lines end with CR LF, LF or CR; ``data`` lines of one event are joined
by a line feed; an empty line ends an event; a line that begins with a colon is a comment.)
"""

from __future__ import annotations

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventReader:
    """Cuts the bytes of a stream into the data of its events, in whatever pieces they come."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Take the next bytes; return the data of every event that they completed."""
        text = self._rest + piece
        # A CR at the end may be half of a CR LF.
        held = text[-1:] if text.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(text[: len(text) - len(held)])
        self._rest = rest + held
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: bytes) -> bytes | None:
        if not line:
            event, self._data = b"\n".join(self._data), []
            return event or None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return None
