"""The sensor of the stub world: its database, opened read-only."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

from observer.port import EpisodeRow, SensorError
from observer.sighting import JournalEntry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class StubWorldSensor:
    """Implements ``observer.port.Sensor``.

    The connection is opened on first use and again after a failure: a world that restarted
    leaves a reader behind that can no longer read.
    """

    def __init__(self, path: Path) -> None:
        self._uri = f"{path.resolve().as_uri()}?mode=ro"
        self._connection: sqlite3.Connection | None = None

    def before(self, attempt: str) -> None:
        """Note nothing: the world's journal says by itself what happened in an attempt."""

    def episode(self, attempt: str) -> EpisodeRow | None:
        """Return the episode of an attempt, or None where there is none."""
        rows = self._read("SELECT contract FROM episodes WHERE attempt = ?", (attempt,))
        return EpisodeRow(attempt, str(rows[0][0])) if rows else None

    def journal(self, attempt: str) -> Sequence[JournalEntry]:
        """Return the journal of one attempt in sequence order."""
        return self._entries(
            "SELECT seq, attempt, body FROM journal WHERE attempt = ? ORDER BY seq", (attempt,)
        )

    def journal_after(self, seq: int, limit: int) -> Sequence[JournalEntry]:
        """Return up to ``limit`` entries of all attempts with larger sequence numbers."""
        return self._entries(
            "SELECT seq, attempt, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?",
            (seq, limit),
        )

    def _entries(self, query: str, values: tuple[object, ...]) -> list[JournalEntry]:
        try:
            return [
                JournalEntry.model_validate({"seq": seq, "attempt": attempt, **_object(body)})
                for seq, attempt, body in self._read(query, values)
            ]
        except (ValueError, TypeError) as error:
            raise SensorError(f"the journal holds an unreadable entry: {error}") from error

    def _read(self, query: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._uri, uri=True, timeout=2.0)
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            self.close()
            raise SensorError(f"ground truth cannot be read: {error}") from error

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _object(body: object) -> dict[str, object]:
    value = json.loads(str(body))
    if not isinstance(value, dict):
        raise TypeError(f"{type(value).__name__} in place of an object")
    return value
