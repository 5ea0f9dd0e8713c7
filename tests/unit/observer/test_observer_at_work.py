"""The observer begins, ends, sweeps and signs; it believes nobody and is told nothing."""

from __future__ import annotations

import asyncio
import json
import os

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from observer.effect import Effect, StateReached, Transition
from observer.record import GENESIS, RecordError, RecordFile, chain_hash, load_or_create_key
from observer.recorder import Observer, Watched
from sink.record import Head, check_chain
from tests.unit.observer.fake_sensor import FakeSensor

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def watched(name, target):
    effect = Effect(
        schema="retire.effect/v1",
        bundle=name,
        intended=StateReached(kind="state", target=target, variable="lock", value="open"),
        protected=Transition(kind="transition", target=target, variable="lock", to="open"),
    )
    return Watched(effect, f"effect-{name}", f"contract-{name}")


FRONT, GARAGE = watched("front", "lock.front"), watched("garage", "cover.garage")


class Bench:
    """An observer over ground truth in memory and a record on disk."""

    def __init__(self, folder, sensor=None, settle=0.0):
        self.sensor = sensor or FakeSensor()
        self.path = folder / "record.jsonl"
        self.record = RecordFile(self.path)
        effects = {item.effect_digest: item for item in (FRONT, GARAGE)}
        self.observer = Observer(effects, self.sensor, self.record, KEY, settle)
        self.observer.start()

    async def ask(self, op, attempt="a", effect="effect-front", **fields):
        return await self.observer.answer(
            {"op": op, "attempt": attempt, "effect": effect, **fields}
        )

    def opens(self, attempt="a", target="lock.front", value="open"):
        self.sensor.happens(attempt, target, variable="lock", after=value)


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path)
    bench.sensor.begin("a", "contract-front")
    yield bench
    bench.record.close()


async def test_an_effect_is_sighted_and_recorded(bench):
    assert await bench.ask("begin") == {"ok": True}
    bench.opens()
    sighting = await bench.ask("end")
    assert (sighting["complete"], sighting["intended"], sighting["protected"]) == (True,) * 3
    assert sighting["protected_seqs"] == [1]
    [line] = bench.path.read_bytes().splitlines()
    assert json.loads(line)["hash"] == sighting["record"]["hash"]
    assert json.loads(line)["body"]["protected"] is True


async def test_nothing_in_the_journal_is_no_effect(bench):
    sighting = await bench.ask("end")
    assert (sighting["complete"], sighting["intended"], sighting["protected"]) == (
        True,
        False,
        False,
    )


async def test_an_episode_sees_its_own_journal_only(bench):
    bench.sensor.begin("b", "contract-front")
    bench.opens("b")
    assert (await bench.ask("end"))["protected"] is False
    assert (await bench.ask("end", "b"))["protected"] is True


@pytest.mark.parametrize(
    ("attempt", "effect"),
    [("a", "effect-garage"), ("a", "effect-unknown"), ("ghost", "effect-front"), ("a", None)],
)
async def test_a_begin_for_another_effect_or_no_attempt_is_refused(bench, attempt, effect):
    assert "error" in await bench.ask("begin", attempt, effect)
    bench.opens()
    sighting = await bench.ask("end", attempt, effect)
    assert sighting["complete"] is False
    assert sighting["evidence_class"] == "none"
    assert sighting["reason"]


async def test_a_runner_cannot_tell_it_what_to_see(bench):
    bench.opens()
    told = {"protected": False, "complete": True, "journal": [], "intended": False}
    assert (await bench.ask("end", **told))["protected"] is True


async def test_unreadable_ground_truth_is_incomplete_never_no_effect(bench):
    bench.opens()
    bench.sensor.fault = "the database is gone"
    assert "error" in await bench.ask("begin")
    sighting = await bench.ask("end")
    assert sighting["complete"] is False
    assert "gone" in sighting["reason"]
    assert "error" in await bench.ask("sweep")
    bench.sensor.fault = ""
    assert (await bench.ask("end"))["protected"] is True


async def test_a_late_effect_within_the_settle_window_is_seen(tmp_path):
    bench = Bench(tmp_path, settle=0.05)
    bench.sensor.begin("a", "contract-front")
    ending = asyncio.ensure_future(bench.ask("end"))
    await asyncio.sleep(0.005)
    bench.opens()
    assert (await ending)["protected"] is True
    bench.record.close()


async def test_an_effect_later_than_that_is_a_stray(bench):
    await bench.ask("end")
    bench.opens()
    assert (await bench.ask("sweep"))["stray"] == [{"attempt": "a", "seq": 1}]


async def test_a_sweep_finds_what_no_sighting_covers(bench):
    bench.opens()
    await bench.ask("end")
    bench.sensor.begin("b", "contract-garage")
    bench.opens("b", "lock.front")
    bench.opens("b", "cover.garage", "closed")
    bench.opens("b", "cover.garage")
    bench.opens("ghost", "lock.front")
    swept = await bench.ask("sweep")
    assert swept["stray"] == [{"attempt": "b", "seq": 4}, {"attempt": "ghost", "seq": 5}]
    assert swept["through"] == 5
    assert json.loads(bench.path.read_bytes().splitlines()[-1])["body"]["kind"] == "sweep"


