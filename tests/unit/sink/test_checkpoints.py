"""Checkpoints of both records: a short start, and every fault is still found."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import observer.record
import sink.record_file
from observer.checkpoint import EVERY as OBSERVER_EVERY
from sink.checkpoint import EVERY as SINK_EVERY
from sink.checkpoint import Checkpoint, open_sealed, seal
from sink.record import GENESIS, make_entry

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
MAKERS = {"sink": sink.record_file.RecordFile, "observer": observer.record.RecordFile}
EVERY = 40
ERRORS = (sink.record_file.RecordError, observer.record.RecordError)


def body(number):
    return {"kind": "decision", "decision": "allow", "attempt": f"{number:032x}"}


@pytest.fixture(scope="module")
def lines():
    """One entry more than three checkpoints need, and a few."""
    prev, made = GENESIS, []
    for seq in range(1, 3 * EVERY + 6):
        entry = make_entry(seq, prev, body(seq))
        prev = entry.hash
        made.append(entry.line())
    return made


@pytest.fixture(params=sorted(MAKERS))
def opened(request, tmp_path):
    """Start on the record of a folder, as either program does; gives the bodies and the end."""

    def load():
        record = MAKERS[request.param](tmp_path / "record.jsonl", KEY, EVERY)
        try:
            bodies = list(record.load())
            return bodies, (record.seq, record.hash)
        finally:
            record.close()

    load.path = tmp_path / "record.jsonl"
    load.checkpoint = tmp_path / "record.jsonl.checkpoint"
    return load


@pytest.fixture
def covered(opened, lines):
    """A record with a checkpoint over its first entries and five behind it."""
    opened.path.write_bytes(b"".join(lines[:EVERY]))
    opened()
    opened.path.write_bytes(b"".join(lines[: EVERY + 5]))
    return opened


def test_both_programs_have_the_same_checkpoints():
    assert SINK_EVERY == OBSERVER_EVERY
    checkpoint = Checkpoint(7, "sha256:00", 99, "sha256:11")
    data = seal(KEY, checkpoint)
    assert open_sealed(KEY, data) == checkpoint
    assert observer.record.open_sealed(KEY, data).payload() == checkpoint.payload()


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"signature":"00"}', b'{"signature":7}', b"[" * 100_000],
)
def test_what_is_no_checkpoint_of_this_key_counts_for_nothing(data):
    assert open_sealed(KEY, data) is None
    good = seal(KEY, Checkpoint(7, "sha256:00", 99, "sha256:11"))
    assert open_sealed(Ed25519PrivateKey.generate(), good) is None
    for name, value in (("seq", 8), ("size", 98), ("hash", "x"), ("more", 1)):
        assert open_sealed(KEY, json.dumps({**json.loads(good), name: value}).encode()) is None


def test_a_short_record_has_no_checkpoint_and_a_long_one_has(opened, lines):
    opened.path.write_bytes(b"".join(lines[: EVERY - 1]))
    opened()
    assert not opened.checkpoint.exists()


def test_with_a_checkpoint_every_body_is_given_and_the_end_is_the_same(covered, lines):
    assert covered.checkpoint.exists()
    bodies, (seq, head) = covered()
    assert bodies == [body(number) for number in range(1, EVERY + 6)]
    assert (seq, head) == (EVERY + 5, json.loads(lines[EVERY + 4])["hash"])


def test_what_a_checkpoint_covers_is_not_followed_again(covered):
    """Seen by a chain that never held but was signed: it is taken as it was signed."""
    data = covered.path.read_bytes()
    lines = data.splitlines(keepends=True)
    forged = [lines[0].replace(b"allow", b"ALLOW"), *lines[1:EVERY]]
    whole = b"".join(forged)
    last = json.loads(lines[EVERY - 1])
    digest = sink.record_file.digest(whole)
    covered.path.write_bytes(whole + b"".join(lines[EVERY:]))
    covered.checkpoint.write_bytes(seal(KEY, Checkpoint(EVERY, last["hash"], len(whole), digest)))
    assert covered()[1][0] == EVERY + 5
    # A start without the checkpoint follows everything and finds the fault.
    covered.checkpoint.unlink()
    with pytest.raises(ERRORS):
        covered()


def altered(lines, where):
    changed = list(lines)
    changed[where] = changed[where].replace(b"allow", b"ALLOW")
    return changed


def rewritten(lines, count):
    """A whole chain of its own: every entry follows, and none is the one that was signed."""
    prev, made = GENESIS, []
    for seq in range(1, count + 1):
        entry = make_entry(seq, prev, {**body(seq), "decision": "deny"})
        prev = entry.hash
        made.append(entry.line())
    return made


FAULTS = {
    "altered before the checkpoint": lambda lines: altered(lines, 3),
    "altered behind the checkpoint": lambda lines: altered(lines, EVERY + 2),
    "cut before the checkpoint": lambda lines: lines[: EVERY - 1],
    "emptied": lambda lines: [],
    "without its first entry": lambda lines: lines[1:],
    "without one behind the checkpoint": lambda lines: [*lines[: EVERY + 1], *lines[EVERY + 2 :]],
    "rewritten whole": lambda lines: rewritten(lines, EVERY + 5),
    "torn before the checkpoint": lambda lines: [*lines[: EVERY - 2], lines[EVERY][:20]],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_still_found_at_the_start(covered, fault):
    lines = covered.path.read_bytes().splitlines(keepends=True)
    covered.path.write_bytes(b"".join(FAULTS[fault](lines)))
    with pytest.raises(ERRORS):
        covered()


def test_an_end_that_is_torn_behind_the_checkpoint_is_cut_off_and_kept(covered):
    with covered.path.open("ab") as file:
        file.write(b'{"seq":')
    bodies, _ = covered()
    assert len(bodies) >= EVERY + 5
    assert [path.read_bytes() for path in covered.path.parent.glob("*.torn-*")] == [b'{"seq":']


@pytest.mark.parametrize("data", [b"", b"{}", b"garbage"])
def test_a_damaged_checkpoint_only_makes_the_start_longer(covered, data):
    covered.checkpoint.write_bytes(data)
    assert len(covered()[0]) == EVERY + 5


async def test_checkpoints_come_while_the_record_grows(tmp_path, lines):
    path = tmp_path / "record.jsonl"
    path.write_bytes(b"".join(lines[: EVERY - 2]))
    record = sink.record_file.RecordFile(path, KEY, EVERY)
    assert len(list(record.load())) == EVERY - 2
    for number in range(4):
        await record.append(body(number))
    record.close()
    found = open_sealed(KEY, (tmp_path / "record.jsonl.checkpoint").read_bytes())
    assert found.seq == EVERY
    again = sink.record_file.RecordFile(path, KEY, EVERY)
    assert len(list(again.load())) == EVERY + 2
    assert (await again.append(body(0))).seq == EVERY + 3
    again.close()


def test_the_observer_signs_what_is_on_disk_only(tmp_path, lines):
    path = tmp_path / "record.jsonl"
    path.write_bytes(b"".join(lines[: EVERY - 1]))
    record = observer.record.RecordFile(path, KEY, EVERY)
    assert len(list(record.load())) == EVERY - 1
    record.append(body(0))
    checkpoint = tmp_path / "record.jsonl.checkpoint"
    assert not checkpoint.exists()
    record.sync()
    assert open_sealed(KEY, checkpoint.read_bytes()).seq == EVERY
    record.close()
