"""Event streams, and a real server: following, coming back, hanging up, stopping."""

from __future__ import annotations

import asyncio
import threading
import time

import httpx
import pytest

from retire.domain.errors import InputError
from retire.service.events import stream
from retire.service.port import Event
from retire.service.server import build_server, listen, serve
from retire.service.settings import ServiceSettings
from tests.unit.service.fake_keeper import House
from tests.unit.service.living import living
from tests.unit.service.test_access_to_the_service import BODY, problem


async def test_an_ended_run_tells_what_was_missed_and_then_sends_clients_away(house) -> None:
    house.keeper.start("t-pipeline")
    house.keeper.tell("r1")
    house.keeper.tell("r1")
    house.keeper.finish("r1")
    async with house.client() as client:
        answer = await client.get("/runs/r1/events", headers={"Last-Event-ID": "1"})
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.text == (
            "retry: 2000\n\n"
            'id: 2\nevent: progress\ndata: {"cells_done":2}\n\n'
            'id: 3\nevent: end\ndata: {"verdict":"fail"}\n\n'
        )
        answer = await client.get("/runs/r1/events", headers={"Last-Event-ID": "3"})
        assert answer.status_code == 204
        answer = await client.get("/runs/r1/events", headers={"Last-Event-ID": "x"})
        problem(answer, "invalid-request")


async def test_a_stream_follows_the_run_and_comments_while_nothing_happens(house) -> None:
    house.keeper.start("t-pipeline")
    body = stream(None, house.keeper.events("r1", 0), asyncio.Event(), 0.01)
    assert await anext(body) == b"retry: 2000\n\n"
    assert await anext(body) == b": still here\n\n"
    house.keeper.tell("r1")
    house.keeper.finish("r1")
    told = [piece async for piece in body if not piece.startswith(b":")]
    assert [piece.splitlines()[1] for piece in told] == [b"event: progress", b"event: end"]


async def test_a_stream_that_nobody_reads_any_more_ends_its_source(house) -> None:
    ended = asyncio.Event()

    async def source():
        try:
            yield Event(1, "progress", {})
            await asyncio.Event().wait()
        finally:
            ended.set()

    body = stream(None, source(), asyncio.Event(), 5)
    for _ in range(2):
        await anext(body)
    await asyncio.sleep(0)
    await body.aclose()
    await ended.wait()


async def test_a_token_may_hold_so_many_streams_open() -> None:
    house = House(ServiceSettings(streams_per_token=1))
    house.keeper.start("t-pipeline")
    async with house.client() as client:
        following = asyncio.create_task(client.get("/runs/r1/events"))
        while not house.app.state.services.streams.total:
            await asyncio.sleep(0)
        refused = await client.get("/runs/r1/events")
        assert refused.status_code == 429
        problem(refused, "too-many-streams")
        house.keeper.finish("r1")
        await following
        house.keeper.start("t-pipeline")
        house.keeper.finish("r2")
        assert (await client.get("/runs/r2/events")).status_code == 200


def as_pipeline(house: House, address: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {house.secrets['pipeline']}"}
    return httpx.Client(base_url=address, headers=headers, timeout=20)


def test_a_stream_that_is_hung_up_on_is_let_go(house) -> None:
    house.keeper.start("t-pipeline")
    with living(house) as address, as_pipeline(house, address) as client:
        with client.stream("GET", "/runs/r1/events") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "retry: 2000"
            assert "retire_event_streams 1.0" in client.get("/metrics").text
        for _ in range(200):
            if "retire_event_streams 0.0" in client.get("/metrics").text:
                break
            time.sleep(0.02)
        else:
            pytest.fail("the stream is still counted")


def test_stopping_ends_streams_and_waits_in_order(house) -> None:
    house.keeper.start("t-pipeline")
    texts: list[str] = []
    codes: list[int] = []

    def follow(address: str) -> None:
        with as_pipeline(house, address) as client:
            texts.append(client.get("/runs/r1/events").text)

    def wait(address: str) -> None:
        with as_pipeline(house, address) as client:
            answer = client.post("/certify", json=BODY, headers={"Prefer": "wait=50"})
            codes.append(answer.status_code)

    with living(house) as address, as_pipeline(house, address) as client:
        threads = [threading.Thread(target=call, args=(address,)) for call in (follow, wait)]
        for thread in threads:
            thread.start()
        while len(house.keeper.rows) < 2 or "streams 1.0" not in client.get("/metrics").text:
            time.sleep(0.02)
    for thread in threads:
        thread.join(20)
    assert texts == ["retry: 2000\n\n"]
    assert codes == [202]


def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    house = House(ServiceSettings(body_time=0.2))

    def slow():
        yield b"{"
        time.sleep(1)
        yield b"}"

    with living(house) as address, as_pipeline(house, address) as client:
        headers = {"Content-Type": "application/json"}
        answer = client.post("/certify", content=slow(), headers=headers)
        assert answer.status_code == 408
        problem(answer, "body-too-slow")


def test_an_address_in_use_is_an_error_that_says_so(house) -> None:
    with listen("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError) as caught:
            serve(house.app, "127.0.0.1", port)
    assert str(port) in caught.value.where


def test_a_server_listens_on_this_machine_alone_unless_told(house) -> None:
    assert serve.__defaults__ is not None
    assert serve.__defaults__[0] == "127.0.0.1"
    assert build_server(house.app).config.proxy_headers is False
