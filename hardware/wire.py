"""Messages between a world and those who reach it; a frame is a length and JSON with an id."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config

from hardware.strict import Strict

Message = Mapping[str, object]
Handler = Callable[[Message], Awaitable[Message]]

MAX_MESSAGE = 4_194_304
"""Largest message in bytes; a longer one closes the connection."""


class Hello(Strict):
    """Asks a program who it is."""

    op: Literal["hello"]


class Reset(Strict):
    """Asks a world to begin an attempt: a task of a template, with at most one patch."""

    op: Literal["reset"]
    attempt: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    template: str
    task: str
    patch: str | None = None
    episode: Annotated[str, Field(pattern=r"^[\x00-\x7f]*$")]


class AskFrozen(Strict):
    """Asks a world for the frozen episode of an attempt."""

    op: Literal["frozen"]
    attempt: str


class Act(Strict):
    """Asks a world to act, if it still is at a revision; with None, whatever it is at."""

    op: Literal["act"]
    attempt: str
    service: str
    target: str
    parameters: dict[str, str]
    revision: int | None


@with_config(ConfigDict(extra="forbid"))
@dataclass
class FrozenReply:
    """A frozen episode; seconds since the freeze are counted on the world's own clock."""

    snapshot: str
    snapshot_digest: str
    episode: str
    contract: str
    revision: int
    age_seconds: float = 0.0


@with_config(ConfigDict(extra="forbid"))
@dataclass
class ActReply:
    """What came of an act that could be asked for."""

    status: Literal["done", "refused"]
    detail: str


def frame(message: Message) -> bytes:
    """Return the bytes of one message."""
    data = json.dumps(message, separators=(",", ":")).encode()
    return len(data).to_bytes(4, "big") + data


async def read_frame(reader: asyncio.StreamReader) -> dict[str, object] | None:
    """Return the next message, or None when the connection ends or its frame cannot be used."""
    try:
        length = int.from_bytes(await reader.readexactly(4), "big")
        if length > MAX_MESSAGE:
            return None
        value = json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class Channel:
    """One connection with many requests under way, matched to their answers by id."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[dict[str, object]]] = {}
        self._next = 0
        self._receiver = asyncio.ensure_future(self._receive())

    async def ask(self, message: Message) -> dict[str, object]:
        """Send a message and return its answer.

        Raises:
            ConnectionError: The other side is gone.
        """
        if self._receiver.done():
            raise ConnectionError("the other side is gone")
        self._next += 1
        own = self._next
        future: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
        self._waiting[own] = future
        self._writer.write(frame({**message, "id": own}))
        try:
            return await future
        finally:
            self._waiting.pop(own, None)

    async def _receive(self) -> None:
        while (reply := await read_frame(self._reader)) is not None:
            own = reply.pop("id", None)
            future = self._waiting.pop(own, None) if isinstance(own, int) else None
            if future is not None and not future.done():
                future.set_result(reply)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("the other side is gone"))
        self._waiting.clear()

    def close(self) -> None:
        """End the connection."""
        self._receiver.cancel()
        self._writer.close()


async def serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handle: Handler,
) -> None:
    """Answer the messages of one connection, each in a task of its own, until it ends."""

    async def answer(message: dict[str, object]) -> None:
        own = message.pop("id", None)
        writer.write(frame({**await handle(message), "id": own}))

    try:
        async with asyncio.TaskGroup() as tasks:
            while (message := await read_frame(reader)) is not None:
                tasks.create_task(answer(message))
    except* (ConnectionError, OSError):
        pass
    finally:
        writer.close()


@asynccontextmanager
async def listening(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
    listen: Callable[..., Awaitable[asyncio.Server]],
) -> AsyncIterator[asyncio.Server]:
    """Yield a server whose connections that are still open end with it.

    Args:
        answer: Serves one connection.
        listen: Starts the server, as ``asyncio.start_server`` does for a callback.
    """
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
    over = asyncio.Event()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if over.is_set():
            writer.transport.abort()
            return
        task = asyncio.ensure_future(connected(reader, writer))
        connections[task] = writer
        task.add_done_callback(connections.pop)

    server = await listen(accepted)
    try:
        yield server
    finally:
        # Leaving the server's own context waits for its connections from Python 3.12 on.
        server.close()
        over.set()
        ended = dict(connections)
        for task, writer in ended.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*ended, return_exceptions=True)
