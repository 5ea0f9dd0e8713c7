"""Draws of a simulated deployment: a pure function of the seed and of a name for the choice."""

from __future__ import annotations

import hashlib


def per_thousand(seed: int, salt: str) -> int:
    """Return a uniform draw of 0 to 999 from SHA-256 of seed and salt.

    A salt names a kind of choice and its ordinal, never an id, a name or a text, so that renaming
    things in a bundle changes no draw.
    """
    digest = hashlib.sha256(f"{seed}/{salt}".encode()).digest()
    return int.from_bytes(digest[:8]) * 1000 >> 64


def happens(seed: int, salt: str, chance: int) -> bool:
    """Say whether a choice with a chance per thousand falls out as yes."""
    return per_thousand(seed, salt) < chance
