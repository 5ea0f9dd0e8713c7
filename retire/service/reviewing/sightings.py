"""Attempts in which the observer saw a protected effect, read from its record as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.joining import protected_attempt
from retire.domain.errors import EvidenceError

if TYPE_CHECKING:
    from pathlib import Path


class ProtectedAttempts:
    """The observer's record of one run; each look reads only what is new.

    Args:
        record: The record. It need not be there yet, and it may be another user's, who lets nobody
            read it before the run is sealed.
    """

    def __init__(self, record: Path) -> None:
        self._record = record
        self._read_to = 0

    def new(self) -> list[str]:
        """Return the attempts that were not returned before.

        Raises:
            EvidenceError: The record is there and cannot be read.
        """
        found = []
        try:
            with self._record.open("rb") as file:
                file.seek(self._read_to)
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # it is being written
                    self._read_to += len(line)
                    if attempt := protected_attempt(line):
                        found.append(attempt)
        except (FileNotFoundError, PermissionError):
            return []
        except OSError as error:
            raise EvidenceError(
                f"the observer's record cannot be read: {error.strerror}", where=str(self._record)
            ) from error
        return found
