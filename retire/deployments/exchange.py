"""One request to an OpenAI-compatible endpoint, over the ``openai`` library.

The library makes the request and its pool; the answer is read from the bytes on the wire, since
the library's models coerce what a server really sent. The key is known to the transport alone:
the library, its errors and its logs never have it. Redirects are not followed, proxies and
headers of the environment are not used, and no body is read beyond a bound.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

import httpx2
import openai

from retire.deployments.envelope import EventReader, StreamedTurn, read_body
from retire.deployments.json_text import Unreadable
from retire.deployments.limits import Refused, Unanswered, asked_wait, is_worth_another_try

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pydantic import SecretStr

    from retire.deployments.configuration import OpenAIConfiguration
    from retire.deployments.envelope import Reading, Turn

MAX_BODY_BYTES = 8 * 1024 * 1024
"""Largest response read; a turn of one action has a few hundred bytes."""

_NO_KEY = "the transport holds it"
_EXCERPT = 300
_SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Error codes of a 429 that no waiting mends."""


class _TooLarge(Refused):
    """A body went on beyond the bound."""


class _BoundedStream(httpx2.AsyncByteStream):
    """A response's bytes, up to the bound; gives its connection back when it is closed."""

    def __init__(self, inner: httpx2.AsyncByteStream, give_back: Callable[[], None]) -> None:
        self._inner = inner
        self._give_back: Callable[[], None] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for piece in self._inner:
            total += len(piece)
            if total > MAX_BODY_BYTES:
                raise _TooLarge(f"the answer is larger than {MAX_BODY_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            if self._give_back is not None:
                self._give_back()
                self._give_back = None


class _Connections:
    """One connection for every call under way.

    A pool of all of them looks through all of them at every call, and keeps the next call waiting.
    """

    def __init__(self) -> None:
        self._certificates = httpx2.create_ssl_context(trust_env=False)
        self._limits = httpx2.Limits(
            max_connections=1, max_keepalive_connections=1, keepalive_expiry=30.0
        )
        self._free: list[httpx2.AsyncHTTPTransport] = []
        self._all: list[httpx2.AsyncHTTPTransport] = []

    def take(self) -> httpx2.AsyncHTTPTransport:
        """Return a connection that nobody uses; one more where there is none."""
        if self._free:
            return self._free.pop()
        made = httpx2.AsyncHTTPTransport(
            verify=self._certificates, trust_env=False, limits=self._limits
        )
        self._all.append(made)
        return made

    def give_back(self, connection: httpx2.AsyncHTTPTransport) -> None:
        """Let the next call have a connection."""
        self._free.append(connection)

    async def close(self) -> None:
        """Close every connection."""
        for connection in self._all:
            await connection.aclose()


class _Transport(httpx2.AsyncBaseTransport):
    """Sends the few headers that are meant, and holds the key."""

    def __init__(self, key: SecretStr | None) -> None:
        self._connections = _Connections()
        self._key = key

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {
            "host": request.headers["host"],
            "accept": "application/json, text/event-stream",
            # A compressed body could unfold far beyond the bound.
            "accept-encoding": "identity",
            "content-type": "application/json",
            "content-length": request.headers["content-length"],
            "user-agent": "retire",
        }
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key.get_secret_value()}"
        sent = httpx2.Request(
            request.method,
            request.url,
            headers=headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        connection = self._connections.take()
        give_back = partial(self._connections.give_back, connection)
        try:
            response = await connection.handle_async_request(sent)
        except BaseException:
            give_back()
            raise
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, give_back)
        return response

    async def aclose(self) -> None:
        await self._connections.close()


