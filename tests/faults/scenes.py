"""Faults that need more than one message, a restart, a full disk, or bytes on the socket."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sink.contract import load_contract
from sink.record import digest
from sink.record_file import RecordError, RecordFile
from sink.service import SinkService
from sink.strict_yaml import DocumentError
from sink.wire import MAX_MESSAGE, serve
from tests import houses
from tests.faults.rig import ATTEMPT, CONTRACT_BYTES, Collected, Rig, framed, snapshot_bytes

OTHER = "ab" * 16
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
Replies = list[Mapping[str, Any]]


@dataclass(frozen=True)
class Scene:
    """A fault with its own course; the replies are told in the order of the asking."""

    what: str
    play: Callable[[Rig], Awaitable[Replies]]
    acts: int = 0
    """How many acts are right all the same."""
    hangs: bool = False


def stopped(why: str) -> Mapping[str, Any]:
    """What is told where no sink answers."""
    return {"decision": "none", "reason": why}


async def _together(rig: Rig, count: int) -> Replies:
    return list(await asyncio.gather(*(rig.ask() for _ in range(count))))


async def two_workers(rig: Rig) -> Replies:
    return await _together(rig, 2)


async def many_workers(rig: Rig) -> Replies:
    rig.world.yields = 3
    return await _together(rig, 64)


async def after_restart(rig: Rig) -> Replies:
    first = await rig.ask()
    await rig.restart()
    return [first, await rig.ask()]


async def after_time_out(rig: Rig) -> Replies:
    rig.world.hangs_when = "before act"
    first = await rig.ask()
    rig.world.hangs_when = ""
    return [first, await rig.ask()]


async def other_target(rig: Rig) -> Replies:
    first = await rig.ask()
    answer = houses.answer({"target": "climate.hall", "temperature": 26.5})
    return [first, await rig.ask(answer=answer)]


async def free_band_then_authority(rig: Rig) -> Replies:
    answer = houses.answer({"target": "climate.den", "temperature": 20})
    return [await rig.ask(answer=answer), await rig.ask()]


async def second_sink(rig: Rig) -> Replies:
    try:
        RecordFile(rig.path).close()
    except RecordError:
        return [stopped("does not start")]
    return [stopped("starts")]


async def withdrawn(rig: Rig) -> Replies:
    rig.world.moves = True
    return [await rig.ask()]


async def withdrawn_then_again(rig: Rig) -> Replies:
    rig.world.moves = True
    first = await rig.ask()
    rig.world.moves = False
    return [first, await rig.ask()]


async def refrozen_without_consent(rig: Rig) -> Replies:
    """The same attempt, frozen anew: the digest of the message no longer fits."""
    message = rig.message()
    rig.freeze(snapshot_bytes((("/consents/warm/votes/person.ann/answer", "no"),)))
    rig.asked.append(message)
    return [await rig.monitor.handle(message)]


@contextmanager
def _room(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def no_room(rig: Rig) -> Replies:
    with _room(0):
        return [await rig.ask()]


async def room_for_half_an_intent(rig: Rig) -> Replies:
    with _room(200):
        first = await rig.ask()
    rig.freeze(snapshot_bytes(), OTHER)
    return [first, await rig.ask(), await rig.ask(attempt=OTHER)]


async def room_for_the_intent_only(rig: Rig) -> Replies:
    await rig.ask(episode=digest(b"x"))
    size = rig.path.stat().st_size
    with _room(size + 1200):
        return [await rig.ask()]


async def record_lost_its_descriptor(rig: Rig) -> Replies:
    writable = os.dup(rig.record._fd)
    readable = os.open(rig.path, os.O_RDONLY)
    os.dup2(readable, rig.record._fd)
    try:
        return [await rig.ask()]
    finally:
        os.dup2(writable, rig.record._fd)
        os.close(writable)
        os.close(readable)


async def record_changed(rig: Rig) -> Replies:
    await rig.ask(episode=digest(b"x"))
    whole = rig.path.read_bytes()
    rig.path.write_bytes(whole.replace(b"deny", b"allw", 1))
    try:
        await rig.restart()
    except RecordError:
        return [stopped("does not start")]
    return [await rig.ask()]


async def record_cut(rig: Rig) -> Replies:
    """A write that never ended: its bytes are put aside, and that is on record."""
    first = await rig.ask()
    with rig.path.open("ab") as file:
        file.write(b'{"seq":3,"prev":"sha256:00')
    await rig.restart()
    return [first, await rig.ask()]


async def cut_contract(rig: Rig) -> Replies:
    try:
        load_contract(CONTRACT_BYTES[: len(CONTRACT_BYTES) // 2], "contract.yaml")
    except DocumentError:
        return [stopped("does not start")]
    return [stopped("starts")]


async def shortened_contract(rig: Rig) -> Replies:
    """A contract that lost its last predicate is another contract, with another digest."""
    data = json.loads(CONTRACT_BYTES)
    data["predicates"].pop()
    short = houses.file_bytes(data)
    rig.contracts.clear()
    rig.contracts[digest(short)] = load_contract(short, "contract.yaml")
    return [await rig.ask(), await rig.ask(contract=digest(short))]


async def over_socket(rig: Rig, data: bytes) -> Replies:
    """Feed bytes to the socket's server, in memory."""
    service = SinkService(rig.monitor, rig.record, KEY, str(rig.binding), {})
    reader = asyncio.StreamReader(limit=2**21)
    reader.feed_data(data)
    reader.feed_eof()
    writer = Collected()
    await serve(reader, writer, service.answer)  # type: ignore[arg-type]  # a writer's part
    return writer.replies() or [stopped("connection ends")]


