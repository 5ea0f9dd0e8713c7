"""Ground truth in memory, for the observer."""

from __future__ import annotations

from observer.effect import JournalEntry
from observer.port import EpisodeRow, SensorError


class FakeSensor:
    """Implements ``observer.port.Sensor``; ``fault`` makes every read fail."""

    def __init__(self):
        self.episodes = {}
        self.entries = []
        self.fault = ""

    def begin(self, attempt, contract_digest):
        self.episodes[attempt] = contract_digest

    def happens(self, attempt, target, **fields):
        """Add a journal entry; ``variable`` and ``after``, or ``event`` and ``fields``."""
        kind = "event" if "event" in fields else "change"
        seq = len(self.entries) + 1
        self.entries.append(
            JournalEntry(seq=seq, attempt=attempt, target=target, kind=kind, **fields)
        )

    def before(self, attempt):
        self._check()

    def episode(self, attempt):
        self._check()
        known = attempt in self.episodes
        return EpisodeRow(attempt, self.episodes[attempt]) if known else None

    def journal(self, attempt):
        self._check()
        return [entry for entry in self.entries if entry.attempt == attempt]

    def journal_after(self, seq, limit):
        self._check()
        return [entry for entry in self.entries if entry.seq > seq][:limit]

    def close(self):
        pass

    def _check(self):
        if self.fault:
            raise SensorError(self.fault)
