"""The decision record: hash-chained entries, signed heads, and the check of both. Pure.

Each line of a record file is one JSON object ``{"seq", "prev", "body", "hash"}``; ``hash`` is
SHA-256 over the RFC 8785 form of the other three. A chain alone cannot show that its end is
missing, so "intact" is said only up to a head that was signed and kept elsewhere.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GENESIS = "sha256:" + "0" * 64
"""What the first entry names as its predecessor."""


def digest(data: bytes) -> str:
    """Return ``sha256:<hex>`` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; ``seq`` counts from 1."""

    seq: int
    prev: str
    body: Mapping[str, Any]
    hash: str

    def line(self) -> bytes:
        """Return the entry as one line of the record file, with its line end."""
        value = {"seq": self.seq, "prev": self.prev, "body": self.body, "hash": self.hash}
        return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def make_entry(seq: int, prev: str, body: Mapping[str, Any]) -> Entry:
    """Chain a body to its predecessor."""
    return Entry(seq, prev, body, _entry_hash(seq, prev, body))


def _entry_hash(seq: int, prev: str, body: Mapping[str, Any]) -> str:
    return digest(rfc8785.dumps({"seq": seq, "prev": prev, "body": dict(body)}))


@dataclass(frozen=True, slots=True)
class Head:
    """The signed statement "my record has ``seq`` entries and ends in ``hash``".

    ``countersigned`` is another process's head hash that this signer had seen, or empty.
    """

    signer: str
    seq: int
    hash: str
    countersigned: str
    key: str
    signature: str

    def payload(self) -> bytes:
        """Return the bytes that are signed."""
        return _head_payload(self.signer, self.seq, self.hash, self.countersigned)

    def verifies(self) -> bool:
        """Whether the signature is by the key that the head names."""
        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.key))
            key.verify(bytes.fromhex(self.signature), self.payload())
        except (InvalidSignature, ValueError):
            return False
        return True


def _head_payload(signer: str, seq: int, head_hash: str, countersigned: str) -> bytes:
    return rfc8785.dumps(
        {
            "schema": "retire.head/v1",
            "signer": signer,
            "seq": seq,
            "hash": head_hash,
            "countersigned": countersigned,
        }
    )


def sign_head(
    key: Ed25519PrivateKey, signer: str, seq: int, head_hash: str, countersigned: str = ""
) -> Head:
    """Sign the present end of a record."""
    signature = key.sign(_head_payload(signer, seq, head_hash, countersigned))
    public = key.public_key().public_bytes_raw().hex()
    return Head(signer, seq, head_hash, countersigned, public, signature.hex())


class ChainState(StrEnum):
    """What a check of a record against a signed head finds."""

    INTACT = "intact"
    NOT_ANCHORED = "not_anchored"
    """Intact up to the head; later entries are chained but nothing outside vouches for them."""
    MISSING = "missing"
    TRUNCATED = "truncated"
    TORN = "torn"
    """The last line was cut while it was being written; not a sign of tampering."""
    GAP = "gap"
    SEQUENCE = "sequence"
    """A sequence number stands twice, or entries are out of order."""
    REWRITTEN = "rewritten"
    """The chain holds but does not end in the signed head, or an entry's hash is wrong."""


@dataclass(frozen=True, slots=True)
class ChainReport:
    """The state, with a sentence that names the first entry at fault."""

    state: ChainState
    detail: str
    entries: tuple[Entry, ...] = ()


def check_chain(data: bytes | None, head: Head | None) -> ChainReport:
    """Check a record file against the head that was signed and kept elsewhere.

    Args:
        data: The file's bytes, or None where it does not exist.
        head: The outside anchor; without one nothing is called intact.
    """
    entries: list[Entry] = []
    report = walk_chain(data, head, entries.append)
    return ChainReport(report.state, report.detail, tuple(entries))


def walk_chain(
    data: bytes | None, head: Head | None, visit: Callable[[Entry], None]
) -> ChainReport:
    """Check a record as :func:`check_chain`, handing each good entry on and keeping none."""
    expected = head.seq if head is not None else 0
    if data is None or (not data and expected):
        return ChainReport(ChainState.MISSING, f"0 of {expected} entries")
    walk = _Walk(expected)
    torn = False
    for line in io.BytesIO(data):
        if not line.endswith(b"\n"):
            torn = True
            break
        fault = walk.take(line, visit)
        if fault is not None:
            return fault
    report = _against_head(walk, head)
    # A cut line explains itself and, at most, one missing entry; anything else keeps its name.
    explained = report.state in {ChainState.INTACT, ChainState.NOT_ANCHORED} or (
        report.state is ChainState.TRUNCATED and walk.count + 1 == expected
    )
    if torn and explained:
        return ChainReport(ChainState.TORN, f"line {walk.count + 1} is cut")
    return report


class _Walk:
    """How far a chain was followed, and its hash where the head points."""

    def __init__(self, anchor: int) -> None:
        self._anchor = anchor
        self.count = 0
        self._hash = GENESIS
        self.at_anchor = GENESIS

    def take(self, line: bytes, visit: Callable[[Entry], None]) -> ChainReport | None:
        """Follow one line; returns the fault if it does not continue the chain."""
        number = self.count + 1
        entry = parse_line(line)
        if entry is None:
            return ChainReport(ChainState.REWRITTEN, f"line {number} is no entry")
        if entry.seq != number:
            state = ChainState.GAP if entry.seq > number else ChainState.SEQUENCE
            return ChainReport(state, f"line {number} has sequence number {entry.seq}")
        if not chains(entry, number, self._hash):
            return ChainReport(ChainState.REWRITTEN, f"entry {number} does not chain")
        self.count, self._hash = number, entry.hash
        if number == self._anchor:
            self.at_anchor = entry.hash
        visit(entry)
        return None


def _against_head(walk: _Walk, head: Head | None) -> ChainReport:
    if head is None:
        return ChainReport(ChainState.NOT_ANCHORED, "no signed head was given")
    if walk.count < head.seq:
        return ChainReport(ChainState.TRUNCATED, f"{walk.count} of {head.seq} entries")
    if walk.at_anchor != head.hash:
        return ChainReport(ChainState.REWRITTEN, f"entry {head.seq} is not the signed head")
    if walk.count > head.seq:
        return ChainReport(ChainState.NOT_ANCHORED, f"intact up to {head.seq}, later entries not")
    return ChainReport(ChainState.INTACT, f"{head.seq} entries")


def chains(entry: Entry, seq: int, prev: str) -> bool:
    """Whether an entry is number ``seq``, follows ``prev``, and has the hash it names."""
    try:
        return entry == make_entry(seq, prev, entry.body)
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError):
        return False


def parse_line(line: bytes) -> Entry | None:
    """Read one line of a record; None where it is no entry, or not written as entries are."""
    try:
        value = json.loads(line)
        seq, prev, body, own = value["seq"], value["prev"], value["body"], value["hash"]
        texts = isinstance(prev, str) and isinstance(own, str)
        if type(seq) is not int or not texts or not isinstance(body, dict):
            return None
        entry = Entry(seq, prev, body, own)
        # Spaces, a key twice or one more key would leave the hash as it is.
        return entry if entry.line() == line.removesuffix(b"\n") + b"\n" else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
