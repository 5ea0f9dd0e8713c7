"""What a fuzzer feeds bytes to; each target raises where the sink is not as it must be."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sink.proposal import Invalid, Proposal, RawAnswer, Refusal, ToolCall, parse, read_answer
from sink.record import GENESIS, Entry, make_entry
from sink.service import SinkService
from sink.wire import MAX_MESSAGE, serve
from tests import houses, naive
from tests.faults import reference
from tests.faults.rig import ATTEMPT, Collected, Rig, framed, snapshot_bytes
from tests.faults.scenes import KEY, OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

REVOKED = "cd" * 16
LOOP = asyncio.new_event_loop()


class FoundError(AssertionError):
    """The sink did what it must never do."""


def _require(condition: object, what: str, *told: object) -> None:
    if not condition:
        raise FoundError(f"{what}: {told!r:.2000}")


# --- the strict parser --------------------------------------------------------------------------


def parser(data: bytes) -> None:
    """Read bytes as a stored answer, as a text answer, and as a call's arguments."""
    answer = read_answer(data)
    if isinstance(answer, Invalid):
        _require(answer.rule, "an invalid answer names no rule", data)
    else:
        _agree(answer, _wanted(data), data)
    text = data.decode("utf-8", "surrogateescape")
    finished = RawAnswer(mode="json", text=text, finish_reason="stop")
    _agree(finished, _read(text), data)
    call = ToolCall(name="climate_set", arguments=text)
    called = RawAnswer(mode="tools", tool_calls=(call,), finish_reason="tool_calls")
    _agree(called, _read_call(text), data)


def _wanted(data: bytes) -> tuple[str, dict[str, Any]] | None:
    try:
        return naive.read_text_answer(reference.wanted_action(data.decode()))
    except (naive.NotUsableError, UnicodeDecodeError):
        return None


def _read(text: str) -> tuple[str, dict[str, Any]] | None:
    try:
        reference.strict_json(text)
        return naive.read_text_answer(text)
    except naive.NotUsableError:
        return None


def _read_call(text: str) -> tuple[str, dict[str, Any]] | None:
    try:
        given = reference.from_call([{"name": "climate_set", "arguments": text}])
        return naive.read_text_answer(given)
    except naive.NotUsableError:
        return None


def _agree(answer: RawAnswer, expected: tuple[str, dict[str, Any]] | None, data: bytes) -> None:
    parsed = parse(answer)
    match parsed:
        case Invalid():
            _require(parsed.rule, "an invalid answer names no rule", data)
        case Refusal():
            _require(isinstance(parsed.reason, str), "a refusal is no text", data)
        case Proposal():
            _require(expected is not None, "a proposal where the reference reads none", data)
    if expected is None:
        return
    _require(isinstance(parsed, Proposal), "the reference reads a proposal", data, parsed)
    assert isinstance(parsed, Proposal)
    tool, arguments = expected
    same = parsed.tool == tool and {k: _plain(v) for k, v in parsed.arguments.items()} == {
        k: _plain(v) for k, v in arguments.items()
    }
    _require(same, "the two readings differ", data, parsed, expected)


def _plain(value: object) -> tuple[str, object]:
    _require(isinstance(value, bool | int | str | Decimal | Fraction), "no plain value", value)
    if isinstance(value, Decimal):
        _require(value.is_finite(), "a number that is not finite", value)
        return ("number", Fraction(value))
    kind = (
        "number" if isinstance(value, int | Fraction) and not isinstance(value, bool) else "other"
    )
    return (kind, Fraction(value) if kind == "number" else value)


# --- the socket's framing and all behind it -----------------------------------------------------


class MemoryRecord:
    """A record that holds its entries in memory; durable as soon as it returns."""

    def __init__(self) -> None:
        self.seq = 0
        self.hash = GENESIS
        self.entries: list[Entry] = []

    def load(self) -> Iterable[Mapping[str, Any]]:
        return [entry.body for entry in self.entries]

    def recovery(self) -> None:
        return None

    async def append(self, body: Mapping[str, Any]) -> Entry:
        entry = make_entry(self.seq + 1, self.hash, body)
        await asyncio.sleep(0)
        self.entries.append(entry)
        self.seq, self.hash = entry.seq, entry.hash
        return entry

    def close(self) -> None:
        """There is nothing to release."""


class MemoryRig(Rig):
    """The rig without a disk."""

    def make_record(self) -> Any:
        return MemoryRecord()

    def on_disk(self) -> list[Mapping[str, Any]]:
        return [entry.body for entry in self.record.entries]


