"""A real server around a fake keeper, in a thread of its own."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from retire.service.server import build_server, listen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.service.fake_keeper import House


@contextmanager
def living(house: House) -> Iterator[str]:
    """Serve until the context ends; give the address."""
    ready = threading.Event()
    told: list[str] = []

    def on_ready(address: str) -> None:
        told.append(address)
        ready.set()

    with listen("127.0.0.1", 0) as listening:
        server = build_server(house.app, on_ready)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert ready.wait(20)
            yield told[0]
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()
