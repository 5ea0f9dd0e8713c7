"""The sink's socket: what it answers, and that no bytes on it end the process."""

from __future__ import annotations

import asyncio
import json

import pytest

from sink.keys import load_or_create
from sink.record import Head, check_chain
from sink.service import SinkService
from sink.wire import MAX_MESSAGE
from tests.unit.sink.fake_world import CONTRACT_DIGEST, Door


@pytest.fixture
async def served(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    key = load_or_create(tmp_path / "key")
    service = SinkService(
        door.monitor, door.record, key, "canonical", {CONTRACT_DIGEST: "DEN_HEAT"}
    )
    stop = asyncio.Event()
    path = tmp_path / "socket"
    listening = asyncio.ensure_future(service.listen(path, stop))
    while not path.exists():
        await asyncio.sleep(0)
    yield door, path
    stop.set()
    await listening
    door.record.close()


def framed(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return len(data).to_bytes(4, "big") + data


async def read_reply(reader):
    length = int.from_bytes(await reader.readexactly(4), "big")
    return json.loads(await reader.readexactly(length))


async def exchange(path, *messages):
    reader, writer = await asyncio.open_unix_connection(path)
    for message in messages:
        writer.write(framed(message))
    replies = [await read_reply(reader) for _ in messages]
    writer.close()
    await writer.wait_closed()
    return replies


async def test_it_decides_signs_its_head_and_says_who_it_is(served):
    door, path = served
    [decided] = await exchange(path, {**door.message(), "id": 1})
    assert (decided["id"], decided["decision"]) == (1, "allow")
    hello, signed = await exchange(path, {"op": "hello", "id": 2}, {"op": "head", "id": 3})
    assert hello["contracts"] == {CONTRACT_DIGEST: "DEN_HEAT"}
    head = Head(**signed["head"])
    assert head.verifies()
    assert head.key == hello["key"]
    assert head.seq == 2
    assert str(check_chain(door.path.read_bytes(), head).state) == "intact"


@pytest.mark.parametrize("op", ["act", "reset", "mode", "load", None, 7, ["propose"]])
async def test_nothing_else_can_be_asked(served, op):
    door, path = served
    [reply] = await exchange(path, {**door.message(), "op": op, "id": 1})
    assert set(reply) == {"error", "id"}
    assert door.world.sent == []


async def test_answers_carry_the_id_of_their_question(served):
    door, path = served
    messages = [{**door.message(), "id": n} for n in range(20)]
    replies = await exchange(path, *messages)
    assert sorted(reply["id"] for reply in replies) == list(range(20))
    assert [reply["decision"] for reply in replies].count("allow") == 1


GARBAGE = [
    b"",
    b"\x00",
    b"\x00\x00\x00",
    b"\x00\x00\x00\x00",
    b"\x00\x00\x00\x05{}",
    b"\xff\xff\xff\xff" + b"x" * 100,
    (MAX_MESSAGE + 1).to_bytes(4, "big") + b"{}",
    framed(b"not json"),
    framed(b"\xff\xfe"),
    framed(b"[]"),
    framed(b"null"),
    framed(b'"propose"'),
    framed(b'{"op":"hello","op":"head","id":1}'),
    framed(b"[" * 100_000),
    framed(b'{"op":' * 50_000),
    framed(b'{"op":"hello","id":' + b"[" * 900 + b"]" * 900 + b"}"),
    framed(b'{"op":"hello","id":' + b"1" * 5000 + b"}"),
    framed(b'{"op":"propose","attempt":"\\ud800","id":"\\ud800"}'),
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
async def test_garbage_ends_its_connection_and_nothing_else(served, data):
    door, path = served
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(data)
    if writer.can_write_eof():
        writer.write_eof()
    await asyncio.wait_for(reader.read(), 5)
    writer.close()
    assert door.world.sent == []
    [reply] = await exchange(path, {**door.message(), "id": 1})
    assert reply["decision"] == "allow"


async def test_a_caller_that_hangs_up_does_not_stop_a_decision(served):
    door, path = served
    _, writer = await asyncio.open_unix_connection(path)
    writer.write(framed({**door.message(), "id": 1}))
    await writer.drain()
    writer.close()
    while len(door.recorded) < 2:
        await asyncio.sleep(0.001)
    assert [entry["kind"] for entry in door.recorded] == ["decision", "outcome"]
    [reply] = await exchange(path, {**door.message(), "id": 2})
    assert reply["reason"] == "grant_replayed"


async def test_a_bad_frame_does_not_cut_what_is_under_way(served):
    door, path = served
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(framed({**door.message(), "id": 1}) + framed(b"garbage"))
    reply = await asyncio.wait_for(read_reply(reader), 5)
    assert (reply["id"], reply["decision"], reply["act"]["status"]) == (1, "allow", "done")
    writer.close()
