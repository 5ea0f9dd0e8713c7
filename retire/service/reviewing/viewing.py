"""The pages over a folder of the command line: read-only, on loopback, for whoever started it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from retire.service.access import Caller
from retire.service.reviewing.answering import HEADERS
from retire.service.routes import reviewing

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from retire.service.reviewing.library import ReviewSource

_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True)
class Closing:
    """What the server sets when it shuts down."""

    closing: asyncio.Event = field(default_factory=asyncio.Event)


class LocalReader:
    """ASGI middleware that lets only this machine's own browser read, and nothing else.

    A page elsewhere can let its name point here; so the host that was asked for must be a name of
    this machine.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one connection, then hand it on."""
        if scope["type"] == "http":
            refusal = _refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = Caller(None)
        await self._app(scope, receive, send)


def _refusal(scope: Scope) -> PlainTextResponse | None:
    hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
    name = hosts[0].rsplit(":", 1)[0] if len(hosts) == 1 else ""
    if name not in _NAMES and hosts not in [[known] for known in _NAMES]:
        return PlainTextResponse("ask for 127.0.0.1\n", 403, headers=dict(HEADERS))
    if scope["method"] not in {"GET", "HEAD"}:
        return PlainTextResponse("these pages are read only\n", 405, headers=dict(HEADERS))
    return None


def view_app(source: ReviewSource) -> FastAPI:
    """Return an application that shows runs to whoever asks from this machine."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.reviews = source
    app.state.services = Closing()
    app.include_router(reviewing.router)
    app.add_middleware(LocalReader)
    return app
