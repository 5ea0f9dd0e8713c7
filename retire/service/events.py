"""Server-sent events of a run (WHATWG HTML, section 9.2)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, TypeVar

from fastapi.responses import StreamingResponse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
    from typing import Any

    from starlette.types import Receive, Scope, Send

    from retire.service.port import Event

KEEP_ALIVE = b": still here\n\n"
RETRY = b"retry: 2000\n\n"

Result = TypeVar("Result")


def event_bytes(event: Event) -> bytes:
    """Return one event on the wire; JSON holds no line feed, so one data line is enough."""
    data = json.dumps(event.data, separators=(",", ":"))
    return f"id: {event.number}\nevent: {event.kind}\ndata: {data}\n\n".encode()


async def first_of(
    work: Coroutine[Any, Any, Result], closing: asyncio.Event, seconds: float | None = None
) -> Result | None:
    """Return what the work gives, or None where the server closes or the time is up first.

    The work is cancelled when it is not waited for any longer.
    """
    doing = asyncio.ensure_future(work)
    ending = asyncio.ensure_future(closing.wait())
    try:
        await asyncio.wait({doing, ending}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        doing.cancel()
        ending.cancel()


async def stream(
    first: Event | None, events: AsyncIterator[Event], closing: asyncio.Event, keep_alive: float
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of an event stream.

    Args:
        first: An event that was read already; None if none was.
        events: The others, until the run ends.
        closing: Set when the server shuts down; the stream then ends and the client comes back.
        keep_alive: Seconds of silence after which a comment keeps proxies from hanging up.
    """
    yield RETRY
    if first is not None:
        yield event_bytes(first)
    ending = asyncio.ensure_future(closing.wait())
    coming = asyncio.ensure_future(_next(events))
    try:
        while True:
            await asyncio.wait(
                {coming, ending}, timeout=keep_alive, return_when=asyncio.FIRST_COMPLETED
            )
            if coming.done():
                event = coming.result()
                if event is None:
                    return
                # Asked for before the yield: cancelling it then always ends the source too.
                coming = asyncio.ensure_future(_next(events))
                yield event_bytes(event)
            elif ending.done():
                return
            else:
                yield KEEP_ALIVE
    finally:
        coming.cancel()
        ending.cancel()


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)


class EventStream(StreamingResponse):
    """The answer that carries a stream, and says when it is over, however it ends."""

    def __init__(self, content: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        # Proxies of one kind buffer answers unless told so.
        super().__init__(
            content, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()
