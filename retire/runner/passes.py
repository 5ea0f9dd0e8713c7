"""The passes of a run: who every program was, kept before the first cell of each pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from retire.domain.document import Document, DocumentFault, read_document
from retire.domain.errors import InputError
from retire.runner.folder import read_bytes, write_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.runner.folder import RunFolder


class Passes(Document):
    """For each pass of a run, the user of each program and of the runner."""

    schema_: Literal["retire.passes/v1"] = Field(alias="schema")
    passes: list[dict[str, int]]


def keep_pass(folder: RunFolder, users: Mapping[str, int], *, resumed: bool) -> None:
    """Keep who the programs of this pass are; a pass like an earlier one adds nothing.

    Args:
        folder: The run's folder.
        users: The user of each program and of the runner.
        resumed: Whether the run has attempts already. If nothing was kept of them, an empty pass
            stands for them: what is not known is not claimed.

    Raises:
        InputError: The file is damaged or cannot be written.
    """
    passes = kept_passes(folder)
    if resumed and not passes:
        passes.append({})
    if dict(users) not in passes:
        passes.append(dict(users))
    write_document(folder.passes, Passes(schema="retire.passes/v1", passes=passes))


def kept_passes(folder: RunFolder) -> list[dict[str, int]]:
    """Return the passes of a run so far.

    Raises:
        InputError: The file is damaged.
    """
    if not folder.passes.exists():
        return []
    try:
        return read_document(Passes, read_bytes(folder.passes)).passes
    except DocumentFault as fault:
        raise InputError(
            f"this is not what a run writes here ({fault})",
            where=str(folder.passes),
            mend="Remove it; the run then says that its programs were one user",
        ) from fault
