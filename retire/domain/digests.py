"""Digests: SHA-256 over raw bytes, or over RFC 8785 canonical JSON, and the RFC 6962 tree."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, TypeAlias

import rfc8785

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json: TypeAlias = "bool | int | str | Sequence[Json] | Mapping[str, Json] | None"
"""JSON without floating-point numbers: decimals travel as canonical strings."""


def sha256(data: bytes) -> str:
    """Return ``sha256:<64 hex digits>`` of raw bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def canonical(value: Json) -> bytes:
    """Return the RFC 8785 serialisation of a JSON value.

    Raises:
        rfc8785.CanonicalizationError: The value holds a float out of range or a foreign type.
    """
    return rfc8785.dumps(value)


def digest_of(value: Json) -> str:
    """Return the digest of a JSON value's canonical form."""
    return sha256(canonical(value))


def merkle_root(leaves: Sequence[bytes]) -> str:
    """Return the RFC 6962 section 2.1 Merkle tree hash of the leaves, in the order given."""
    return "sha256:" + _tree_hash(leaves).hex()


def _tree_hash(leaves: Sequence[bytes]) -> bytes:
    if not leaves:
        return hashlib.sha256(b"").digest()
    level = [hashlib.sha256(b"\x00" + leaf).digest() for leaf in leaves]
    # Pairing neighbours and carrying an odd last node up gives the RFC's split at the largest
    # power of two, without recursion.
    while len(level) > 1:
        paired = [
            hashlib.sha256(b"\x01" + level[i] + level[i + 1]).digest()
            for i in range(0, len(level) - 1, 2)
        ]
        if len(level) % 2:
            paired.append(level[-1])
        level = paired
    return level[0]
