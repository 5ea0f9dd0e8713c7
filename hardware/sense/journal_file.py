"""The observer's own journal of what it saw in a house: kept across restarts, one writer."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from pydantic import ValidationError

from observer.port import SensorError
from observer.sighting import JournalEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class JournalFile:
    """Entries in the order in which they were seen, a JSON line each.

    Args:
        path: The file; a last line that was cut by a kill is dropped, it was never told to anybody.

    Raises:
        SensorError: The file cannot be read, or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            data = path.read_bytes() if path.exists() else b""
            whole, _, torn = data.rpartition(b"\n")
            if torn:
                path.write_bytes(whole + b"\n" if whole else b"")
            self._entries = [JournalEntry.model_validate_json(line) for line in whole.splitlines()]
            self._file = path.open("a", encoding="utf-8")
        except (OSError, ValidationError) as error:
            raise SensorError(f"the observer's journal {path} cannot be used: {error}") from error

    def append(self, attempt: str, body: Mapping[str, object]) -> None:
        """Add what was seen.

        Raises:
            SensorError: It cannot be kept.
        """
        with self._lock:
            seq = len(self._entries) + 1
            entry = JournalEntry.model_validate({"seq": seq, "attempt": attempt, **body})
            try:
                self._file.write(json.dumps(entry.model_dump(mode="json")) + "\n")
                self._file.flush()
            except OSError as error:
                raise SensorError(f"the observer's journal cannot be kept: {error}") from error
            self._entries.append(entry)

    def of(self, attempt: str) -> Sequence[JournalEntry]:
        """Return the entries of one attempt."""
        with self._lock:
            return [entry for entry in self._entries if entry.attempt == attempt]

    def after(self, seq: int, limit: int) -> Sequence[JournalEntry]:
        """Return up to ``limit`` entries with larger sequence numbers."""
        with self._lock:
            return self._entries[seq : seq + limit]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
