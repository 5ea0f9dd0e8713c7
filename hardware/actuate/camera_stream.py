"""One read-only stream from Home Assistant to a recipient: a single GET, logged and bounded.

The secret goes into one request header and nowhere else: no log, detail or error carries it.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import aiohttp

from hardware.bench.messages import Header
from sink.ports import ActResult, ActStatus

if TYPE_CHECKING:
    from pathlib import Path

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 3.0
"""How long Home Assistant may take to begin its answer."""
CLOSE_SECONDS = 0.5
CHAIN_FAILED = "the camera chain failed"
"""Begins the detail of a refusal that is no evidence of anything."""
_CHUNK = 65_536


class RequestLog:
    """Every request this process sends to Home Assistant: one line before, one after it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, event: str, attempt: str, path: str, status: int | None = None) -> None:
        """Write one line and make it durable; raises OSError where that fails."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")  # noqa: TID251  # a log's clock
        line = {"event": event, "attempt": attempt, "method": "GET", "path": path, "at": at}
        if status is not None:
            line["status"] = str(status)
        os.write(self._fd, json.dumps(line).encode() + b"\n")
        os.fdatasync(self._fd)


@dataclass(frozen=True, slots=True)
class Session:
    """What one session is allowed; seconds are counted from when it was made.

    Attributes:
        attempt: For whom it is.
        recipient_port: Loopback port of the recipient.
        seconds: When it is over at the latest.
        granted: When the permission ends; None where nobody gave any.
        began: The clock when it was made.
    """

    attempt: str
    recipient_port: int
    seconds: float
    granted: float | None
    began: float = field(default_factory=time.monotonic)

    def left(self) -> tuple[float, str]:
        """Return for how long the stream may go on, and why not longer."""
        passed = time.monotonic() - self.began
        if self.granted is not None and self.granted < self.seconds:
            return self.granted - passed, "the grant ended"
        return self.seconds - passed, "its time was over"

    def grant_left(self) -> float | None:
        """Return for how long the permission still holds; None where nobody gave any."""
        if self.granted is None:
            return None
        return self.granted - (time.monotonic() - self.began)


class StreamClient:
    """Opens streams of one camera entity.

    Args:
        url: Home Assistant's address.
        entity: The one camera that may be asked for.
        log: Where each request is noted before it is sent.
    """

    def __init__(self, url: str, entity: str, log: RequestLog) -> None:
        self._url = url
        self._path = f"/api/camera_proxy_stream/{entity}"
        self._log = log
        self._refused: set[str] = set()

    async def deliver(self, session: Session, token: str) -> ActResult:
        """Open the stream and pass its bytes on until one of its ends is reached.

        A secret that Home Assistant refused once is not tried again: repeated failures can get
        an address banned.
        """
        if token in self._refused:
            return _failed("this token was refused before; it is not tried again")
        if session.granted is not None and session.granted <= 0:
            return ActResult(ActStatus.REFUSED, "the grant has ended")
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", session.recipient_port)
        except (OSError, TimeoutError):
            return _failed("the recipient cannot be reached; nothing was opened")
        try:
            return await self._request(session, token, reader, writer)
        finally:
            writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await writer.wait_closed()
            # A recipient that reads no more would keep the last bytes, and this act, waiting.
            writer.transport.abort()

    async def _request(
        self,
        session: Session,
        token: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> ActResult:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        jar = aiohttp.DummyCookieJar()
        self._log.note("sent", session.attempt, self._path)
        try:
            async with aiohttp.ClientSession(
                timeout=timeout, cookie_jar=jar, middlewares=[_Once()]
            ) as client:
                async with asyncio.timeout(ANSWER_SECONDS):
                    response = await client.get(
                        self._url + self._path,
                        headers={"Authorization": f"Bearer {token}"},
                        allow_redirects=False,
                    )
                self._log.note("answered", session.attempt, self._path, response.status)
                async with response:
                    if response.status != 200:
                        return self._turned_away(response.status, token)
                    return await self._relay(session, response, reader, writer)
        except aiohttp.ClientConnectorError:
            return _failed("Home Assistant cannot be reached")
        except TimeoutError:
            return ActResult(ActStatus.IN_DOUBT, "Home Assistant did not answer in time")
        except (aiohttp.ClientError, ConnectionError) as error:
            return ActResult(ActStatus.IN_DOUBT, f"no answer: {type(error).__name__}")

    def _turned_away(self, status: int, token: str) -> ActResult:
        if status in {401, 403}:
            self._refused.add(token)
            return _failed(f"Home Assistant does not accept the token ({status})")
        known = {404: "it knows no such camera", 503: "the camera is off or unavailable"}
        said = known.get(status, "no stream")
        return _failed(f"Home Assistant answered {status}: {said}")

    async def _relay(
        self,
        session: Session,
        response: aiohttp.ClientResponse,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> ActResult:
        limit, over = session.left()
        # A header field may hold bytes that are no text.
        content_type = response.headers.get("Content-Type", "")
        header = Header(
            attempt=session.attempt,
            content_type=content_type.encode("ascii", "replace").decode(),
            granted=session.grant_left(),
        )
        writer.write(header.model_dump_json().encode() + b"\n")
        pump = _Pump()
        moving = asyncio.ensure_future(pump.run(response, writer))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait(
                {moving, leaving}, timeout=max(0.0, limit), return_when=asyncio.FIRST_COMPLETED
            )
            why = pump.ended or ("the recipient had enough" if leaving.done() else over)
        finally:
            moving.cancel()
            leaving.cancel()
            await asyncio.wait({moving, leaving})
            for task in (moving, leaving):
                # Looked at, so that a broken connection is not reported as forgotten.
                _ = task.cancelled() or task.exception()
        return ActResult(ActStatus.DONE, f"{why}, {pump.passed} bytes passed on")


class _Once:
    """Lets one request pass: the library would send a GET again after a lost connection."""

    def __init__(self) -> None:
        self._passed = False

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if self._passed:
            raise aiohttp.ClientConnectionError("the connection was lost before an answer")
        self._passed = True
        return await handler(request)


class _Pump:
    """Moves bytes and remembers why it stopped by itself."""

    def __init__(self) -> None:
        self.passed = 0
        self.ended = ""

    async def run(self, response: aiohttp.ClientResponse, writer: asyncio.StreamWriter) -> None:
        try:
            async for data in response.content.iter_any():
                for start in range(0, len(data), _CHUNK):
                    writer.write(data[start : start + _CHUNK])
                await writer.drain()
                self.passed += len(data)
            self.ended = "Home Assistant ended the stream"
        except aiohttp.ClientError:
            self.ended = "the stream from Home Assistant broke off"
        except ConnectionError:
            self.ended = "the recipient had enough"


def _failed(detail: str) -> ActResult:
    """Nothing was opened, for a reason that says nothing about the action."""
    return ActResult(ActStatus.REFUSED, f"{CHAIN_FAILED}: {detail}")
