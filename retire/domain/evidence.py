"""Kinds of evidence: who answered, and whether a pass on it may ship."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Evidence(StrEnum):
    """Whose answers a run's outcomes rest on."""

    SIMULATED = "simulated"
    REPLAYED = "replayed"
    LIVE_MODEL = "live_model"
    MIXED = "mixed"
    """Several kinds in one run."""
    UNKNOWN = "unknown"
    """Nothing says: no certificate, and no such deployment is configured here."""

    @property
    def ships(self) -> bool:
        """Whether a pass on it may be permission to ship."""
        return self is Evidence.LIVE_MODEL

    @classmethod
    def of_all(cls, kinds: Iterable[Evidence]) -> Evidence:
        """Return the one kind that all are, ``mixed`` for several, ``unknown`` for none."""
        found = set(kinds)
        if not found:
            return cls.UNKNOWN
        return found.pop() if len(found) == 1 else cls.MIXED
