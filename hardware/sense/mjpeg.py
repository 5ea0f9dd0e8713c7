"""An incremental reader of ``multipart/x-mixed-replace``: bytes in, parts out. Pure.

The grammar is that of RFC 2046, section 5.1.1, with what cameras do to it. Home Assistant's own
streams announce a boundary that has its dashes already; others leave out the first delimiter or
give no lengths. Each of these is read and recorded; nothing is guessed: no boundary is taken from
the first line, and a delimiter that only begins like ours is an error.

For equal bytes the reader gives equal events, wherever the stream was cut into reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from hardware.sense.jpeg import Walk, Walker
from hardware.sense.mjpeg_grammar import (
    Broken,
    Ended,
    Fault,
    Limits,
    Part,
    Variant,
    read_content_type,
    read_header,
)

if TYPE_CHECKING:
    from hardware.sense.mjpeg_grammar import Event

_LENGTH = re.compile(r"[0-9]{1,10}\Z")
_BLANK_LINES = 4
_BREAKS = 2
"""Line breaks accepted between the end of a body and its delimiter; one is right."""
_PADDING = 64
"""Blanks accepted behind a delimiter."""


class _Seen(Enum):
    MORE = auto()
    NO = auto()
    FOREIGN = auto()
    OURS = auto()
    LAST = auto()


class _State(Enum):
    START = auto()
    HEADER = auto()
    COUNTED = auto()
    """A body with an announced length."""
    WALKED = auto()
    """A body without one: its end is found by walking the picture."""
    OVER = auto()


class _Stop(Exception):
    """Carries a fault out of a step."""

    def __init__(self, fault: Fault, detail: str = "") -> None:
        super().__init__(fault)
        self.broken = Broken(fault, detail)


@dataclass(slots=True)
class _Body:
    headers: dict[str, str] = field(default_factory=dict)
    header_bytes: int = 0
    length: int = 0
    walker: Walker = field(default_factory=Walker)
    searched: int = -1
    """Where the search for the delimiter goes on; -1 before it has begun."""


class MultipartReader:
    """Reads one stream.

    Args:
        content_type: The value of the response's header.
        limits: Bounds on what is held in memory.

    Raises:
        ProtocolError: The content type announces no stream that can be read.
    """

    def __init__(self, content_type: str, limits: Limits | None = None) -> None:
        declared, quoted = read_content_type(content_type)
        self.variant = Variant(declared, quoted)
        self._limits = limits or Limits()
        usual = b"--" + declared.encode()
        # The longer one first: it may begin like the shorter one.
        self._delimiters = [usual, usual[2:]] if declared.startswith("--") else [usual]
        self._buffer = bytearray()
        self._state = _State.START
        self._blank = 0
        self._body = _Body()
        self._events: list[Event] = []

    def feed(self, data: bytes) -> list[Event]:
        """Take what arrived; returns the events that it completes."""
        if self._state is not _State.OVER:
            self._buffer += data
            self._run()
        return self._taken()

    def close(self) -> list[Event]:
        """Take the end of the stream; returns the last events."""
        if self._state is _State.OVER:
            return self._taken()
        if self._state is _State.COUNTED:
            self._close_counted()
        elif self._state is _State.WALKED:
            self._close_walked()
        elif self._state is _State.HEADER and (self._buffer or self._body.headers):
            self._events.append(Broken(Fault.TRUNCATED, "inside a header"))
        self._events.append(Ended(closed=False))
        self._finish()
        return self._taken()

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _finish(self) -> None:
        self._state = _State.OVER
        self._buffer.clear()

    def _run(self) -> None:
        steps = {
            _State.START: self._start,
            _State.HEADER: self._header_line,
            _State.COUNTED: self._counted,
            _State.WALKED: self._walked,
        }
        try:
            while (step := steps.get(self._state)) is not None and step():
                pass
        except _Stop as stop:
            self._events.append(stop.broken)
            self._finish()

    # -- before the first part ---------------------------------------------------------------

    def _start(self) -> bool:
        if self._skip_blank_line():
            return True
        if not self._buffer or self._buffer == b"\r":
            return False
        seen, end = self._delimiter_at(0)
        if seen is _Seen.MORE:
            return False
        if seen is _Seen.FOREIGN or (seen is _Seen.NO and self._buffer.startswith(b"--")):
            raise _Stop(Fault.FOREIGN_DELIMITER)
        if seen is _Seen.NO:
            self.variant.first_delimiter = False
            self._state = _State.HEADER
            return True
        self._next_part(seen, end)
        return True

    def _skip_blank_line(self) -> bool:
        for blank in (b"\r\n", b"\n"):
            if self._buffer.startswith(blank):
                self._blank += 1
                if self._blank > _BLANK_LINES:
                    raise _Stop(Fault.NO_DELIMITER)
                del self._buffer[: len(blank)]
                return True
        return False

    # -- headers -----------------------------------------------------------------------------

    def _header_line(self) -> bool:
        end = self._buffer.find(b"\n")
        if (end if end >= 0 else len(self._buffer)) > self._limits.header_line:
            raise _Stop(Fault.HEADER_TOO_LONG)
        if end < 0:
            return False
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self.variant.bare_line_feeds |= not line.endswith(b"\r\n")
        self._body.header_bytes += len(line)
        if self._body.header_bytes > self._limits.header:
            raise _Stop(Fault.HEADER_TOO_LONG)
        if line in {b"\r\n", b"\n"}:
            self._begin_body()
            return True
        header = read_header(line)
        if header is None:
            first = not self.variant.first_delimiter and not self._body.headers
            raise _Stop(Fault.NO_DELIMITER if first else Fault.BAD_HEADER)
        name, value = header
        if self._body.headers.get(name, value) != value:
            raise _Stop(Fault.BAD_HEADER, f"two values of {name}")
        self._body.headers[name] = value
        return True

    def _begin_body(self) -> None:
        length = self._body.headers.get("content-length")
        if length is None:
            self.variant.without_length += 1
            self._state = _State.WALKED
            return
        if not _LENGTH.match(length):
            raise _Stop(Fault.BAD_HEADER, "content-length is no number of bytes")
        if int(length) > self._limits.part:
            raise _Stop(Fault.PART_TOO_LARGE)
        self.variant.with_length += 1
        self._body.length = int(length)
        self._state = _State.COUNTED

    # -- bodies ------------------------------------------------------------------------------

    def _counted(self) -> bool:
        length = self._body.length
        if len(self._buffer) <= length:
            return False
        seen, end = self._delimiter_after(length)
        if seen is _Seen.MORE:
            return False
        if seen is _Seen.NO:
            raise _Stop(Fault.LENGTH_WRONG, f"{length} bytes were announced")
        if seen is _Seen.FOREIGN:
            raise _Stop(Fault.FOREIGN_DELIMITER)
        self._emit(length)
        self._next_part(seen, end)
        return True

    def _walked(self) -> bool:
        """Find the delimiter behind the picture; inside a picture none is looked for."""
        body = self._body
        if body.walker.advance(self._buffer) is Walk.MORE:
            self._check_size(len(self._buffer))
            return False
        end = body.walker.end
        self._check_size(end)
        if body.searched < 0:
            # Some leave the line break out.
            seen, line_end = self._delimiter_at(end)
            if seen is _Seen.MORE:
                return False
            if seen in {_Seen.OURS, _Seen.LAST}:
                self._take(seen, line_end, end)
                return True
            body.searched = end
        return self._search(end)

    def _search(self, end: int) -> bool:
        """Look for a line that is a delimiter, behind a picture that ended at ``end``."""
        body = self._body
        while (at := self._buffer.find(b"\n", body.searched)) >= 0:
            crlf = at > end and self._buffer[at - 1] == 0x0D
            self._check_trailing(at - crlf)
            seen, line_end = self._delimiter_at(at + 1)
            if seen is _Seen.MORE:
                body.searched = at
                return False
            if seen is not _Seen.NO:
                self._take(seen, line_end, at - crlf)
                return True
            body.searched = at + 1
        body.searched = len(self._buffer)
        self._check_trailing(body.searched - self._buffer.endswith(b"\r"))
        return False

    def _take(self, seen: _Seen, line_end: int, body_end: int) -> None:
        self._check_trailing(body_end)
        if seen is _Seen.FOREIGN:
            raise _Stop(Fault.FOREIGN_DELIMITER)
        self._emit(body_end)
        self._next_part(seen, line_end)

    def _check_size(self, size: int) -> None:
        if size > self._limits.part:
            raise _Stop(Fault.PART_TOO_LARGE)

    def _check_trailing(self, size: int) -> None:
        if size - self._body.walker.end > self._limits.trailing:
            raise _Stop(Fault.PART_TOO_LARGE)

    def _emit(self, length: int, note: str = "") -> None:
        body = bytes(self._buffer[:length])
        self._events.append(Part(dict(self._body.headers), body, note))

    def _next_part(self, seen: _Seen, end: int) -> None:
        del self._buffer[:end]
        self._body = _Body()
        self._state = _State.HEADER
        if seen is _Seen.LAST:
            self._events.append(Ended(closed=True))
            self._finish()

    def _close_counted(self) -> None:
        length = self._body.length
        if len(self._buffer) < length:
            detail = f"{len(self._buffer)} of {length} bytes"
            self._events.append(Broken(Fault.TRUNCATED, detail))
        else:
            self._emit(length, "the end of the stream in place of a delimiter")

    def _close_walked(self) -> None:
        if self._body.walker.state is Walk.DONE:
            self._emit(self._body.walker.end, "the end of the stream in place of a delimiter")
        else:
            self._events.append(Broken(Fault.TRUNCATED, f"{len(self._buffer)} bytes, no end"))

    # -- delimiters --------------------------------------------------------------------------

    def _delimiter_after(self, at: int) -> tuple[_Seen, int]:
        """Look for a delimiter behind a body of known length and at most two line breaks."""
        for _ in range(_BREAKS):
            if self._buffer.startswith(b"\r\n", at):
                at += 2
            elif self._buffer.startswith(b"\n", at):
                at += 1
        rest = bytes(self._buffer[at : at + 2])
        if rest in {b"", b"\r"}:
            return _Seen.MORE, at
        return self._delimiter_at(at)

    def _delimiter_at(self, at: int) -> tuple[_Seen, int]:
        """Say what stands at a place where a delimiter may stand, and where its line ends."""
        result = (_Seen.NO, at)
        for delimiter in self._delimiters:
            found = bytes(self._buffer[at : at + len(delimiter)])
            if found != delimiter:
                if delimiter.startswith(found):
                    return _Seen.MORE, at
                continue
            seen, end = self._line_end(at + len(delimiter))
            if seen is not _Seen.FOREIGN:
                if seen in {_Seen.OURS, _Seen.LAST}:
                    self._delimiters = [delimiter]
                    self.variant.delimiter = delimiter.decode()
                return seen, end
            result = (_Seen.FOREIGN, at)
        return result

    def _line_end(self, at: int) -> tuple[_Seen, int]:
        if self._buffer.startswith(b"--", at):
            return _Seen.LAST, at + 2
        if self._buffer[at : at + 2] == b"-":
            return _Seen.MORE, at
        start = at
        while at < len(self._buffer) and self._buffer[at] in b" \t" and at - start < _PADDING:
            at += 1
        rest = bytes(self._buffer[at : at + 2])
        if rest.startswith(b"\n"):
            return _Seen.OURS, at + 1
        if rest == b"\r\n":
            return _Seen.OURS, at + 2
        return (_Seen.MORE if b"\r\n".startswith(rest) else _Seen.FOREIGN), at
