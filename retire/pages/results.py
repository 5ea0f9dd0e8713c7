"""The results of a run: written into its folder, and summed up in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.pages.closing import closing_words
from retire.pages.figures import authorized_figure, effects_figure
from retire.pages.summary import summary
from retire.pages.tables import tables
from retire.runner.folder import write_json, write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from retire.wiring import Finished

__all__ = ["closing_words", "write_results"]


def write_results(
    finished: Finished, folder: Path | None = None, *, figures: bool = True
) -> tuple[Path, ...]:
    """Write ``summary.json``, ``tables.md`` and ``figures/``; returns the paths written.

    Args:
        finished: The run.
        folder: Where to write; None is the run's own folder.
        figures: Whether to draw, which takes some seconds.

    Raises:
        InputError: The folder cannot be written.
    """
    root = finished.run.folder.root if folder is None else folder
    written = [root / "summary.json", root / "tables.md"]
    write_json(written[0], summary(finished))
    write_whole(written[1], tables(finished).encode())
    if figures:
        drawn = {"authorized": authorized_figure(finished), "effects": effects_figure(finished)}
        for name, forms in drawn.items():
            for form, data in forms.items():
                path = root / "figures" / f"{name}.{form}"
                write_whole(path, data)
                written.append(path)
    return tuple(written)
