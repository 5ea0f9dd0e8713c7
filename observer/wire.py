"""Framing of the observer's socket: four bytes of length, then one JSON object, answers by id."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping

MAX_MESSAGE = 1_048_576
"""Largest message in bytes; a longer one closes the connection."""


async def serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handle: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
) -> None:
    """Answer the messages of one connection until it ends; each message in a task of its own.

    A cut or oversized frame ends the connection, never the process.
    """

    async def answer(message: Mapping[str, Any]) -> None:
        reply = {**await handle(message), "id": message.get("id")}
        data = json.dumps(reply, separators=(",", ":")).encode()
        writer.write(len(data).to_bytes(4, "big") + data)

    try:
        async with asyncio.TaskGroup() as tasks:
            while (message := await _read(reader)) is not None:
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


async def _read(reader: asyncio.StreamReader) -> Mapping[str, Any] | None:
    try:
        length = int.from_bytes(await reader.readexactly(4), "big")
        if length > MAX_MESSAGE:
            return None
        value = json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
