"""The record's format: the sink, the observer and a few lines here give the same bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

import observer.record
import sink.record
from sink.record import ChainState, Head, check_chain, make_entry, sign_head
from sink.record_file import RecordFile

pytestmark = pytest.mark.golden

VECTORS = json.loads(
    (Path(__file__).parents[2] / "bundles" / "golden" / "record.json").read_text("utf-8")
)
ENTRIES = VECTORS["entries"]
LINES = [entry["line"].encode() + b"\n" for entry in ENTRIES]
KEY = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(VECTORS["private_key"]))


def by_hand(value):
    """RFC 8785 for these values: sorted ASCII keys, no spaces, text unescaped, small integers."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_a_few_lines_reproduce_the_chain():
    prev = VECTORS["genesis"]
    for number, entry in enumerate(ENTRIES, start=1):
        assert entry["prev"] == prev
        assert by_hand({"seq": number, "prev": prev, "body": entry["body"]}) == entry["hash"]
        prev = entry["hash"]
    assert VECTORS["head"]["hash"] == prev


def test_the_sink_reproduces_the_chain():
    assert VECTORS["genesis"] == sink.record.GENESIS
    prev = sink.record.GENESIS
    for number, entry in enumerate(ENTRIES, start=1):
        made = make_entry(number, prev, entry["body"])
        assert made.hash == entry["hash"]
        assert made.line() == LINES[number - 1]
        prev = made.hash


def test_the_observer_reproduces_the_chain():
    assert VECTORS["genesis"] == observer.record.GENESIS
    prev = observer.record.GENESIS
    for number, entry in enumerate(ENTRIES, start=1):
        prev = observer.record.chain_hash(number, prev, entry["body"])
        assert prev == entry["hash"]


async def test_both_files_on_disk_are_the_same_bytes(tmp_path):
    ours = RecordFile(tmp_path / "sink" / "record.jsonl")
    theirs = observer.record.RecordFile(tmp_path / "observer" / "record.jsonl")
    for entry in ENTRIES:
        await ours.append(entry["body"])
        theirs.append(entry["body"])
    theirs.sync()
    ours.close()
    theirs.close()
    for folder in ("sink", "observer"):
        assert (tmp_path / folder / "record.jsonl").read_bytes() == b"".join(LINES)


def test_both_sign_the_same_head():
    said = VECTORS["head"]
    statement = [said[name] for name in ("signer", "seq", "hash", "countersigned")]
    assert dataclasses.asdict(sign_head(KEY, *statement)) == said
    assert observer.record.signed_head(KEY, *statement) == said


def test_the_signature_is_over_the_stated_bytes():
    said = VECTORS["head"]
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["key"]))
    public.verify(bytes.fromhex(said["signature"]), VECTORS["head_payload"].encode())
    assert Head(**said).payload() == VECTORS["head_payload"].encode()
    assert Head(**said).verifies()


def test_the_vectors_are_an_intact_record():
    report = check_chain(b"".join(LINES), Head(**VECTORS["head"]))
    assert report.state is ChainState.INTACT
    assert [dict(entry.body) for entry in report.entries] == [item["body"] for item in ENTRIES]