class Exchange:
    """Makes single requests; retries nothing."""

    def __init__(self, configuration: OpenAIConfiguration, key: SecretStr | None) -> None:
        # Its debugging lines print the headers of a response, where a server may repeat the key.
        logging.getLogger("httpcore2").setLevel(logging.INFO)
        connect, answer = configuration.timeouts.connect, configuration.timeouts.answer
        self._seconds = float(answer)
        self._too_late = f"no connection within {connect} s, or no whole answer within {answer} s"
        self._key = key
        timeout = httpx2.Timeout(self._seconds, connect=float(connect))
        self._client = openai.AsyncOpenAI(
            api_key=_NO_KEY,
            base_url=configuration.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=httpx2.AsyncClient(
                transport=_Transport(key),
                trust_env=False,
                follow_redirects=False,
                timeout=timeout,
            ),
        )
        # The library loads its resources when they are first named: here, before any call waits.
        self._completions = self._client.chat.completions.with_streaming_response

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def ask(self, body: Mapping[str, object], reading: Reading) -> Turn:
        """Send one request and read one completed turn.

        Raises:
            Unanswered: No answer was completed.
            Refused: The endpoint will not answer this request.
        """
        result = await self._outcome(body, reading)
        # Raised here, where no error of the library stands behind it: those quote what came.
        if isinstance(result, Refused | Unanswered):
            raise result
        return result

    async def _outcome(
        self, body: Mapping[str, object], reading: Reading
    ) -> Turn | Refused | Unanswered:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._exchange(body, reading)
        except (TimeoutError, openai.APITimeoutError):
            return Unanswered(self._too_late)
        except openai.APIStatusError as error:
            return self._of_status(error)
        except openai.APIConnectionError as error:
            return Unanswered(f"no connection: {self.masked(_cause(error))}")
        except httpx2.HTTPError as error:
            return Unanswered(f"the answer was cut: {self.masked(_cause(error))}")
        except Unreadable as error:
            return Unanswered(self.masked(str(error)))
        except Refused as refused:
            return refused

    async def _exchange(self, body: Mapping[str, object], reading: Reading) -> Turn:
        # As an extra body it is sent as it is: the library neither walks through it nor types it.
        async with self._completions.create(model="", messages=(), extra_body=body) as response:
            encoding = response.headers.get("content-encoding", "identity")
            if encoding != "identity":
                raise Refused(f"the answer is compressed ({self.masked(encoding)}); nobody asked")
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/event-stream":
                return await _read_stream(response.iter_bytes(), reading)
            data = b"".join([piece async for piece in response.iter_bytes()])
            try:
                return read_body(data, reading)
            except Unreadable as error:
                raise Unreadable(f"{error} (content type {kind[:60] or 'not given'})") from error

    def masked(self, text: str) -> str:
        """Return one printable line of at most 300 characters, without the key."""
        if self._key is not None:
            text = text.replace(self._key.get_secret_value(), "[key]")
        line = " ".join(text.split())[:_EXCERPT]
        return "".join(char if char.isprintable() else "?" for char in line)

    def _of_status(self, error: openai.APIStatusError) -> Refused | Unanswered:
        status, headers = error.status_code, error.response.headers
        said = self.masked(_message(error))
        what = f"the server answered {status}: {said}" if said else f"the server answered {status}"
        if 300 <= status <= 399:
            where = self.masked(headers.get("location", "nowhere"))
            return Refused(f"the server redirects to {where}; put the final address into base_url")
        if not is_worth_another_try(status) or error.code in _SPENT:
            return Refused(what)
        return Unanswered(what, wait=asked_wait(headers), pause=status in {429, 503})


async def _read_stream(pieces: AsyncIterator[bytes], reading: Reading) -> Turn:
    events, turn = EventReader(), StreamedTurn(reading)
    try:
        async for piece in pieces:
            for event in events.feed(piece):
                turn.take(event)
            if turn.done:
                break
    except (httpx2.HTTPError, _TooLarge):
        # A turn that was finished before its connection broke is complete all the same.
        if not turn.finished:
            raise
    return turn.turn()


def _message(error: openai.APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict):
        message = body.get("message") or body.get("detail") or body.get("error")
        return str(message) if message else ""
    return error.response.text


def _cause(error: BaseException) -> str:
    cause = error.__cause__ or error
    return str(cause) or type(cause).__name__
