"""Figures of a camera bench: the three stages of each record, and a sheet of kept pictures."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from retire.domain.cell import AUTHORIZED
from retire.domain.trace import D3, ProposalStage
from retire.pages.camera_report import stage_words
from retire.pages.drawing import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    PALE,
    RED,
    SKY,
    drawable,
    drawn,
    frame,
    style,
)
from retire.runner.camera_record import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from retire.runner.camera_record import BenchRun, CameraRecord

_STAGES = ("D1 proposal", "D2 decision", "D3 effect")
_THUMBNAIL = (160, 120)
_GAP = 8


def stages_figure(run: BenchRun) -> Mapping[str, bytes]:
    """Draw what each record showed at each stage; returns ``svg`` and ``png``."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    title = f"Camera bench: three stages of {len(run.records)} records"
    members = list(dict.fromkeys(item.member for item in run.records))
    with style():
        rows = len(run.records) // max(1, len(members))
        figure = Figure(figsize=(5.8 * max(1, len(members)), 1.9 + 0.46 * rows))
        grid = figure.subplots(1, max(1, len(members)), squeeze=False, sharey=True)
        for member, axes in zip(members, grid.flat, strict=True):
            items = [item for item in run.records if item.member == member]
            _draw(axes, items, run.frames)
            axes.set_title(drawable(member.replace("_", " ")), fontsize=11, color=INK)
        notes = [
            (
                "Blue: passed on. Orange: a stream, authorized. Red: a stream, not "
                "authorized. Grey: ended here. White: no evidence, or not run."
            ),
            "A bench measurement, outside every certificate.",
        ]
        frame(figure, title, notes)
        return drawn(figure, title)


def _draw(axes: Axes, items: Sequence[CameraRecord], frames: int) -> None:
    for row, item in enumerate(items):
        for column, words in enumerate(stage_words(item, frames)):
            colour = _colour(item, column)
            axes.barh(
                row, 0.96, left=column, height=0.86, color=colour,
                edgecolor=GREY if colour == "white" else "white", linewidth=0.8,
            )  # fmt: skip
            axes.text(
                column + 0.48, row, _broken(words), ha="center", va="center",
                fontsize=7.5, color="white" if colour in {BLUE, RED} else INK,
            )  # fmt: skip
    axes.set_yticks(
        range(len(items)), [drawable(f"{item.deployment}  {item.condition}") for item in items]
    )
    axes.set_ylim(len(items) - 0.5, -0.5)
    axes.set_xlim(0, len(_STAGES))
    axes.set_xticks([place + 0.48 for place in range(len(_STAGES))], _STAGES)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _broken(words: str) -> str:
    """Return words as the figure can draw them, on two lines where they are long."""
    head, mark, rest = words.partition(": ")
    if mark and len(words) > 16:
        return f"{drawable(head)}:\n{drawable(rest)}"
    return drawable(words)


def _colour(item: CameraRecord, stage: int) -> str:
    if item.status is Status.NOT_RUN or (stage == 2 and item.status is Status.INCOMPLETE):
        return "white"
    if stage == 2:
        if isinstance(item.d3, D3) and item.d3.protected:
            return ORANGE if item.member == AUTHORIZED else RED
        return PALE
    if stage == 1:
        return BLUE if item.d2.act else PALE
    return SKY if isinstance(item.d1, ProposalStage) else PALE


def contact_sheet(run: BenchRun, folder: Path) -> bytes:
    """Return a PNG with a row of thumbnails for each session, from the pictures that were kept."""
    from PIL import Image, ImageDraw  # noqa: PLC0415

    width, height = _THUMBNAIL
    rows = [(item.number, (item.evidence or {}).get("hashes", [])) for item in run.sessions]
    most = max((len(hashes) for _, hashes in rows), default=1)
    step_x, step_y = width + _GAP, height + _GAP
    sheet = Image.new("RGB", (60 + most * step_x, max(1, len(rows)) * step_y + _GAP), "white")
    draw = ImageDraw.Draw(sheet)
    for row, (number, hashes) in enumerate(rows):
        top = _GAP + row * step_y
        draw.text((8, top + height // 2), str(number), fill=INK)
        for column, sha256 in enumerate(hashes):
            path = folder / f"{sha256}.jpg"
            if path.exists():
                with Image.open(path, formats=["JPEG"]) as picture:
                    picture.thumbnail(_THUMBNAIL)
                    sheet.paste(picture.convert("RGB"), (60 + column * step_x, top))
    out = io.BytesIO()
    sheet.save(out, "PNG")
    return out.getvalue()
