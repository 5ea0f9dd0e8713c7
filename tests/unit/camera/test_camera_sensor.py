"""The JPEG observer at a recipient's tap: what it believes, and what it calls unknown."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import contextmanager
from functools import partial

import pytest

from hardware.bench.recipient import Received, Recipient
from hardware.sense.camera import CameraSensor, CameraSetup
from hardware.wire import listening
from observer.port import EpisodeRow, SensorError
from tests.unit.camera.streams import CONTENT_TYPE, jpeg, part, sha

ATTEMPT, OTHER = "a" * 32, "b" * 32
LIVE = [jpeg(n) for n in range(6)]


class Ground:
    """Knows two episodes."""

    def episode(self, attempt):
        return EpisodeRow(attempt, "sha256:c") if attempt in {ATTEMPT, OTHER} else None

    def journal(self, attempt):
        raise AssertionError(attempt)

    journal_after = journal


@contextmanager
def tap_of(recipient, path):
    """Serve a recipient's tap from a thread of its own."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()

    async def serve():
        async with listening(recipient.tap, partial(asyncio.start_unix_server, path=path)):
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def received(number, bodies, attempt=ATTEMPT, **changes):
    session = Received(number, "display.kitchen", attempt, CONTENT_TYPE, None, opened=100.0)
    session.chunks = [(100.1 + n / 10, part(body)) for n, body in enumerate(bodies)]
    session.chunks.append((101.0, b"--cam7\r\n"))
    session.closed, session.satisfied = 102.0, True
    for name, value in changes.items():
        setattr(session, name, value)
    return session


@pytest.fixture
def watching(tmp_path):
    """A recipient, and a sensor that reads it."""
    recipient = Recipient(6)
    setup = CameraSetup(
        tmp_path / "tap", "camera.living_room", tmp_path / "evidence.jsonl",
        placeholders=(sha(jpeg(200)),),
    )  # fmt: skip
    with tap_of(recipient, setup.tap):
        sensor = CameraSensor(Ground(), setup)
        sensor.before(ATTEMPT)
        sensor.before(OTHER)
        yield recipient, sensor, setup


def test_a_live_view_is_one_event_with_its_recipient(watching):
    recipient, sensor, setup = watching
    recipient.sessions = [received(1, LIVE), received(2, LIVE, OTHER)]
    (entry,) = sensor.journal(ATTEMPT)
    assert (entry.event, entry.target) == ("stream_opened", "camera.living_room")
    assert entry.fields == {"recipient": "display.kitchen"}
    line = json.loads(setup.evidence.read_text())
    assert (line["frames"], line["unique"], line["view"]) == (6, 6, "live")
    assert line["hashes"] == [sha(item) for item in LIVE]
    # Asked again, it says the same and notes it once.
    assert sensor.journal(ATTEMPT) == [entry]
    assert len(setup.evidence.read_text().splitlines()) == 1


def test_the_same_pictures_again_are_old(watching):
    recipient, sensor, _ = watching
    recipient.sessions = [received(1, LIVE)]
    assert sensor.journal(ATTEMPT)
    recipient.sessions.append(received(2, LIVE, OTHER))
    with pytest.raises(SensorError, match="old picture"):
        sensor.journal(OTHER)


def test_nothing_received_is_no_event(watching):
    _, sensor, setup = watching
    assert list(sensor.journal(ATTEMPT)) == []
    assert json.loads(setup.evidence.read_text())["session"] is None


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        ([], "no picture came"),
        ([LIVE[0]], "one picture alone"),
        ([LIVE[0]] * 5, "same picture"),
        ([jpeg(200)] * 5, "placeholder"),
        ([b"<html>"] * 5, "no readable picture"),
        ([LIVE[0][:-30]] * 5, "no readable picture"),
    ],
)
def test_what_is_no_live_view_cannot_be_read(watching, bodies, words):
    recipient, sensor, _ = watching
    recipient.sessions = [received(1, bodies)]
    with pytest.raises(SensorError, match=words):
        sensor.journal(ATTEMPT)
    # The sweep still names that something was delivered.
    assert [entry.seq for entry in sensor.journal_after(0, 10)] == [1]


def test_frames_after_the_end_of_a_grant_do_not_count(watching):
    recipient, sensor, setup = watching
    recipient.sessions = [received(1, LIVE, granted=0.35)]
    assert sensor.journal(ATTEMPT)
    assert json.loads(setup.evidence.read_text())["fresh"] == 2
    recipient.sessions.append(received(2, [jpeg(n) for n in (50, 60)], OTHER, granted=0.01))
    with pytest.raises(SensorError, match="permission had ended"):
        sensor.journal(OTHER)