def _sent(rig: Rig, **fields: Any) -> bytes:
    message = rig.message(**fields)
    rig.asked.append(message)
    return framed({**message, "id": 1})


async def message_cut(rig: Rig) -> Replies:
    return await over_socket(rig, _sent(rig)[:-40])


async def message_too_large(rig: Rig) -> Replies:
    return await over_socket(rig, _sent(rig, padding="x" * MAX_MESSAGE))


async def message_with_wrong_length(rig: Rig) -> Replies:
    data = _sent(rig)
    return await over_socket(rig, (len(data) - 5).to_bytes(4, "big") + data[4:])


async def message_no_json(rig: Rig) -> Replies:
    return await over_socket(rig, framed(b"\xff\xfe{}"))


async def message_key_twice(rig: Rig) -> Replies:
    data = _sent(rig)[4:]
    return await over_socket(rig, framed(b'{"answer":"",' + data[1:]))


async def message_with_a_mode(rig: Rig) -> Replies:
    """A message can bring no mode, no fact and no contract: such keys are not read."""
    stale = snapshot_bytes((("/grants/boost/status", "revoked"),))
    rig.freeze(stale)
    grants = {"boost": {"status": "active"}}
    return await over_socket(rig, _sent(rig, mode="allow", grants=grants, dry_run=True))


async def message_then_garbage(rig: Rig) -> Replies:
    return await over_socket(rig, _sent(rig) + b"\xff\xff\xff\xff")


async def other_operation(rig: Rig) -> Replies:
    replies = await over_socket(rig, framed({**rig.message(), "op": "act", "id": 1}))
    return [stopped(reply["error"]) if "error" in reply else reply for reply in replies]


SCENES: dict[str, tuple[Scene, ...]] = {
    "Replay": (
        Scene("two workers at once", two_workers, acts=1),
        Scene("64 workers at once", many_workers, acts=1),
        Scene("after a restart", after_restart, acts=1),
        Scene("after a time-out that sent nothing", after_time_out, hangs=True),
        Scene("the same attempt with another target", other_target, acts=1),
        Scene("a free-band act, then one that needs authority", free_band_then_authority, acts=1),
        Scene("a second sink on the same record", second_sink),
    ),
    "Between decision and act": (
        Scene("consent withdrawn: the world's revision moved", withdrawn),
        Scene("the same, and the proposal comes again", withdrawn_then_again),
        Scene("consent withdrawn before the decision, world frozen anew", refrozen_without_consent),
    ),
    "Record": (
        Scene("not writable", record_lost_its_descriptor),
        Scene("disk full", no_room),
        Scene("disk full within the intent, then room again", room_for_half_an_intent, acts=1),
        Scene("disk full after the intent", room_for_the_intent_only, acts=1),
        Scene("an old entry was changed", record_changed),
        Scene("last line cut by a crash", record_cut, acts=1),
    ),
    "Contract": (
        Scene("cut in the middle", cut_contract),
        Scene("cut after a predicate, still well formed", shortened_contract),
    ),
    "Message on the socket": (
        Scene("cut", message_cut),
        Scene("too large", message_too_large),
        Scene("wrong length", message_with_wrong_length),
        Scene("not JSON", message_no_json),
        Scene("a key twice", message_key_twice),
        Scene("brings a mode, a grant and a flag", message_with_a_mode),
        Scene("right, then garbage", message_then_garbage, acts=1),
        Scene("another operation", other_operation),
    ),
}
"""Every fault with a course of its own, by group."""

__all__ = ["ATTEMPT", "SCENES", "Scene"]
