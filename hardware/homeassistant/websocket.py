"""Home Assistant's websocket: questions, and the events that came before each answer.

Messages of one connection arrive in the order in which Home Assistant made them, so an answer to
``get_states`` is preceded by every change before it. aiohttp speaks the protocol.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol

from pydantic import BaseModel, TypeAdapter, ValidationError

from hardware.homeassistant.errors import (
    DEADLINE_SECONDS,
    FailedError,
    HomeAssistantError,
    RefusedError,
    UnauthorizedError,
    UnreachableError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from types import ModuleType

    from aiohttp import (
        ClientHandlerType,
        ClientRequest,
        ClientResponse,
        ClientWebSocketResponse,
    )

_MAX_MESSAGE = 2**24


class Listener(Protocol):
    """Told every event of a subscription, in order."""

    def __call__(self, event: object, /) -> None:
        """Take one event."""


class Connection:
    """One authenticated connection; :meth:`follow` must run for anything to arrive."""

    def __init__(
        self, socket: ClientWebSocketResponse, listener: Listener, opened: AsyncExitStack
    ) -> None:
        self._socket = socket
        self._opened = opened
        self._listener = listener
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._next = 0

    @classmethod
    async def open(cls, url: str, token: str, listener: Listener) -> Connection:
        """Connect and authenticate.

        Raises:
            UnauthorizedError: The token was refused.
            HomeAssistantError: No connection, or something else answers there.
        """
        aiohttp = _library()
        try:
            async with asyncio.timeout(DEADLINE_SECONDS), AsyncExitStack() as opened:
                session = await opened.enter_async_context(
                    aiohttp.ClientSession(middlewares=[_stay])
                )
                socket = await opened.enter_async_context(
                    session.ws_connect(f"{url}/api/websocket", max_msg_size=_MAX_MESSAGE)
                )
                await _authenticate(socket, token)
                return cls(socket, listener, opened.pop_all())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise UnreachableError(f"no websocket: {type(error).__name__}") from error
        except (ValueError, TypeError) as error:
            raise FailedError("what answers is not Home Assistant") from error

    async def follow(self) -> None:
        """Take messages until the connection ends; whoever waits for an answer is told."""
        try:
            async for message in self._messages():
                self._take(message)
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(UnreachableError("the websocket ended"))
            self._waiting.clear()

    async def _messages(self) -> AsyncIterator[Mapping[str, object]]:
        aiohttp = _library()
        async for raw in self._socket:
            if raw.type is not aiohttp.WSMsgType.TEXT:
                return
            try:
                value = raw.json()
            except ValueError:
                return
            for message in value if isinstance(value, list) else [value]:
                if isinstance(message, dict):
                    yield message

    def _take(self, message: Mapping[str, object]) -> None:
        if message.get("type") == "event":
            self._listener(message.get("event"))
            return
        number = message.get("id")
        future = self._waiting.pop(number, None) if isinstance(number, int) else None
        if future is None or future.done():
            return
        if message.get("success", True):
            future.set_result(message.get("result"))
        else:
            error = message.get("error")
            code = error.get("code") if isinstance(error, dict) else None
            future.set_exception(RefusedError(str(code)))

    async def ask(self, kind: str, **fields: object) -> object:
        """Send a command and return its result.

        Raises:
            RefusedError: Home Assistant did not carry it out.
            HomeAssistantError: No answer came in time.
        """
        self._next += 1
        own = self._next
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[own] = future
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await self._socket.send_json({"id": own, "type": kind, **fields})
                return await future
        except TimeoutError as error:
            raise UnreachableError(f"no answer within {DEADLINE_SECONDS:g} seconds") from error
        except (OSError, RuntimeError) as error:
            raise UnreachableError("the websocket ended") from error
        finally:
            self._waiting.pop(own, None)

    async def close(self) -> None:
        """End the connection."""
        await self._opened.aclose()


async def _stay(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Follow no redirect: the token is for the address that was given."""
    answer = await handler(request)
    if 300 <= answer.status < 400:
        answer.close()
        raise FailedError("it redirects elsewhere; that is not followed")
    return answer


async def _authenticate(socket: ClientWebSocketResponse, token: str) -> None:
    await socket.receive_json()
    await socket.send_json({"type": "auth", "access_token": token})
    answer = await socket.receive_json()
    if answer.get("type") != "auth_ok":
        raise UnauthorizedError("the token was refused")


async def check_token(url: str, token: str) -> None:
    """Ask whether a token is still good: an open websocket outlives the token that opened it.

    Raises:
        UnauthorizedError: It is not.
        HomeAssistantError: No answer, or another one.
    """
    aiohttp = _library()
    headers = {"Authorization": f"Bearer {token}"}
    try:
        async with (
            asyncio.timeout(DEADLINE_SECONDS),
            aiohttp.ClientSession(middlewares=[_stay]) as session,
            session.get(f"{url}/api/", headers=headers) as answer,
        ):
            status = answer.status
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise UnreachableError(f"no answer: {type(error).__name__}") from error
    if status in {401, 403}:
        raise UnauthorizedError(f"the token was refused ({status})")
    if status != 200:
        raise FailedError(f"status {status}")


class _Entry(BaseModel):
    entity_id: str
    platform: object
    unique_id: object
    id: object


_ENTRIES = TypeAdapter(list[_Entry])


async def registry(url: str, token: str) -> dict[str, str]:
    """Return the registry's own id of each entity that it knows.

    Raises:
        HomeAssistantError: It cannot be read.
    """
    connection = await Connection.open(url, token, lambda _: None)
    following = asyncio.ensure_future(connection.follow())
    try:
        entries = _ENTRIES.validate_python(await connection.ask("config/entity_registry/list"))
        return {item.entity_id: f"{item.platform}/{item.unique_id}/{item.id}" for item in entries}
    except ValidationError as error:
        raise FailedError("the registry has another form") from error
    finally:
        await connection.close()
        await following


def _library() -> ModuleType:
    try:
        import aiohttp  # noqa: PLC0415  # the extra may be missing
    except ImportError as error:
        raise HomeAssistantError(
            "Home Assistant needs the extra 'homeassistant': pip install 'retire[homeassistant]'"
        ) from error
    return aiohttp
