"""The server: uvicorn on one address, ended without cutting anybody off in the middle."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

LOOPBACK = "127.0.0.1"
PORT = 8400
GRACE = 10
"""Seconds that open calls get to end when the server is told to stop."""

LOGGING: dict[str, object] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
        "bare": {"format": "%(message)s"},
    },
    "handlers": {
        "plain": {"class": "logging.StreamHandler", "formatter": "plain"},
        "bare": {"class": "logging.StreamHandler", "formatter": "bare"},
    },
    "loggers": {
        "uvicorn": {"handlers": ["plain"], "level": "INFO", "propagate": False},
        "retire": {"handlers": ["plain"], "level": "INFO", "propagate": False},
        "retire.audit": {"handlers": ["bare"], "level": "INFO", "propagate": False},
    },
}
"""To standard error; audit lines stand bare, so that each is one JSON object."""


class Server(uvicorn.Server):
    """A uvicorn server that ends waits and event streams first when it is told to stop."""

    def __init__(self, app: FastAPI, config: uvicorn.Config, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self._app = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say where."""
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            self._ready(f"http://{shown}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let whoever waits or streams end, then stop."""
        self._app.state.services.closing.set()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises:
        InputError: The address cannot be used.
    """
    listening = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, OverflowError) as error:
        if listening is not None:
            listening.close()
        raise InputError(
            f"cannot listen there: {error}",
            where=f"{host}:{port}",
            mend="Choose another --host or --port; another server may be running",
        ) from error
    return listening


def build_server(app: FastAPI, ready: Callable[[str], None] = lambda _: None) -> Server:
    """Return a server for an application; ``ready`` is told the address once it answers."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=LOGGING,
        server_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=GRACE,
        # A proxy's word about addresses is needed nowhere, so none is believed.
        proxy_headers=False,
    )
    return Server(app, config, ready)


def serve(
    app: FastAPI,
    host: str = LOOPBACK,
    port: int = PORT,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until SIGINT or SIGTERM, then end gracefully.

    Raises:
        InputError: The address cannot be used, or the application did not start.
    """
    with listen(host, port) as listening:
        server = build_server(app, ready)
        # uvicorn repeats the signal that ended it; by then everything has ended in order.
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
    if not server.started:
        raise InputError("the service did not start", mend="The log above says why")
