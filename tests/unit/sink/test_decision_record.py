"""The record: what a check of it can tell apart, and what the file on disk survives."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sink.keys import load_or_create
from sink.record import GENESIS, ChainState, check_chain, make_entry, parse_line, sign_head
from sink.record_file import RecordError, RecordFile

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))


def chain(count=6, start=1, prev=GENESIS, mark=""):
    entries = []
    for seq in range(start, start + count):
        entry = make_entry(seq, prev, {"kind": "decision", "n": seq, "mark": mark})
        entries.append(entry)
        prev = entry.hash
    return entries


ENTRIES = chain()
LINES = [entry.line() for entry in ENTRIES]
WHOLE = b"".join(LINES)
HEAD = sign_head(KEY, "sink/canonical", 6, ENTRIES[-1].hash)


def state(data, head=HEAD):
    return check_chain(data, head).state


def test_the_whole_record_is_intact_up_to_its_head():
    report = check_chain(WHOLE, HEAD)
    assert report.state is ChainState.INTACT
    assert report.entries == tuple(ENTRIES)


def test_entries_deleted_at_the_end_are_truncated():
    report = check_chain(b"".join(LINES[:4]), HEAD)
    assert report.state is ChainState.TRUNCATED
    assert "4 of 6" in report.detail


@pytest.mark.parametrize("data", [None, b""])
def test_a_deleted_or_emptied_record_is_missing(data):
    assert state(data) is ChainState.MISSING


@pytest.mark.parametrize("cut", [1, 20, len(LINES[5]) - 1])
def test_a_last_line_cut_in_the_middle_is_torn(cut):
    report = check_chain(WHOLE[:-cut], HEAD)
    assert report.state is ChainState.TORN
    assert len(report.entries) == 5
    assert state(WHOLE + LINES[5][:cut]) is ChainState.TORN
    assert state(WHOLE[:-cut], None) is ChainState.TORN


def test_a_cut_line_excuses_no_other_fault():
    half = LINES[5][:30]
    assert state(b"".join(LINES[:4]) + half) is ChainState.TRUNCATED
    rewritten = b"".join(entry.line() for entry in chain(mark="x"))
    assert state(rewritten + half) is ChainState.REWRITTEN
    assert state(b"".join([*LINES[:2], *LINES[3:]]) + half) is ChainState.GAP


def test_an_entry_changed_and_chained_anew_is_rewritten():
    anew = chain(4, 3, ENTRIES[1].hash, mark="changed")
    data = b"".join([*LINES[:2], *(entry.line() for entry in anew)])
    assert state(data) is ChainState.REWRITTEN


@pytest.mark.parametrize("place", range(6))
def test_a_changed_entry_is_named(place):
    lines = list(LINES)
    lines[place] = lines[place].replace(b'"mark":""', b'"mark":"x"')
    report = check_chain(b"".join(lines), HEAD)
    assert report.state is ChainState.REWRITTEN
    assert str(place + 1) in report.detail


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: line.replace(b",", b", ", 1),
        lambda line: line.replace(b'{"seq"', b'{"seq":9,"seq"', 1),
        lambda line: line.replace(b"}\n", b',"note":1}\n'),
        lambda line: line.replace(b'"mark"', b'"\\u006dark"', 1),
    ],
)
def test_bytes_that_the_hash_does_not_cover_are_noticed_too(spoil):
    assert state(b"".join([*LINES[:5], spoil(LINES[5])])) is ChainState.REWRITTEN


def test_an_older_file_missing_is_a_gap():
    assert state(b"".join(LINES[3:])) is ChainState.GAP
    assert state(b"".join([*LINES[:2], *LINES[3:]])) is ChainState.GAP


def test_an_entry_twice_is_a_fault_of_sequence():
    assert state(b"".join([*LINES[:4], LINES[3], *LINES[4:]])) is ChainState.SEQUENCE


def test_entries_after_the_anchor_are_not_anchored():
    report = check_chain(WHOLE, sign_head(KEY, "sink", 4, ENTRIES[3].hash))
    assert report.state is ChainState.NOT_ANCHORED
    assert "4" in report.detail


def test_without_an_anchor_nothing_is_intact():
    assert state(WHOLE, None) is ChainState.NOT_ANCHORED
    assert state(b"", None) is ChainState.NOT_ANCHORED
    assert state(None, None) is ChainState.MISSING


def test_an_empty_record_with_its_head_is_intact():
    assert state(b"", sign_head(KEY, "sink", 0, GENESIS)) is ChainState.INTACT
    assert state(WHOLE, sign_head(KEY, "sink", 0, "sha256:" + "1" * 64)) is ChainState.REWRITTEN


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b'{"seq":1,"prev":"a","body":[],"hash":"b"}',
        b'{"seq":true,"prev":"a","body":{},"hash":"b"}',
        b'{"seq":"1","prev":"a","body":{},"hash":"b"}',
        b'{"seq":1,"prev":1,"body":{},"hash":"b"}',
        b'{"seq":1,"prev":"a","body":{"x":NaN},"hash":"b"}',
        b'{"seq":1,"prev":"a","body":{"x":"\\ud800"},"hash":"b"}',
        b'{"seq":1,"prev":"a","body":{"x":99999999999999999999},"hash":"b"}',
        b'{"seq":1,"prev":"a","body":' + b'{"x":' * 50_000,
        b'{"seq":1,"prev":"a","body":' + b'{"x":' * 400 + b"{}" + b"}" * 400 + b',"hash":"b"}',
    ],
)
def test_a_line_that_is_no_entry_is_a_finding_never_an_error(line):
    assert check_chain(line + b"\n", HEAD).state is ChainState.REWRITTEN


@pytest.mark.parametrize("field", ["signer", "seq", "hash", "countersigned", "key", "signature"])
def test_a_head_signs_all_that_it_says(field):
    assert HEAD.verifies()
    other = sign_head(Ed25519PrivateKey.from_private_bytes(bytes(32)), "other", 7, GENESIS, "x")
    assert not replace(HEAD, **{field: getattr(other, field)}).verifies()
    if field in {"key", "signature"}:
        assert not replace(HEAD, **{field: "zz"}).verifies()
        assert not replace(HEAD, **{field: ""}).verifies()


# --- the file -----------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "record.jsonl"


def opened(path):
    record = RecordFile(path)
    bodies = list(record.load())
    return record, bodies


async def test_what_was_appended_is_read_again(path):
    record, _ = opened(path)
    await asyncio.gather(*(record.append({"n": n}) for n in range(50)))
    head = sign_head(KEY, "s", record.seq, record.hash)
    record.close()
    assert check_chain(path.read_bytes(), head).state is ChainState.INTACT
    again, bodies = opened(path)
    assert bodies == [{"n": n} for n in range(50)]
    assert (again.seq, again.hash) == (head.seq, head.hash)
    assert path.stat().st_mode & 0o777 == 0o600
    again.close()


async def test_a_record_has_one_writer(path):
    record, _ = opened(path)
    with pytest.raises(RecordError, match="in use"):
        RecordFile(path)
    record.close()
    opened(path)[0].close()


async def test_a_torn_end_is_kept_aside_and_named_for_recovery(path):
    record, _ = opened(path)
    for n in range(3):
        await record.append({"n": n})
    record.close()
    data = path.read_bytes()
    path.write_bytes(data[:-7])
    again, bodies = opened(path)
    assert bodies == [{"n": 0}, {"n": 1}]
    recovery = again.recovery()
    assert recovery is not None
    assert recovery["kind"] == "recovery"
    [aside] = [item for item in path.parent.iterdir() if "torn" in item.name]
    assert data[:-7].endswith(aside.read_bytes())
    await again.append(recovery)
    again.close()
    final, bodies = opened(path)
    assert bodies[2] == recovery
    assert final.recovery() is None
    final.close()


async def test_the_head_vouches_for_what_is_durable_only(path):
    record, _ = opened(path)
    first = await record.append({"n": 0})
    waiting = [asyncio.ensure_future(record.append({"n": n})) for n in (1, 2)]
    seen = []
    while not all(task.done() for task in waiting):
        seen.append((record.seq, record.hash, path.read_bytes().count(b"\n")))
        await asyncio.sleep(0)
    assert all(seq == lines for seq, _, lines in seen)
    assert seen[0][:2] == (first.seq, first.hash)
    assert record.seq == 3
    record.close()


async def test_a_failed_write_leaves_no_trace_and_every_caller_hears_of_it(path, monkeypatch):
    record, _ = opened(path)
    await record.append({"n": 0})
    real = os.write

    def half(descriptor, data):
        return real(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    results = await asyncio.gather(
        *(record.append({"n": n}) for n in (1, 2, 3)), return_exceptions=True
    )
    assert [type(item) for item in results] == [RecordError] * 3
    assert record.seq == 1
    monkeypatch.undo()
    await record.append({"n": 4})
    record.close()
    _, bodies = opened(path)
    assert bodies == [{"n": 0}, {"n": 4}]


async def test_a_write_that_cannot_be_undone_ends_the_record(path, monkeypatch):
    record, _ = opened(path)

    def fails(*_):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "fdatasync", fails)
    monkeypatch.setattr(os, "ftruncate", fails)
    with pytest.raises(RecordError):
        await asyncio.wait_for(record.append({"n": 0}), 2)
    monkeypatch.undo()
    with pytest.raises(RecordError):
        await asyncio.wait_for(record.append({"n": 1}), 2)
    record.close()


async def test_a_body_that_json_cannot_hold_is_refused_and_breaks_nothing(path):
    record, _ = opened(path)
    with pytest.raises(rfc8785.CanonicalizationError):
        await record.append({"x": "\ud800"})
    await record.append({"n": 1})
    record.close()
    assert opened(path)[1] == [{"n": 1}]


@pytest.mark.parametrize("spoiled", [b"{}\n", b"\n", b"\xff\n", LINES[1]])
def test_a_file_that_does_not_chain_is_evidence_not_mended(path, spoiled):
    path.write_bytes(spoiled)
    record = RecordFile(path)
    with pytest.raises(RecordError):
        list(record.load())
    record.close()
    assert path.read_bytes() == spoiled


def test_a_key_is_made_once_and_kept(tmp_path):
    key = load_or_create(tmp_path / "state" / "key")
    again = load_or_create(tmp_path / "state" / "key")
    assert key.private_bytes_raw() == again.private_bytes_raw()
    assert (tmp_path / "state" / "key").stat().st_mode & 0o777 == 0o600
    assert load_or_create(tmp_path / "other" / "key").private_bytes_raw() != key.private_bytes_raw()


def test_every_line_reads_back_as_its_entry():
    assert [parse_line(line) for line in LINES] == ENTRIES
