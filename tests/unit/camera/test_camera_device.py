"""The stand-in camera: what it sends in each mode, and what it logs."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from functools import partial

import pytest

from hardware.camera.device import Boundary, Device, Manner, Mode
from hardware.sense.frames import View, read_stream, view_of
from hardware.wire import listening


@asynccontextmanager
async def device(mode=Mode.LIVE, **manner):
    behaviour = [mode]
    camera = Device(Manner(per_second=100, **manner), lambda: behaviour[0])
    async with listening(camera.serve, partial(asyncio.start_server, host="127.0.0.1")) as server:
        yield camera, server.sockets[0].getsockname()[1], behaviour


async def get(port, path, enough=40_000, method="GET"):
    """Return head and body, as far as they come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    data = b""
    try:
        async with asyncio.timeout(1):
            while len(data) < enough and (more := await reader.read(65536)):
                data += more
    except (TimeoutError, ConnectionError):
        pass
    writer.close()
    head, _, body = data.partition(b"\r\n\r\n")
    return head.decode(), body


def content_type(head):
    return next(line.split(": ", 1)[1] for line in head.splitlines() if "Content-Type" in line)


async def reading(mode, **manner):
    async with device(mode, **manner) as (_, port, _behaviour):
        head, body = await get(port, "/stream")
        return read_stream(content_type(head), [(0.0, body)], cut=True)


@pytest.mark.parametrize("boundary", list(Boundary))
@pytest.mark.parametrize("lengths", [True, False])
async def test_every_way_of_writing_is_readable(boundary, lengths):
    found = await reading(Mode.LIVE, boundary=boundary, lengths=lengths)
    assert found.whole
    assert view_of(found.ledger.frames) is View.LIVE
    assert len(found.ledger.distinct) == len(found.ledger.frames)


@pytest.mark.parametrize(
    ("mode", "view", "faults"),
    [
        (Mode.STUCK, View.REPEATED, False),
        (Mode.REPEATED, View.REPEATED, False),
        (Mode.PLACEHOLDER, View.REPEATED, False),
        (Mode.FROZEN, View.SILENT, False),
        (Mode.HTML, View.SILENT, True),
        (Mode.TRUNCATED, View.SILENT, True),
    ],
)
async def test_each_fault_shows_what_it_should(mode, view, faults):
    found = await reading(mode)
    assert view_of(found.ledger.frames[:8]) is view
    assert bool(found.faults) is faults


async def test_half_a_picture_ends_the_connection():
    async with device(Mode.HALF) as (_, port, _behaviour):
        head, body = await get(port, "/stream")
    found = read_stream(content_type(head), [(0.0, body)])
    assert found.ledger.frames == []
    assert found.faults


async def test_an_unplugged_camera_breaks_off_and_answers_nothing():
    async with device() as (_, port, behaviour):
        stream = asyncio.ensure_future(get(port, "/stream", enough=10**9))
        await asyncio.sleep(0.2)
        behaviour[0] = Mode.UNPLUGGED
        _, body = await stream
        assert body
        for path in ("/stream", "/still", "/sessions"):
            assert await get(port, path) == ("", b"")


async def test_the_log_says_who_opened_what():
    async with device() as (camera, port, _):
        await get(port, "/still")
        await get(port, "/stream", enough=20_000)
        _, body = await get(port, "/sessions")
        logged = json.loads(body)["sessions"]
        assert [item["path"] for item in logged] == ["/still", "/stream"]
        assert [item["seq"] for item in logged] == [1, 2]
        assert all(item["peer"].startswith("127.0.0.1:") for item in logged)
        assert len(camera.sessions) == 2


async def test_only_reading_is_offered():
    async with device() as (camera, port, _):
        for method, path in (("POST", "/stream"), ("PUT", "/sessions"), ("GET", "/mode")):
            head, _ = await get(port, path, method=method)
            assert head.startswith("HTTP/1.1 40")
        assert camera.sessions == []
