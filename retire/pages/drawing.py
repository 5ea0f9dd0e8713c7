"""What both figures share: colours, style, title and notes, and bytes without a date.

Matplotlib takes seconds to import, so it is imported where it is used. Equal runs give equal SVG
bytes: no date, and ids from a fixed salt.
"""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING

from retire.pages.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from matplotlib.figure import Figure


# From the palette of Okabe and Ito, which colour-blind readers can tell apart.
SKY, BLUE, ORANGE, RED = "#56B4E9", "#0072B2", "#E69F00", "#A63A00"
INK, GREY, PALE = "#222222", "#767676", "#E4E4E4"
_LAST_DRAWABLE = "\u024f"


def style() -> AbstractContextManager[None]:
    """Return the context in which both figures are made."""
    from matplotlib import rc_context  # noqa: PLC0415

    return rc_context(
        {
            "svg.hashsalt": "retire",
            "svg.fonttype": "path",
            "font.family": "DejaVu Sans",
            "font.size": 10.0,
            "text.parse_math": False,
            "figure.dpi": 150,
            "axes.edgecolor": GREY,
            "hatch.linewidth": 0.8,
        }
    )


def drawable(text: str) -> str:
    """Replace what the figure's font cannot draw."""
    return "".join(c if c <= _LAST_DRAWABLE or c == "…" else "?" for c in plain(text))


def frame(figure: Figure, title: str, notes: Sequence[str]) -> None:
    """Put a title above and notes below, and fit the axes between them."""
    width, height = figure.get_size_inches()
    per_line = int(width * 12.5)
    lines = [line for note in notes for line in textwrap.wrap(note, per_line)]
    wrapped = textwrap.wrap(title, int(width * 9))
    rows = len(wrapped)
    heading = figure.suptitle(
        "\n".join(wrapped), x=0.02, y=1 - 0.12 / height,
        ha="left", va="top", fontsize=13, fontweight="bold", color=INK,
    )  # fmt: skip
    figure.text(0.02, 0.1 / height, "\n".join(lines), ha="left", va="bottom", fontsize=9, color=INK)
    for text in (*figure.texts, heading):
        text.set_in_layout(False)
    below = 0.2 + 0.16 * len(lines)
    figure.tight_layout(rect=(0.01, below / height, 0.99, 1 - (0.2 + 0.2 * rows) / height))


def drawn(figure: Figure, title: str) -> Mapping[str, bytes]:
    """Return a figure as ``svg`` and ``png``, with its title for those who cannot see it."""
    vector, raster = io.BytesIO(), io.BytesIO()
    figure.savefig(vector, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    figure.savefig(raster, format="png", metadata={"Software": None, "Title": title})
    return {"svg": vector.getvalue(), "png": raster.getvalue()}
