"""Framing between the stub world and those who reach it: length, then JSON, answers by id."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

MAX_MESSAGE = 4_194_304
"""Largest message in bytes; a longer one closes the connection."""


def frame(message: Mapping[str, Any]) -> bytes:
    """Return the bytes of one message."""
    data = json.dumps(message, separators=(",", ":")).encode()
    return len(data).to_bytes(4, "big") + data


async def read_frame(reader: asyncio.StreamReader) -> dict[str, Any] | None:
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
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = 0
        self._receiver = asyncio.ensure_future(self._receive())

    async def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message and return its answer.

        Raises:
            ConnectionError: The other side is gone.
        """
        if self._receiver.done():
            raise ConnectionError("the other side is gone")
        self._next += 1
        own = self._next
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[own] = future
        self._writer.write(frame({**message, "id": own}))
        try:
            return await future
        finally:
            self._waiting.pop(own, None)

    async def _receive(self) -> None:
        while (reply := await read_frame(self._reader)) is not None:
            future = self._waiting.pop(reply.get("id", 0), None)
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
    handle: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
) -> None:
    """Answer the messages of one connection, each in a task of its own, until it ends."""

    async def answer(message: Mapping[str, Any]) -> None:
        reply = {**await handle(message), "id": message.get("id")}
        writer.write(frame(reply))

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
