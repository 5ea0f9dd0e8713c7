"""One suite for the server of each program: its end waits for nobody at the other side."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

import hardware.wire
import observer.wire
import sink.wire

pytestmark = pytest.mark.contract


@pytest.fixture(params=[sink.wire, observer.wire, hardware.wire], ids=lambda wire: wire.__name__)
def wire(request):
    return request.param


@pytest.fixture
def listen(tmp_path):
    return partial(asyncio.start_unix_server, path=tmp_path / "socket")


@pytest.fixture
def connect(tmp_path):
    return partial(asyncio.open_unix_connection, tmp_path / "socket")


@pytest.mark.parametrize("turns", range(1, 5))
async def test_an_idle_connection_ends_with_its_server(wire, listen, connect, turns):
    """Also one that was accepted few turns of the loop before the end."""
    async with asyncio.timeout(5):
        async with wire.listening(partial(wire.serve, handle=None), listen):
            reader, writer = await connect()
            for _ in range(turns):
                await asyncio.sleep(0)
        assert await reader.read() == b""
    writer.close()


async def test_what_is_under_way_is_cancelled_before_the_server_has_ended(wire, listen, connect):
    begun, told = asyncio.Event(), []

    async def handle(_):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            told.append("cancelled")

    async with asyncio.timeout(5):
        async with wire.listening(partial(wire.serve, handle=handle), listen):
            reader, writer = await connect()
            writer.write(b"\0\0\0\x08" + b'{"id":1}')
            await begun.wait()
        assert told == ["cancelled"]
        assert await reader.read() == b""
    writer.close()


async def test_a_caller_that_reads_nothing_does_not_keep_its_server(wire, listen, connect):
    answered = asyncio.Event()

    async def answer(_, writer):
        writer.write(b"x" * 10_000_000)
        answered.set()

    async with asyncio.timeout(5):
        async with wire.listening(answer, listen):
            _, writer = await connect()
            await answered.wait()
    writer.close()


async def test_a_connection_that_fails_leaves_the_others_alone(wire, listen, connect):
    async def answer(reader, writer):
        if await reader.readline() == b"bad\n":
            raise ConnectionResetError
        writer.write(b"well")

    async with asyncio.timeout(5), wire.listening(answer, listen):
        for line, reply in ((b"bad\n", b""), (b"good\n", b"well")):
            reader, writer = await connect()
            writer.write(line)
            assert await reader.read() == reply
            writer.close()
