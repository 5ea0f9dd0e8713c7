"""Checkpoints: the signed statement "the first bytes of my record are these". Pure.

To follow a chain of a million entries takes minutes, to hash its bytes takes seconds. A record is
followed once, when it grows; at the next start its bytes up to the last checkpoint are compared
with what was signed, and only what came later is followed again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import rfc8785
from cryptography.exceptions import InvalidSignature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

EVERY = 10_000
"""Entries between two checkpoints: what a start has to follow at most, about a second."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The last entry that is covered, and the size and digest of everything up to its end."""

    seq: int
    hash: str
    size: int
    digest: str

    def payload(self) -> bytes:
        """Return the bytes that are signed."""
        return rfc8785.dumps({"schema": "retire.checkpoint/v1", **asdict(self)})


def seal(key: Ed25519PrivateKey, checkpoint: Checkpoint) -> bytes:
    """Return the bytes of a checkpoint's file."""
    signature = key.sign(checkpoint.payload()).hex()
    return json.dumps({**asdict(checkpoint), "signature": signature}).encode() + b"\n"


def open_sealed(key: Ed25519PrivateKey, data: bytes) -> Checkpoint | None:
    """Return the checkpoint that this key signed, or None: without one, everything is followed."""
    try:
        value = json.loads(data)
        signature = bytes.fromhex(value.pop("signature"))
        checkpoint = Checkpoint(**value)
        key.public_key().verify(signature, checkpoint.payload())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidSignature):
        return None
    return checkpoint
