"""What the observer needs from sensors: reads, each of which may fail loudly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observer.effect import JournalEntry


class SensorError(Exception):
    """Ground truth cannot be read; whatever was asked is incomplete."""


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """An episode as ground truth knows it."""

    attempt: str
    contract_digest: str


class Sensor(Protocol):
    """Read-only access to ground truth; every method raises SensorError when it cannot read."""

    def before(self, attempt: str) -> None:
        """Note what has to be known before anything acts in an attempt; asked when it begins."""

    def episode(self, attempt: str) -> EpisodeRow | None:
        """Return the episode of an attempt, or None where there is none."""

    def journal(self, attempt: str) -> Sequence[JournalEntry]:
        """Return the journal of one attempt in sequence order."""

    def journal_after(self, seq: int, limit: int) -> Sequence[JournalEntry]:
        """Return up to ``limit`` entries of all attempts with larger sequence numbers."""

    def close(self) -> None:
        """End every connection; nothing is asked afterwards."""
