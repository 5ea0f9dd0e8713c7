"""A stand-in for Home Assistant that answers as the real one does, and lies where it is told to.

It runs in a thread of its own, since what reads it may wait for it without giving way.
"""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiohttp import WSMsgType, web

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOKEN = "t0ken-that-must-not-be-seen"


class LyingHome:
    """States, services and events over HTTP and websocket.

    Attributes:
        calls: Every service call that arrived: service and data.
        paths: Every request: method and path.
        on_call: Done when a service is called; nothing by default, though the answer is 200.
        call_status: Status of the answer to a service call.
        call_seconds: How long a service call takes to be answered.
        read_status: Status of every answer to a reading.
        refuses: Whether the token is refused.
        registry: Entities of the registry with the id of each.
        unit: The unit of temperature.
        beating: Entities that report every 50 ms.
        deaf: Whether commands over the websocket stay without an answer.
        elsewhere: Address that an answer with a status of a redirect names.
        socket_elsewhere: Whether a websocket is redirected there.
        greeted: How many websockets were opened.
    """

    def __init__(self) -> None:
        self.states: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.paths: list[tuple[str, str]] = []
        self.on_call: Callable[[str, Mapping[str, Any]], None] = lambda service, data: None
        self.call_status = 200
        self.call_seconds = 0.0
        self.read_status = 200
        self.refuses = False
        self.registry: dict[str, str] = {}
        self.unit = "\N{DEGREE SIGN}C"
        self.beating: set[str] = set()
        self.deaf = False
        self.elsewhere = ""
        self.socket_elsewhere = False
        self.greeted = 0
        self.url = ""
        self._sockets: dict[web.WebSocketResponse, int] = {}
        self._sending: set[asyncio.Future[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # -- control ---------------------------------------------------------------------------

    def start(self) -> LyingHome:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def stop(self) -> None:
        """End it as a kill would: every connection is cut."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def set(
        self,
        entity: str,
        state: str,
        attributes: Mapping[str, Any] | None = None,
        *,
        user: str | None = None,
    ) -> None:
        """Write a state and tell everybody who follows."""
        if threading.current_thread() is self._thread:
            self._write(entity, state, attributes, user)
            return
        done = asyncio.run_coroutine_threadsafe(
            self._written(entity, state, attributes, user), self._loop
        )
        done.result(10)

    def remove(self, entity: str) -> None:
        """Forget an entity."""
        self.states.pop(entity, None)

    def later(self, seconds: float, entity: str, state: str) -> None:
        """Write a state after a while."""
        self._loop.call_soon_threadsafe(
            lambda: self._loop.call_later(seconds, self._write, entity, state, None, None)
        )

    def cut_sockets(self) -> None:
        """Close every websocket."""

        async def cut() -> None:
            for socket in list(self._sockets):
                await socket.close()

        asyncio.run_coroutine_threadsafe(cut(), self._loop).result(10)

    # -- the stand-in ----------------------------------------------------------------------

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        app = web.Application()
        app.router.add_get("/api/websocket", self._websocket)
        app.router.add_get("/api/", self._running)
        app.router.add_get("/api/config", self._config)
        app.router.add_get("/api/states", self._all_states)
        app.router.add_post("/api/services/{domain}/{service}", self._service)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        beating = asyncio.ensure_future(self._beat())
        self._ready.set()
        await self._stop.wait()
        beating.cancel()
        for socket in list(self._sockets):
            await socket.close()
        await runner.cleanup()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            for entity in sorted(self.beating & set(self.states)):
                found = self.states[entity]
                attributes = {**found["attributes"], "reported_at": _now()}
                self._write(entity, found["state"], attributes, None)

    async def _written(self, *arguments: Any) -> None:
        self._write(*arguments)

    def _write(
        self, entity: str, state: str, attributes: Mapping[str, Any] | None, user: str | None
    ) -> None:
        old = self.states.get(entity)
        kept = old["attributes"] if old is not None else {}
        new = {
            "entity_id": entity,
            "state": state,
            "attributes": dict(kept if attributes is None else attributes),
            "last_changed": _now(),
            "last_updated": _now(),
            "context": {"id": "c", "parent_id": None, "user_id": user},
        }
        self.states[entity] = new
        data = {"entity_id": entity, "old_state": old, "new_state": new}
        for socket, subscription in list(self._sockets.items()):
            if subscription and not socket.closed:
                event = {"event_type": "state_changed", "data": data}
                message = {"id": subscription, "type": "event", "event": event}
                sending = asyncio.ensure_future(socket.send_json(message))
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)

    def _fault(self, request: web.Request, status: int) -> web.Response | None:
        self.paths.append((request.method, request.path))
        if self.refuses or request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.Response(status=401)
        return self._other(request, status) if status != 200 else None

    def _other(self, request: web.Request, status: int) -> web.Response:
        headers = {"Location": self.elsewhere + request.path} if self.elsewhere else {}
        return web.Response(status=status, headers=headers)

    async def _running(self, request: web.Request) -> web.Response:
        fault = self._fault(request, self.read_status)
        return fault or web.json_response({"message": "API running."})

    async def _config(self, request: web.Request) -> web.Response:
        found = {"state": "RUNNING", "unit_system": {"temperature": self.unit}}
        return self._fault(request, self.read_status) or web.json_response(found)

    async def _all_states(self, request: web.Request) -> web.Response:
        fault = self._fault(request, self.read_status)
        return fault or web.json_response(list(self.states.values()))

    async def _service(self, request: web.Request) -> web.Response:
        if (fault := self._fault(request, 200)) is not None:
            return fault
        service = f"{request.match_info['domain']}.{request.match_info['service']}"
        data = await request.json()
        self.calls.append((service, data))
        self.on_call(service, data)
        await asyncio.sleep(self.call_seconds)
        if self.call_status != 200:
            return self._other(request, self.call_status)
        return web.json_response([])

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        if self.socket_elsewhere:
            return self._other(request, 307)
        self.greeted += 1
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "auth_required"})
        message = await socket.receive_json()
        if self.refuses or message.get("access_token") != TOKEN:
            await socket.send_json({"type": "auth_invalid"})
            await socket.close()
            return socket
        await socket.send_json({"type": "auth_ok"})
        self._sockets[socket] = 0
        try:
            async for raw in socket:
                if raw.type is WSMsgType.TEXT and not self.deaf:
                    await self._command(socket, raw.json())
        finally:
            self._sockets.pop(socket, None)
        return socket

    async def _command(self, socket: web.WebSocketResponse, message: Mapping[str, Any]) -> None:
        result: Any = None
        match message["type"]:
            case "subscribe_events":
                self._sockets[socket] = message["id"]
            case "get_states":
                # What was written before goes out before.
                await asyncio.sleep(0)
                result = list(self.states.values())
            case "config/entity_registry/list":
                result = [
                    {"entity_id": entity, "platform": "p", "unique_id": own, "id": own}
                    for entity, own in self.registry.items()
                ]
        answer = {"id": message["id"], "type": "result", "success": True, "result": result}
        await socket.send_json(answer)


def now() -> datetime:
    """The clock of the stand-in."""
    return datetime.now(UTC)


def _now() -> str:
    return now().isoformat()