async def test_an_incomplete_sighting_covers_nothing(bench):
    bench.opens()
    await bench.ask("end", effect="effect-garage")
    assert (await bench.ask("sweep"))["stray"] == [{"attempt": "a", "seq": 1}]


async def test_a_failed_second_look_takes_nothing_back(bench):
    bench.opens()
    await bench.ask("end")
    bench.sensor.fault = "silent"
    assert (await bench.ask("end"))["complete"] is False
    bench.sensor.fault = ""
    assert (await bench.ask("sweep"))["stray"] == []


async def test_a_sweep_reads_more_than_one_page(bench):
    for _ in range(5001):
        bench.opens(value="closed")
    bench.opens()
    swept = await bench.ask("sweep")
    assert (swept["through"], swept["stray"]) == (5002, [{"attempt": "a", "seq": 5002}])


async def test_what_was_sighted_is_known_after_a_restart(tmp_path):
    bench = Bench(tmp_path)
    bench.sensor.begin("a", "contract-front")
    bench.opens()
    await bench.ask("end")
    bench.record.close()
    again = Bench(tmp_path, bench.sensor)
    assert (await again.ask("sweep"))["stray"] == []
    again.record.close()


async def test_its_head_countersigns_and_verifies(bench):
    await bench.ask("end")
    said = (await bench.ask("head", countersign="sha256:" + "c" * 64))["head"]
    head = Head(**said)
    assert head.verifies()
    assert (head.signer, head.seq, head.countersigned) == ("observer", 1, "sha256:" + "c" * 64)
    assert str(check_chain(bench.path.read_bytes(), head).state) == "intact"
    hello = await bench.ask("hello")
    assert hello["key"] == head.key
    assert hello["effects"] == {"effect-front": "front", "effect-garage": "garage"}


@pytest.mark.parametrize("op", ["act", "reset", "watch", None, 3, ["end"]])
async def test_nothing_else_can_be_asked(bench, op):
    assert set(await bench.ask(op)) == {"error"}


@pytest.mark.parametrize("field", ["attempt", "effect", "countersign"])
async def test_half_a_character_names_nothing(bench, field):
    for op in ("begin", "end", "head", "sweep"):
        assert "error" in await bench.ask(**{"op": op, field: "\ud800"})
    assert bench.path.read_bytes() == b""


async def test_a_record_that_cannot_be_written_is_an_error_not_a_sighting(bench, monkeypatch):
    def fails(*_):
        raise RecordError("no space left on device")

    monkeypatch.setattr(bench.record, "append", fails)
    assert set(await bench.ask("end")) == {"error"}


# --- the record on disk -------------------------------------------------------------------------


def lines(count):
    prev, found = GENESIS, []
    for seq in range(1, count + 1):
        body = {"kind": "sighting", "attempt": "a", "complete": True, "last_seq": seq}
        own = chain_hash(seq, prev, body)
        value = {"seq": seq, "prev": prev, "body": body, "hash": own}
        found.append(json.dumps(value, separators=(",", ":")).encode() + b"\n")
        prev = own
    return found


def test_a_torn_end_is_recorded_as_recovery(tmp_path):
    path = tmp_path / "record.jsonl"
    path.write_bytes(b"".join(lines(3))[:-5])
    record = RecordFile(path)
    assert len(list(record.load())) == 2
    record.close()
    bodies = [json.loads(line)["body"] for line in path.read_bytes().splitlines()]
    assert bodies[2]["kind"] == "recovery"
    assert len([item for item in tmp_path.iterdir() if "torn" in item.name]) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"{}\n",
        b"[]\n",
        b"null\n",
        b"\xff\n",
        b'{"seq":1,"prev":"a","body":"text","hash":"b"}\n',
        b'{"seq":1,"prev":"a","body":{"x":NaN},"hash":"b"}\n',
        b"[" * 100_000 + b"\n",
        lines(2)[1],
        lines(1)[0] * 2,
        lines(1)[0].replace(b"true", b"false"),
    ],
)
def test_a_record_that_does_not_chain_stops_the_start(tmp_path, data):
    path = tmp_path / "record.jsonl"
    path.write_bytes(data)
    record = RecordFile(path)
    with pytest.raises(RecordError):
        list(record.load())
    record.close()


def test_the_record_has_one_writer_and_the_key_is_kept(tmp_path):
    record = RecordFile(tmp_path / "record.jsonl")
    with pytest.raises(RecordError):
        RecordFile(tmp_path / "record.jsonl")
    record.close()
    key = load_or_create_key(tmp_path / "key")
    assert load_or_create_key(tmp_path / "key").private_bytes_raw() == key.private_bytes_raw()
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


def test_a_short_write_leaves_no_trace(tmp_path, monkeypatch):
    record = RecordFile(tmp_path / "record.jsonl")
    record.append({"n": 1})
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:10]))
    with pytest.raises(RecordError):
        record.append({"n": 2})
    monkeypatch.undo()
    record.append({"n": 3})
    record.close()
    again = RecordFile(tmp_path / "record.jsonl")
    assert list(again.load()) == [{"n": 1}, {"n": 3}]
    again.close()
