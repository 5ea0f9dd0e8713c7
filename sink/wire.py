"""Framing of the sink's socket: four bytes of length, then one JSON object, answers by id."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from sink.contract.values import unique_keys

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

MAX_MESSAGE = 1_048_576
"""Largest message in bytes; a longer one closes the connection."""


async def serve(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    handle: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]],
) -> None:
    """Answer the messages of one connection until it ends; each message in a task of its own.

    A frame that is cut, too large or no JSON object with each key once ends the connection, never
    the process.
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


async def _read(reader: asyncio.StreamReader) -> Mapping[str, Any] | None:
    try:
        length = int.from_bytes(await reader.readexactly(4), "big")
        if length > MAX_MESSAGE:
            return None
        value = json.loads(await reader.readexactly(length), object_pairs_hook=unique_keys)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
