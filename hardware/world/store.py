"""Ground truth on disk: episodes, frozen snapshots, and the journal. One writer."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from counterfactuals.devices import Change

_SCHEMA = """
CREATE TABLE IF NOT EXISTS episodes (
  attempt TEXT PRIMARY KEY, template TEXT NOT NULL, task TEXT NOT NULL, patch TEXT,
  episode TEXT NOT NULL, contract TEXT NOT NULL, snapshot TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS snapshots (digest TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journal (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, attempt TEXT NOT NULL, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS journal_by_attempt ON journal (attempt, seq);
"""


class EpisodeRow(NamedTuple):
    """A reset as the register of episodes keeps it, column by column."""

    attempt: str
    template: str
    task: str
    patch: str | None
    episode: str
    contract: str
    snapshot_digest: str


class WorldStore:
    """The world's database; every method returns after its commit."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None)
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
            # NORMAL keeps every commit through a killed process; only a power cut could lose some.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error:
            self._connection.close()
            raise
        self._known: set[str] = set()

    def add_episode(self, row: EpisodeRow, snapshot: bytes) -> None:
        """Store a reset with the bytes that its digest names.

        Raises:
            sqlite3.IntegrityError: The attempt exists; attempts are never reused.
        """
        execute, named = self._connection.execute, row[-1]
        execute("BEGIN")
        try:
            if named not in self._known:
                execute("INSERT OR IGNORE INTO snapshots VALUES (?, ?)", (named, snapshot))
            execute("INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        except sqlite3.Error:
            execute("ROLLBACK")
            raise
        execute("COMMIT")
        self._known.add(named)

    def add_journal(self, attempt: str, changes: Sequence[Change]) -> None:
        """Append journal lines in order, all or none.

        Raises:
            sqlite3.Error: Nothing was appended.
        """
        execute = self._connection.execute
        execute("BEGIN")
        try:
            for change in changes:
                execute(
                    "INSERT INTO journal (attempt, body) VALUES (?, ?)",
                    (attempt, json.dumps(change.body)),
                )
        except sqlite3.Error:
            execute("ROLLBACK")
            raise
        execute("COMMIT")

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
