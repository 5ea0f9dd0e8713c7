"""The note that a purge leaves beside a run's folder, so that whoever looks for it is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from retire.domain.errors import InputError
from retire.runner.folder import write_json

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".purged"


def note_of(folder: Path) -> Path:
    """Return where the note lies for a run's folder, which itself is removed."""
    folder = folder.resolve()
    return folder.with_name(f"{folder.name}{SUFFIX}")


def leave_note(folder: Path, when: str) -> None:
    """Write the note; a second purge leaves the first one's instant.

    Raises:
        InputError: It cannot be written.
    """
    note = note_of(folder)
    if not note.exists():
        write_json(note, {"schema": "retire.purged/v1", "run": folder.name, "purged_at": when})


def refuse_purged(folder: Path) -> None:
    """Refuse to read a run that was purged: what is left of its folder is no evidence.

    Raises:
        InputError: It was purged.
    """
    note = note_of(folder)
    if not note.is_file():
        return
    raise InputError(
        f"this run was purged{_when(note)}: its answers, bundle copies and records are gone, and "
        "nothing of it can be recomputed",
        where=str(folder),
        mend="Its digests and outcomes stay with the service (GET /runs/ID/traces); for evidence, "
        "run the same again",
    )


def _when(note: Path) -> str:
    try:
        return f" at {json.loads(note.read_bytes())['purged_at']}"
    except (OSError, ValueError, LookupError, TypeError):
        return ""  # that it is there says enough
