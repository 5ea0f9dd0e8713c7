"""The stand-in camera as a server: a stream, a still, and a log of who opened what, read only."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from hardware.camera.pictures import PAGE, picture, placeholder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_REQUEST_SECONDS = 5.0
_MAX_REQUEST = 16_384
_SLOW_FACTOR = 20
_REPEATS = 8
_KEPT_SESSIONS = 1000
_GLANCE = 0.1
"""Seconds between two looks at the mode."""


class Mode(StrEnum):
    """How the device behaves."""

    LIVE = "live"
    UNPLUGGED = "unplugged"
    """Open streams break off and nothing answers."""
    FROZEN = "frozen"
    """The stream stays open and no picture comes any more."""
    SLOWED = "slowed"
    REPEATED = "repeated"
    """Each picture comes many times."""
    STUCK = "stuck"
    """One and the same picture, at the usual pace."""
    TRUNCATED = "truncated"
    """Each picture is cut behind its header, with a length that fits the cut."""
    HALF = "half"
    """Half a picture, then the connection ends."""
    PLACEHOLDER = "placeholder"
    HTML = "html"
    """A page in place of each picture, under the same content type."""


class Boundary(StrEnum):
    """How the boundary is written."""

    PLAIN = "plain"
    DASHES = "dashes"
    """Announced with its dashes, and written with those alone."""
    QUOTED = "quoted"
    NO_FIRST = "no-first"
    """Without a delimiter before the first part."""


@dataclass(frozen=True, slots=True)
class Manner:
    """What the device is started with. ``per_second`` is pictures."""

    per_second: float = 10.0
    boundary: Boundary = Boundary.PLAIN
    lengths: bool = True


@dataclass(slots=True)
class Session:
    """One line of the log."""

    seq: int
    path: str
    peer: str
    opened: str
    closed: str | None = None
    frames: int = 0


class Device:
    """One camera.

    Args:
        manner: Pace and writing.
        mode: Asked before each picture, so that a fault can be switched on in a session.
    """

    def __init__(self, manner: Manner, mode: Callable[[], Mode]) -> None:
        self._manner = manner
        self._mode = mode
        self._number = 0
        self._count = 0
        self.sessions: list[Session] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one request of a connection."""
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head, writer)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass
        finally:
            writer.transport.abort() if self._unplugged else writer.close()

    @property
    def _unplugged(self) -> bool:
        return self._mode() is Mode.UNPLUGGED

    async def _answer(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        if self._unplugged or len(head) > _MAX_REQUEST:
            return
        method, path, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(), "", ""]
        if method != "GET":
            await _reply(writer, "405 Method Not Allowed", "text/plain", b"GET only\n")
        elif path == "/stream":
            await self._stream(writer)
        elif path == "/still":
            session = self._open(path, writer)
            session.frames = 1
            await _reply(writer, "200 OK", "image/jpeg", self._still())
            session.closed = _now()
        elif path == "/sessions":
            log = {"sessions": [asdict(session) for session in self.sessions]}
            await _reply(writer, "200 OK", "application/json", json.dumps(log).encode())
        else:
            await _reply(writer, "404 Not Found", "text/plain", b"/stream /still /sessions\n")

    def _open(self, path: str, writer: asyncio.StreamWriter) -> Session:
        self._count += 1
        peer = writer.get_extra_info("peername")
        session = Session(self._count, path, f"{peer[0]}:{peer[1]}", _now())
        self.sessions = [*self.sessions[-_KEPT_SESSIONS:], session]
        return session

    def _still(self) -> bytes:
        mode = self._mode()
        if mode not in {Mode.FROZEN, Mode.STUCK}:
            self._number += 1
        return self._body(mode)

    def _body(self, mode: Mode) -> bytes:
        whole = picture(self._number)
        match mode:
            case Mode.HTML:
                return PAGE
            case Mode.PLACEHOLDER:
                return placeholder()
            case Mode.TRUNCATED:
                return whole[: len(whole) * 2 // 3]
            case _:
                return whole

    async def _stream(self, writer: asyncio.StreamWriter) -> None:
        session = self._open("/stream", writer)
        announced = {Boundary.DASHES: "--frame", Boundary.QUOTED: '"frame"'}.get(
            self._manner.boundary, "frame"
        )
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary="
            + announced.encode()
            + b"\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        try:
            if self._manner.boundary is not Boundary.NO_FIRST:
                writer.write(b"--frame\r\n")
            async for body, cut in self._bodies():
                writer.write(self._head(body))
                writer.write(body[:cut])
                if cut < len(body):
                    return
                writer.write(b"\r\n--frame\r\n")
                await writer.drain()
                session.frames += 1
        finally:
            session.closed = _now()

    def _head(self, body: bytes) -> bytes:
        length = f"Content-Length: {len(body)}\r\n" if self._manner.lengths else ""
        return f"Content-Type: image/jpeg\r\n{length}\r\n".encode()

    async def _bodies(self) -> AsyncIterator[tuple[bytes, int]]:
        """Yield each picture and how much of it is sent; a smaller part is the last."""
        pause = 1 / self._manner.per_second
        while (mode := self._mode()) is not Mode.UNPLUGGED:
            if mode is not Mode.FROZEN:
                self._number += mode is not Mode.STUCK
                body = self._body(mode)
                for _ in range(_REPEATS if mode is Mode.REPEATED else 1):
                    yield body, len(body) // 2 if mode is Mode.HALF else len(body)
            await self._wait(pause * (_SLOW_FACTOR if mode is Mode.SLOWED else 1), mode)

    async def _wait(self, seconds: float, mode: Mode) -> None:
        """Wait for the next picture, or for another mode."""
        while seconds > 0 and self._mode() is mode:
            await asyncio.sleep(min(seconds, _GLANCE))
            seconds -= _GLANCE


async def _reply(writer: asyncio.StreamWriter, status: str, kind: str, body: bytes) -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    await writer.drain()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")  # noqa: TID251  # a device's clock