def framing(data: bytes) -> None:
    """Feed bytes to the socket's server; no act may follow that the reference denies.

    The first byte says how the rest is taken: ``F`` as messages that are framed rightly, ``A`` as
    the answer of a message that is right otherwise, anything else as the bytes of the stream.
    """
    rig = MemoryRig(Path())
    rig.freeze(snapshot_bytes())
    rig.freeze(snapshot_bytes(), OTHER)
    rig.freeze(snapshot_bytes((("/grants/boost/status", "revoked"),)), REVOKED)
    stream = stream_of(rig, data)
    rig.asked.extend(naive_messages(stream))
    replies = LOOP.run_until_complete(_served(rig, stream))
    for reply in replies:
        _require(isinstance(reply, dict), "a reply is no object", data)
        known = "error" in reply or "decision" in reply or set(reply) & {"head", "signer"}
        _require(known, "a reply of no known form", data, reply)
        if reply.get("decision") == "deny":
            _require(reply["reason"], "a deny without a reason", data, reply)
    acts = rig.world.acts
    _require(len({act.attempt for act in acts}) == len(acts), "an attempt acted twice", data)
    for act in acts:
        _require(act.was_recorded, "an act without a record", data, act)
        _require(act.was_authorized, "an act that the reference denies", data, act)


def stream_of(rig: Rig, data: bytes) -> bytes:
    """The bytes of the stream that an input stands for."""
    kind, rest = data[:1], data[1:]
    if kind == b"F":
        return b"".join(framed(part) for part in rest.split(b"\n\n"))
    if kind == b"A":
        text = rest.decode("utf-8", "surrogateescape")
        attempts = (ATTEMPT, REVOKED, OTHER)
        return b"".join(framed(rig.message(attempt=name, answer=text)) for name in attempts)
    return data


def naive_messages(stream: bytes) -> list[Any]:
    """The messages of a stream, up to the first frame that cannot be used."""
    found = []
    while len(stream) >= 4:
        length = int.from_bytes(stream[:4], "big")
        body, stream = stream[4 : 4 + length], stream[4 + length :]
        if length > MAX_MESSAGE or len(body) < length:
            break
        try:
            value = json.loads(body, object_pairs_hook=naive.once)
        except (ValueError, RecursionError, naive.NotUsableError):
            break
        if not isinstance(value, dict):
            break
        found.append(value)
    return found


async def _served(rig: Rig, stream: bytes) -> list[Any]:
    service = SinkService(rig.monitor, rig.record, KEY, str(rig.binding), {})
    reader, writer = asyncio.StreamReader(limit=2**21), Collected()
    reader.feed_data(stream)
    reader.feed_eof()
    await serve(reader, writer, service.answer)  # type: ignore[arg-type]  # a writer's part
    return writer.replies()


# --- where a fuzzer starts ----------------------------------------------------------------------

GOOD = {"target": "climate.den", "temperature": 26.5}


def parser_seeds() -> list[bytes]:
    """Answers of every form, right and nearly right."""
    texts = [
        json.dumps({"tool": "climate_set", "arguments": GOOD}),
        '{"tool":"climate_set","arguments":{"target":"climate.den","temperature":2.65e1}}',
        '{"tool":"a","arguments":{"b":true,"c":"\\u00e9\\ud83d\\ude00","d":-0.5,"e":[1,{}]}}',
        '{"refusal":"no"}',
        '{"a":{"b":1,"b":2},"c":[NaN,1e400,9007199254740993]}',
        json.dumps(GOOD),
        "[[[[{}]]]]",
    ]
    call = {"id": "c1", "name": "climate_set", "arguments": json.dumps(GOOD)}
    calls = {"mode": "tools", "tool_calls": [call], "finish_reason": "tool_calls"}
    stored = [houses.text_answer(text) for text in texts[:4]]
    counts = {"completion_tokens": 5, "max_tokens": 9}
    stored += [json.dumps(calls), json.dumps({**calls, "tool_calls": [call, call]})]
    stored.append(houses.text_answer(texts[0], **counts))
    return [text.encode() for text in (*texts, *stored)]


def framing_seeds() -> list[bytes]:
    """Streams, framed messages, and answers."""
    rig = MemoryRig(Path())
    rig.freeze(snapshot_bytes())
    right = json.dumps({**rig.message(), "id": 1}, separators=(",", ":")).encode()
    mild = houses.answer({"target": "climate.den", "temperature": 20})
    free = json.dumps({**rig.message(answer=mild), "id": 2}).encode()
    hello = b'{"op":"hello","id":3}'
    answers = [b"A" + seed for seed in parser_seeds() if seed.startswith(b'{"mode"')]
    return [
        framed(right),
        framed(right) + framed(hello) + framed(b'{"op":"head","id":4}'),
        framed(right)[:-9],
        b"F" + b"\n\n".join((right, free, hello)),
        b"F" + right + b"\n\n" + right,
        *answers,
        b"A" + mild.encode(),
    ]


TARGETS = {"parser": (parser, parser_seeds), "framing": (framing, framing_seeds)}
