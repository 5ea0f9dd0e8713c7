"""The run's database: every attempt, proposal and trace, stored before the run counts it."""

from retire.store.store import CutAttempt, RunStore, ServedAnswer, StoredTrial

__all__ = ["CutAttempt", "RunStore", "ServedAnswer", "StoredTrial"]