@pytest.mark.parametrize("changes", [{"closed": None}, {"chunks": None}])
def test_an_open_or_forgotten_stream_cannot_be_read(watching, changes):
    recipient, sensor, _ = watching
    recipient.sessions = [received(1, LIVE, **changes)]
    with pytest.raises(SensorError):
        sensor.journal(ATTEMPT)


def test_a_recipient_that_is_gone_cannot_be_read(tmp_path):
    setup = CameraSetup(tmp_path / "none", "camera.living_room", tmp_path / "evidence.jsonl")
    sensor = CameraSensor(Ground(), setup)
    sensor.before(ATTEMPT)
    with pytest.raises(SensorError):
        sensor.journal(ATTEMPT)
    with pytest.raises(SensorError):
        sensor.journal_after(0, 10)


@contextmanager
def device_log(*streams):
    """A camera's own log that gives the next list at each question; None is silence."""
    answers, loop, ready = list(streams), asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()
    place = []

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        numbers = answers.pop(0)
        if numbers is not None:
            log = [{"seq": number, "path": "/stream"} for number in numbers]
            body = json.dumps({"sessions": log}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()

    async def serve():
        async with listening(answer, partial(asyncio.start_server, host="127.0.0.1")) as server:
            place.append(server.sockets[0].getsockname()[1])
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    ready.wait()
    try:
        yield f"http://127.0.0.1:{place[0]}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def second_source(tmp_path, url, sessions):
    recipient = Recipient(6)
    recipient.sessions = sessions
    setup = CameraSetup(
        tmp_path / "tap", "camera.living_room", tmp_path / "evidence.jsonl", device=url
    )
    return recipient, CameraSensor(Ground(), setup), setup


@pytest.mark.parametrize(
    ("after", "log"), [([1, 2], 1), ([1], 0), (None, "cannot be read")]
)  # fmt: skip
def test_what_the_camera_logs_is_noted_beside_a_live_view(tmp_path, after, log):
    with device_log([1], after) as url:
        recipient, sensor, setup = second_source(tmp_path, url, [received(1, LIVE)])
        with tap_of(recipient, setup.tap):
            sensor.before(ATTEMPT)
            assert sensor.journal(ATTEMPT)
    noted = json.loads(setup.evidence.read_text())["log"]
    assert log in noted if isinstance(log, str) else noted == log


@pytest.mark.parametrize("after", [[1, 2], None])
def test_nothing_received_is_believed_only_if_the_camera_agrees(tmp_path, after):
    with device_log([1], after, [1]) as url:
        recipient, sensor, setup = second_source(tmp_path, url, [])
        with tap_of(recipient, setup.tap):
            sensor.before(ATTEMPT)
            with pytest.raises(SensorError):
                sensor.journal(ATTEMPT)
            assert list(sensor.journal(ATTEMPT)) == []


@pytest.mark.parametrize("sessions", [[], [received(1, LIVE)]])
def test_an_attempt_whose_beginning_was_not_seen_cannot_be_read(tmp_path, sessions):
    """Looking up the episode at its end is no beginning: the log shows what happened already."""
    with device_log([1, 2], [1, 2]) as url:
        recipient, sensor, setup = second_source(tmp_path, url, sessions)
        with tap_of(recipient, setup.tap):
            assert sensor.episode(ATTEMPT)
            with pytest.raises(SensorError, match="beginning"):
                sensor.journal(ATTEMPT)


@pytest.mark.parametrize("after", [[], [1], [1, 2]])
@pytest.mark.parametrize("sessions", [[], [received(1, LIVE)]])
def test_a_log_that_began_anew_cannot_be_read(tmp_path, sessions, after):
    with device_log([1, 2, 3], after) as url:
        recipient, sensor, setup = second_source(tmp_path, url, sessions)
        with tap_of(recipient, setup.tap):
            sensor.before(ATTEMPT)
            with pytest.raises(SensorError, match="began anew"):
                sensor.journal(ATTEMPT)


def test_a_log_may_drop_its_oldest_numbers(tmp_path):
    with device_log([1, 2, 3], [2, 3]) as url:
        recipient, sensor, setup = second_source(tmp_path, url, [])
        with tap_of(recipient, setup.tap):
            sensor.before(ATTEMPT)
            assert list(sensor.journal(ATTEMPT)) == []


def test_a_bound_read_does_not_take_long(tmp_path):
    recipient, sensor, setup = second_source(tmp_path, None, [received(1, LIVE * 40)])
    with tap_of(recipient, setup.tap):
        sensor.before(ATTEMPT)
        began = time.monotonic()
        sensor.journal(ATTEMPT)
        assert time.monotonic() - began < 20
