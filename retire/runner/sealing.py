"""The end of a run: signed heads, the observer's sweep, and everything a verifier reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from retire.certify.joining import OBSERVER, RECORD_OF, RECORDS, Evidence, countersigned
from retire.domain.errors import IncompleteError
from retire.runner.folder import copy_whole, read_json, write_json, write_lines
from retire.runner.passes import kept_passes
from sink.record import Head

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from retire.runner.folder import RunFolder
    from retire.runner.processes import Programs
    from retire.store import RunStore


async def seal(folder: RunFolder, programs: Programs, store: RunStore) -> None:
    """Collect heads and sweep, copy the records, write traces and attempts.

    Raises:
        IncompleteError: The observer cannot sweep, or a program is gone.
    """
    swept = await programs.observer.ask({"op": "sweep"})
    if "error" in swept:
        raise IncompleteError(
            f"the observer's final sweep failed: {swept['error']}",
            mend="Run the same command again",
        )
    heads: dict[str, Head] = {}
    for mediation, name in RECORD_OF.items():
        reply = await programs.doors[mediation].ask({"op": "head"})
        heads[name] = _head(name, reply)
    reply = await programs.observer.ask({"op": "head", "countersign": countersigned(heads)})
    heads[OBSERVER] = _head(OBSERVER, reply)
    for name in RECORDS:
        record = folder.processes / name / "record.jsonl"
        copy_whole(record, folder.records / f"{name}.jsonl")
    write_lines(folder.traces, store.traces())
    write_json(
        folder.seal,
        {
            "schema": "retire.seal/v1",
            "heads": {name: head_json(head) for name, head in heads.items()},
            "stray": swept["stray"],
            "attempts": store.attempt_cells(),
            "passes": kept_passes(folder),
        },
    )


def _head(name: str, reply: Mapping[str, Any]) -> Head:
    if "head" not in reply:
        raise IncompleteError(
            f"the record of {name} has no signed head: {reply.get('error')}",
            mend="Run the same command again",
        )
    return Head(**reply["head"])


class TraceRows:
    """The rows of a trace file, read line by line on each pass."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self._count = sum(1 for _ in file)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        """Yield each row in the order of the chain."""
        with self._path.open("rb") as file:
            yield from map(json.loads, file)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count


def head_json(head: Head) -> dict[str, Any]:
    """Return a head as JSON."""
    return {name: getattr(head, name) for name in head.__slots__}


def read_evidence(folder: RunFolder) -> Evidence:
    """Read what a sealed run left behind.

    Raises:
        InputError: A file is missing or damaged.
    """
    sealed: Mapping[str, Any] = read_json(folder.seal)
    records: dict[str, bytes | None] = {}
    for name in RECORDS:
        path = folder.records / f"{name}.jsonl"
        records[name] = path.read_bytes() if path.exists() else None
    return Evidence(
        rows=TraceRows(folder.traces),
        records=records,
        heads={name: Head(**value) for name, value in sealed["heads"].items()},
        stray=sealed["stray"],
        attempts=sealed["attempts"],
        passes=sealed.get("passes", ()),
    )
