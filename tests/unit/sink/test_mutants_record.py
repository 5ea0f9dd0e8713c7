"""What a changed check of the record would get wrong unnoticed: the entry it names, the head."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sink.record import GENESIS, ChainState, check_chain, make_entry, parse_line, sign_head

KEY = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)


def chain(length):
    entries, prev = [], GENESIS
    for number in range(1, length + 1):
        entries.append(make_entry(number, prev, {"kind": "decision", "n": number}))
        prev = entries[-1].hash
    return entries


def data(entries):
    return b"".join(entry.line() for entry in entries)


def head(entries, **fields):
    return replace(sign_head(KEY, "sink", len(entries), entries[-1].hash), **fields)


def test_a_head_that_saw_no_other_countersigns_nothing():
    assert head(chain(1)).countersigned == ""


ENTRIES = chain(3)
WHOLE = data(ENTRIES)


@pytest.mark.parametrize(
    ("content", "state", "named"),
    [
        (None, ChainState.MISSING, "0 of 3"),
        (WHOLE[:-5], ChainState.TORN, "line 3"),
        (data(ENTRIES[:1]) + b"{}\n", ChainState.REWRITTEN, "line 2"),
        (data([ENTRIES[0], ENTRIES[2]]), ChainState.GAP, "line 2"),
        (data([*ENTRIES[:2], ENTRIES[1]]), ChainState.SEQUENCE, "line 3"),
        (data([ENTRIES[0], replace(ENTRIES[1], prev=GENESIS)]), ChainState.REWRITTEN, "entry 2"),
        (data(ENTRIES[:2]), ChainState.TRUNCATED, "2 of 3"),
        (WHOLE, ChainState.INTACT, "3"),
        (data(chain(4)), ChainState.NOT_ANCHORED, "3"),
    ],
)
def test_the_report_names_the_first_entry_at_fault(content, state, named):
    report = check_chain(content, head(ENTRIES))
    assert report.state is state
    assert named in report.detail


def test_a_report_names_the_head_that_does_not_fit():
    report = check_chain(WHOLE, head(ENTRIES, hash=GENESIS))
    assert report.state is ChainState.REWRITTEN
    assert "3" in report.detail


def test_without_a_head_the_report_says_so():
    report = check_chain(WHOLE, None)
    assert (report.state, len(report.entries)) == (ChainState.NOT_ANCHORED, 3)
    assert "head" in report.detail


@pytest.mark.parametrize(
    "changed", [{"hash": 5}, {"prev": 5}, {"prev": 5, "hash": 5}, {"body": []}, {"seq": True}]
)
def test_a_line_with_a_value_of_another_type_is_no_entry(changed):
    good = {"seq": 1, "prev": "a", "body": {}, "hash": "b"}
    assert parse_line(compact(good)) is not None
    assert parse_line(compact({**good, **changed})) is None


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def test_the_first_entry_names_64_zeros():
    assert GENESIS == "sha256:" + "0" * 64
