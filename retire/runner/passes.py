"""The passes of a run: who every program was, kept before the first cell of each pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retire.domain.errors import InputError
from retire.runner.folder import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.runner.folder import RunFolder


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
    write_json(folder.passes, {"schema": "retire.passes/v1", "passes": passes})


def kept_passes(folder: RunFolder) -> list[dict[str, int]]:
    """Return the passes of a run so far.

    Raises:
        InputError: The file is damaged.
    """
    if not folder.passes.exists():
        return []
    kept: Any = read_json(folder.passes)
    passes = kept.get("passes") if isinstance(kept, dict) else None
    if not isinstance(passes, list) or not all(_is_pass(item) for item in passes):
        raise InputError(
            "this is not what a run writes here",
            where=str(folder.passes),
            mend="Remove it; the run then says that its programs were one user",
        )
    return passes


def _is_pass(item: object) -> bool:
    return isinstance(item, dict) and all(type(user) is int for user in item.values())
