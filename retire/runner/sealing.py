"""The end of a run: signed heads, the observer's sweep, and everything a verifier reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.joining import OBSERVER, RECORD_OF, RECORDS, countersigned
from retire.domain.document import DocumentFault, as_document
from retire.domain.errors import IncompleteError
from retire.domain.seal import Seal, SealedHead
from retire.runner.folder import copy_whole, write_document, write_lines
from retire.runner.passes import kept_passes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.domain.seal import Heads
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
    heads: Heads = {}
    for mediation, name in RECORD_OF.items():
        reply = await programs.doors[mediation].ask({"op": "head"})
        heads[name] = _head(name, reply)
    named = {name: head.hash for name, head in heads.items()}
    reply = await programs.observer.ask({"op": "head", "countersign": countersigned(named)})
    heads[OBSERVER] = _head(OBSERVER, reply)
    for name in RECORDS:
        record = folder.processes / name / "record.jsonl"
        copy_whole(record, folder.records / f"{name}.jsonl")
    write_lines(folder.traces, store.traces())
    sealed = Seal(
        schema="retire.seal/v1",
        heads=heads,
        stray=swept["stray"],
        attempts=store.attempt_cells(),
        passes=kept_passes(folder),
    )
    write_document(folder.seal, sealed)


def _head(name: str, reply: Mapping[str, object]) -> SealedHead:
    try:
        return as_document(SealedHead, reply.get("head"))
    except DocumentFault as fault:
        raise IncompleteError(
            f"the record of {name} has no signed head: {reply.get('error') or fault}",
            mend="Run the same command again",
        ) from fault
