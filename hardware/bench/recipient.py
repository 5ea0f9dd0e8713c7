"""The recipient of a bench: a display without a screen, and the tap at which the observer reads.

Each name has a port of its own, so who received a stream does not rest on what the sender says.
Bytes are kept in memory with the time of their arrival, for the newest sessions only, and are
never written to disk. A session ends when the display has the pictures it wants.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError

from hardware.bench.messages import Answer, Header, Question, Stream, TappedStream
from hardware.sense.mjpeg import MultipartReader
from hardware.sense.mjpeg_grammar import Part, ProtocolError
from hardware.strict import fault_of
from hardware.wire import listening

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_HEADER_SECONDS = 10.0
_SESSION_SECONDS = 20.0
_SESSION_BYTES = 33_554_432
_KEPT = 8
"""Sessions whose bytes are held; the observer reads each as soon as it has ended."""
_READ = 65_536
_PIECE = 256
"""Bytes looked at together; fewer than any picture has."""


@dataclass(slots=True)
class Received(Stream):
    """One stream as it arrived; times on this process's monotonic clock, in seconds."""

    chunks: list[tuple[float, bytes]] | None = field(default_factory=list)

    def described(self) -> TappedStream:
        """Return everything but the bytes."""
        chunks = self.chunks
        lengths = None if chunks is None else tuple((at, len(data)) for at, data in chunks)
        return TappedStream(**{**asdict(self), "chunks": lengths})


class Recipient:
    """Takes streams and shows them at the tap.

    Args:
        frames: How many parts the display wants before it ends a session.
    """

    def __init__(self, frames: int) -> None:
        self._frames = frames
        self.sessions: list[Received] = []

    async def take(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Take one stream for the recipient with this name."""
        with suppress(OSError, ValidationError):
            try:
                header = Header.model_validate_json(await _line(reader))
                await self._receive(self._open(name, header), reader)
            finally:
                writer.close()

    def _open(self, name: str, header: Header) -> Received:
        session = Received(
            len(self.sessions) + 1,
            name,
            header.attempt,
            header.content_type,
            header.granted,
            opened=time.monotonic(),
        )
        self.sessions.append(session)
        for old in self.sessions[:-_KEPT]:
            old.chunks = None
        return session

    async def _receive(self, session: Received, reader: asyncio.StreamReader) -> None:
        counter = _PartCounter(session.content_type)
        size = 0
        try:
            async with asyncio.timeout(_SESSION_SECONDS):
                while data := await reader.read(_READ):
                    size += len(data)
                    if session.chunks is None or size > _SESSION_BYTES:
                        session.ended = "more bytes than a session may have"
                        return
                    shown = counter.take(data, self._frames)
                    session.chunks.append((time.monotonic(), shown))
                    if counter.parts >= self._frames:
                        session.ended = "the display has its pictures"
                        session.satisfied = True
                        return
                session.ended = "the sender ended it"
        except TimeoutError:
            session.ended = "the display's own time was over"
        except ConnectionError:
            session.ended = "the connection broke off"
        finally:
            session.closed = time.monotonic()

    async def tap(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one question of the observer: which sessions there are, or one with its bytes."""
        with suppress(OSError):
            try:
                answer, payload = self._answer(await _line(reader))
                writer.write(answer.model_dump_json().encode() + b"\n")
                for data in payload:
                    writer.write(data)
                    await writer.drain()
            finally:
                writer.close()

    def _answer(self, line: bytes) -> tuple[Answer, list[bytes]]:
        try:
            number = Question.model_validate_json(line).session
        except ValidationError as error:
            return Answer(error=fault_of(error)), []
        if number is None:
            return Answer(sessions=tuple(item.described() for item in self.sessions)), []
        found = next((item for item in self.sessions if item.number == number), None)
        if found is None or found.chunks is None:
            return Answer(error="the bytes of this session are not held"), []
        return Answer(session=found.described()), [data for _, data in found.chunks]


class _PartCounter:
    """Counts the parts of a stream, as far as it can be followed."""

    def __init__(self, content_type: str) -> None:
        self.parts = 0
        try:
            self._reader: MultipartReader | None = MultipartReader(content_type)
        except ProtocolError:
            self._reader = None

    def take(self, data: bytes, wanted: int) -> bytes:
        """Return the bytes up to the part that makes up the number wanted, and a little more."""
        if self._reader is None:
            return data
        for start in range(0, len(data), _PIECE):
            events = self._reader.feed(data[start : start + _PIECE])
            self.parts += sum(isinstance(event, Part) for event in events)
            if self.parts >= wanted:
                return data[: start + _PIECE]
        return data


async def _line(reader: asyncio.StreamReader) -> bytes:
    """Return the first line; one that is too long or does not come in time is empty."""
    try:
        async with asyncio.timeout(_HEADER_SECONDS):
            return await reader.readline()
    except (TimeoutError, ValueError):
        return b""


async def serve(
    names: list[str],
    frames: int,
    ready: Callable[[Mapping[str, int]], None],
    tap: Path,
    stop: asyncio.Event,
) -> None:
    """Listen for each name on loopback and at the tap, until ``stop`` is set.

    Args:
        names: The recipients.
        frames: Pictures that end a session.
        ready: Told the port of each name, before the tap exists.
        tap: Path of the Unix socket at which the observer reads.
        stop: Set by whoever ends the program.
    """
    recipient = Recipient(frames)
    listen = partial(asyncio.start_server, host="127.0.0.1", port=0)
    async with AsyncExitStack() as stack:
        ports = {}
        for name in names:
            door = listening(partial(recipient.take, name), listen)
            server = await stack.enter_async_context(door)
            ports[name] = server.sockets[0].getsockname()[1]
        ready(ports)
        tapping = partial(asyncio.start_unix_server, path=tap)
        await stack.enter_async_context(listening(recipient.tap, tapping))
        await stop.wait()
