"""A stand-in for Home Assistant's camera stream that records every request it gets."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from hardware.wire import listening
from tests.unit.camera.streams import jpeg, part

OK = b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=cam7\r\n\r\n"


@dataclass
class FakeHome:
    """Answers as told: ``behave`` names the answer of the next requests."""

    behave: str = "stream"
    per_second: float = 50.0
    token: str = "right"
    requests: list[str] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    url: str = ""
    ended: int = 0
    number: int = 0

    async def serve(self, reader, writer):
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head.splitlines()[0])
            self.secrets += [
                line.split(" ", 1)[1].removeprefix("Bearer ")
                for line in head.splitlines()
                if line.lower().startswith("authorization:")
            ]
            try:
                await self._answer(writer)
            finally:
                self.ended += 1
                writer.close()

    async def _answer(self, writer):
        if self.behave == "silent":
            await asyncio.sleep(30)
        elif self.behave == "redirect":
            place = f"Location: {self.url}/api/services/lock/unlock"
            writer.write(f"HTTP/1.1 302 Found\r\n{place}\r\nContent-Length: 0\r\n\r\n".encode())
        elif self.behave == "cut":
            writer.write(OK.replace(b"\r\n\r\n", b"\r\nContent-Length: 900000\r\n\r\n"))
            writer.write(part(jpeg(1)))
            await writer.drain()
            writer.transport.abort()
        elif self.behave == "hang up":
            writer.transport.abort()
        elif self.behave != "stream" or self.secrets[-1:] != [self.token]:
            status = "401 Unauthorized" if self.behave == "stream" else self.behave
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        else:
            await self._stream(writer)

    async def _stream(self, writer):
        writer.write(OK)
        for _ in range(10_000):
            self.number += 1
            size = (24 + self.number % 7, 16 + self.number // 256)
            writer.write(part(jpeg(self.number, size=size)))
            await writer.drain()
            await asyncio.sleep(1 / self.per_second)


@asynccontextmanager
async def fake_home(**settings):
    home = FakeHome(**settings)
    async with listening(home.serve, partial(asyncio.start_server, host="127.0.0.1")) as server:
        home.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield home
