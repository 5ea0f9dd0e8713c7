"""What the camera's actuator sends, when it stops, and what it says of it."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from functools import partial

import pytest

from hardware.actuate.camera import CameraActuator, Chain, granted_seconds
from hardware.actuate.camera_stream import RequestLog, Session, StreamClient
from hardware.bench.instance import read_instance
from hardware.bench.recipient import Recipient
from hardware.wire import listening
from sink.decision import Action
from sink.ports import ActStatus, Frozen
from tests.unit.camera.fake_home import fake_home

ATTEMPT = "a" * 32
PATH = "/api/camera_proxy_stream/camera.hall"


@asynccontextmanager
async def display(frames=5):
    recipient = Recipient(frames)
    taken = asyncio.Event()

    async def take(reader, writer):
        await recipient.take("display.kitchen", reader, writer)
        taken.set()

    async with listening(take, partial(asyncio.start_server, host="127.0.0.1")) as server:
        yield recipient, server.sockets[0].getsockname()[1], taken


def client_for(url, folder):
    return StreamClient(url, "camera.hall", RequestLog(folder / "requests.jsonl"))


def noted(folder):
    lines = (folder / "requests.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


async def test_a_stream_is_one_get_and_ends_when_the_display_has_enough(tmp_path):
    async with fake_home() as home, display(5) as (recipient, port, taken):
        client = client_for(home.url, tmp_path)
        result = await client.deliver(Session(ATTEMPT, port, 6.0, None), "right")
        await taken.wait()
        assert result.status is ActStatus.DONE
        assert home.requests == [f"GET {PATH} HTTP/1.1"]
        assert home.secrets == ["right"]
        (session,) = recipient.sessions
        assert (session.attempt, session.recipient) == (ATTEMPT, "display.kitchen")
        assert session.satisfied
        async with asyncio.timeout(3):
            while not home.ended:
                await asyncio.sleep(0.01)
    assert [line["event"] for line in noted(tmp_path)] == ["sent", "answered"]
    assert "right" not in (tmp_path / "requests.jsonl").read_text()


async def test_the_end_of_a_grant_closes_the_open_stream(tmp_path):
    async with fake_home() as home, display(10_000) as (recipient, port, taken):
        client = client_for(home.url, tmp_path)
        began = time.monotonic()
        result = await client.deliver(Session(ATTEMPT, port, 6.0, 0.3), "right")
        assert time.monotonic() - began < 3
        await taken.wait()
        assert result.status is ActStatus.DONE
        assert "grant ended" in result.detail
        (session,) = recipient.sessions
        assert 0 < session.granted < 0.3
        assert not session.satisfied
        ended = await client.deliver(Session(ATTEMPT, port, 6.0, 0.0), "right")
        assert ended.status is ActStatus.REFUSED
        assert len(home.requests) == 1


async def test_a_session_has_an_end_without_any_grant(tmp_path):
    async with fake_home() as home, display(10_000) as (_, port, _taken):
        client = client_for(home.url, tmp_path)
        result = await client.deliver(Session(ATTEMPT, port, 0.3, None), "right")
        assert (result.status, "time was over" in result.detail) == (ActStatus.DONE, True)


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_a_refused_secret_is_not_sent_again(tmp_path, status):
    async with fake_home(behave=status) as home, display() as (recipient, port, _):
        client = client_for(home.url, tmp_path)
        session = Session(ATTEMPT, port, 1.0, None)
        for _ in range(3):
            result = await client.deliver(session, "old")
            assert result.status is ActStatus.REFUSED
            assert "old" not in result.detail
        assert home.secrets == ["old"]
        home.behave, home.token = "stream", "new"
        assert (await client.deliver(session, "new")).status is ActStatus.DONE
        assert home.secrets == ["old", "new"]
        assert len(recipient.sessions) == 1


@pytest.mark.parametrize(
    ("behave", "status"),
    [
        ("404 Not Found", ActStatus.REFUSED),
        ("503 Service Unavailable", ActStatus.REFUSED),
        ("500 Internal Server Error", ActStatus.REFUSED),
        ("redirect", ActStatus.REFUSED),
        ("hang up", ActStatus.IN_DOUBT),
        ("silent", ActStatus.IN_DOUBT),
        ("cut", ActStatus.DONE),
    ],
)
async def test_what_goes_wrong_is_said_and_nothing_else_is_asked(tmp_path, behave, status):
    async with fake_home(behave=behave) as home, display() as (_, port, _taken):
        result = await client_for(home.url, tmp_path).deliver(
            Session(ATTEMPT, port, 2.0, None), "right"
        )
        assert result.status is status
        assert result.detail
        assert home.requests == [f"GET {PATH} HTTP/1.1"]


async def test_a_display_that_reads_no_more_holds_nobody_up(tmp_path):
    over, gone = asyncio.Event(), asyncio.Event()

    async def stuck(reader, writer):
        await over.wait()
        writer.close()
        gone.set()

    listen = partial(asyncio.start_server, host="127.0.0.1", limit=1)
    async with listening(stuck, listen) as server, fake_home(per_second=5000.0) as home:
        port = server.sockets[0].getsockname()[1]
        client = client_for(home.url, tmp_path)
        async with asyncio.timeout(6):
            result = await client.deliver(Session(ATTEMPT, port, 0.5, None), "right")
        assert result.status is ActStatus.DONE
        over.set()
        await gone.wait()


async def test_nothing_is_opened_for_a_display_that_is_not_there(tmp_path):
    async with fake_home() as home:
        result = await client_for(home.url, tmp_path).deliver(
            Session(ATTEMPT, 9, 1.0, None), "right"
        )
        assert result.status is ActStatus.REFUSED
        assert home.requests == []
    assert (tmp_path / "requests.jsonl").read_text() == ""


async def test_an_absent_home_assistant_is_a_refusal(tmp_path):
    async with display() as (recipient, port, _):
        result = await client_for("http://127.0.0.1:9", tmp_path).deliver(
            Session(ATTEMPT, port, 1.0, None), "right"
        )
        assert result.status is ActStatus.REFUSED
        assert recipient.sessions == []


def frozen(**grant):
    base = {
        "service": "camera.open_stream", "target": "camera.hall", "status": "active",
        "not_before": "2026-04-17T16:00:00Z", "not_after": "2026-04-17T18:41:30Z",
    }  # fmt: skip
    grants = {"one": base | grant, "other": base | {"target": "camera.attic"}}
    return json.dumps({"as_of": "2026-04-17T18:40:00Z", "grants": grants}).encode()


@pytest.mark.parametrize(
    ("grant", "seconds"),
    [
        ({}, 90.0),
        ({"not_after": "2026-04-17T18:39:00Z"}, -60.0),
        ({"status": "revoked"}, None),
        ({"service": "camera.close_stream"}, None),
        ({"target": "camera.hall2"}, None),
    ],
)
def test_the_remaining_time_of_a_grant_is_counted_from_the_freeze(grant, seconds):
    assert granted_seconds(frozen(**grant), "camera.hall") == seconds


class FrozenWorld:
    """A world whose episode was frozen some time ago."""

    def __init__(self, age_seconds):
        self.age_seconds = age_seconds

    async def frozen(self, attempt):
        return Frozen(frozen(), "sha256:s", "e", "sha256:c", 1, self.age_seconds)


def chain_to(url, port, folder):
    (folder / "token").write_text("right")
    (folder / "token").chmod(0o600)
    path = folder / "instance.yaml"
    path.write_text(
        f"schema: retire.camera_bench/v1\nurl: {url}\nentity: camera.hall\ntarget: camera.hall\n"
        "sink_token: token\nobserver_token: token\napprovals: approvals.yaml\n"
    )
    return Chain(read_instance(path), {"display.kitchen": port})


@pytest.mark.parametrize(("age", "opened"), [(0.0, True), (89.0, True), (90.0, False)])
async def test_what_passed_since_the_freeze_is_used_up(tmp_path, age, opened):
    """The grant holds for 90 seconds."""
    async with fake_home() as home, display(3) as (recipient, port, taken):
        log = RequestLog(tmp_path / "requests.jsonl")
        actuator = CameraActuator(FrozenWorld(age), chain_to(home.url, port, tmp_path), log)
        action = Action("camera.open_stream", "camera.hall", {"recipient": "display.kitchen"})
        result = await actuator.act(ATTEMPT, 1, action)
        assert result.status is (ActStatus.DONE if opened else ActStatus.REFUSED)
        assert len(home.requests) == opened
        if opened:
            await taken.wait()
            (session,) = recipient.sessions
            assert session.granted <= 90.0 - age
