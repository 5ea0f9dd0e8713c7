"""Figures: authorized outcomes, and protected effects by bundle. Bytes out, no global state."""

from __future__ import annotations

import textwrap
from math import ceil
from typing import TYPE_CHECKING

from retire.domain.cell import Condition, Sample
from retire.pages.counting import Counts, audited, conditions_declared
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
from retire.pages.phrases import CONDITIONS
from retire.pages.text import plain
from retire.pages.verdict import threshold_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from retire.pages.counting import Count, Labelled
    from retire.wiring import Finished

_ACROSS = 4
_GAPS = "?: some of these cells have no evidence, so the number could be higher."


def authorized_figure(finished: Finished) -> Mapping[str, bytes]:
    """Draw authorized outcomes by deployment and condition; returns ``svg`` and ``png``."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    run = finished.run
    counts = Counts(run.outcomes, run.plan.cells)
    names = run.plan.protocol.deployments
    shown = conditions_declared(run.plan.protocol)
    most = max(_all_cells(counts.of([i.arm(n)]).effect) for n in names for i in shown)
    across = min(len(names), _ACROSS)
    down = ceil(len(names) / across)
    with style():
        size = (max(2.0 + across * (0.9 + 0.36 * len(shown)), 8.4), 2.1 + 2.6 * down)
        figure = Figure(figsize=size)
        grid = figure.subplots(down, across, squeeze=False, sharey=True)
        for place, axes in enumerate(grid.flat):
            if place < len(names):
                _bars(axes, finished, counts, names[place], most)
                axes.set_ylabel("authorized cells" if place % across == 0 else "")
            else:
                axes.set_axis_off()
        title = f"Authorized requests that had their intended effect, of {most} per condition"
        notes = [
            threshold_words(run.plan.protocol.margin_points),
            "Grey: the task-value sample, which is never pooled with the audit.",
            *([_GAPS] if _has_gaps(counts, names, shown) else []),
            _conditions_words(shown),
            _evidence(finished),
        ]
        frame(figure, title, notes)
        return drawn(figure, title)


def effects_figure(finished: Finished) -> Mapping[str, bytes]:
    """Draw protected effects by bundle and condition, a map per deployment; ``svg`` and ``png``."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    run = finished.run
    counts = Counts(run.outcomes, run.plan.cells)
    names = run.plan.protocol.deployments
    bundles = list(run.bundles)
    shown = audited(run.plan.protocol)
    across = min(len(names), _ACROSS)
    down = ceil(len(names) / across)
    labels = [drawable(f"{key}  {_short_title(finished, key)}") for key in bundles]
    with style():
        margin = 0.8 + 0.075 * max(map(len, labels))
        width = margin + across * (0.4 + 0.44 * len(shown))
        size = (max(width, 8.4), 1.9 + down * (0.75 + 0.33 * len(bundles)))
        figure = Figure(figsize=size)
        grid = figure.subplots(down, across, squeeze=False, sharey=True)
        for place, axes in enumerate(grid.flat):
            if place < len(names):
                cells = [
                    [counts.of([item.arm(names[place])], key).leaks for item in shown]
                    for key in bundles
                ]
                _heat_map(axes, cells, shown)
                axes.set_title(drawable(names[place]), fontsize=11, color=INK)
                axes.set_yticks(range(len(bundles)), labels)
            else:
                axes.set_axis_off()
        every = {
            _all_cells(counts.of([i.arm(n)], k).leaks)
            for n in names
            for k in bundles
            for i in shown
        }
        of = "/".join(map(str, sorted(every)))
        title = f"Protected effects on invalid requests, of {of} per bundle and condition"
        squares = (
            "Framed squares: unauthorized effects that the observer saw; darker is more. "
            "0 without a frame: none was seen."
        )
        notes = [
            squares,
            *([_GAPS] if _has_gaps(counts, names, shown) else []),
            _conditions_words(shown),
            _evidence(finished),
        ]
        frame(figure, title, notes)
        return drawn(figure, title)


def _all_cells(count: Count) -> int:
    return count.cells + count.missing


def _has_gaps(counts: Counts, names: Sequence[str], shown: Sequence[Labelled]) -> bool:
    arms = [counts.of([item.arm(name)]) for name in names for item in shown]
    return any(not (arm.leaks.known and arm.effect.known) for arm in arms)


def _evidence(finished: Finished) -> str:
    kind = finished.evidence
    return f"Evidence: {kind}." + ("" if kind.ships else " Not a replication.")


def _conditions_words(shown: Sequence[Labelled]) -> str:
    found = sorted({item.condition for item in shown})
    return ", ".join(f"{condition} {CONDITIONS[condition]}" for condition in found) + "."


def _short_title(finished: Finished, key: str) -> str:
    return textwrap.shorten(plain(finished.run.bundles[key].card.title), 40, placeholder="…")


def _bars(axes: Axes, finished: Finished, counts: Counts, name: str, most: int) -> None:
    shown = conditions_declared(finished.run.plan.protocol)
    for place, item in enumerate(shown):
        count = counts.of([item.arm(name)]).effect
        least = _least(finished, name, item.condition) if item.sample is Sample.AUDIT else None
        below = least is not None and count.found + count.missing < least
        axes.bar(
            place,
            count.found,
            width=0.74,
            color=_fill(item, below=below),
            edgecolor=INK,
            linewidth=0.6,
            hatch="////" if below else None,
        )
        if count.missing:
            axes.bar(
                place, count.missing, width=0.74, bottom=count.found, color="white",
                edgecolor=GREY, linewidth=0.6, linestyle=":",
            )  # fmt: skip
        dark = item.condition is Condition.B1 and item.sample is Sample.AUDIT
        axes.text(
            place, 0.025 * most, f"{count.found}{'?' if count.missing else ''}",
            ha="center", va="bottom", fontweight="bold", color="white" if dark else INK,
            bbox={"facecolor": _fill(item, below=below), "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
    _threshold(axes, finished, name)
    axes.set_xticks(range(len(shown)), [_tick(item) for item in shown], fontsize=9)
    axes.set_xlim(-0.6, len(shown) + 0.35)
    step = most // next(parts for parts in (4, 3, 2, 1) if most % parts == 0)
    axes.set_yticks(range(0, most + 1, max(step, 1)))
    axes.set_ylim(0, most * 1.04)
    axes.set_title(drawable(name), fontsize=11, color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)


def _threshold(axes: Axes, finished: Finished, name: str) -> None:
    shown = conditions_declared(finished.run.plan.protocol)
    least = None
    places = []
    for place, item in enumerate(shown):
        needed = _least(finished, name, item.condition) if item.sample is Sample.AUDIT else None
        if needed is not None:
            least = needed
            places.append(place)
    if least is None:
        return
    axes.hlines([least], places[0] - 0.5, places[-1] + 0.5, colors=INK, linestyles="--", lw=1.4)
    axes.text(places[-1] + 0.55, least, f"≥{least}", ha="left", va="center", color=INK)


def _least(finished: Finished, name: str, condition: Condition) -> int | None:
    judged = finished.certificate_of(name, condition)
    return None if judged is None else judged.gates.utility.smallest_passing


def _fill(item: Labelled, *, below: bool) -> str:
    if item.sample is Sample.TASK_VALUE:
        return PALE
    if item.condition is Condition.B1:
        return BLUE
    return ORANGE if below else SKY


def _tick(item: Labelled) -> str:
    value = item.sample is Sample.TASK_VALUE
    return f"{item.condition}\ntask\nvalue" if value else f"{item.condition}"


def _heat_map(axes: Axes, cells: Sequence[Sequence[Count]], shown: Sequence[Labelled]) -> None:
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    for row, line in enumerate(cells):
        for column, count in enumerate(line):
            if count.found:
                box = Rectangle(
                    (column - 0.46, row - 0.46), 0.92, 0.92,
                    facecolor=_shade(count), edgecolor=INK, linewidth=0.8,
                )  # fmt: skip
                axes.add_patch(box)
            text = f"{count.found}?" if count.missing else f"{count.found}"
            axes.text(
                column, row, text, ha="center", va="center",
                color=_on(count), fontweight="bold" if count.found else "normal",
            )  # fmt: skip
    axes.set_xlim(-0.5, len(shown) - 0.5)
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.set_xticks(range(len(shown)), [str(item.condition) for item in shown])
    axes.tick_params(length=0)
    axes.set_facecolor("#FAFAFA")
    for spine in axes.spines.values():
        spine.set_color(PALE)


def _share(count: Count) -> float:
    return count.found / max(_all_cells(count), 1)


def _shade(count: Count) -> tuple[float, float, float]:
    """Return an orange to brown that darkens with the share, never near the empty ground."""
    from matplotlib.colors import to_rgb  # noqa: PLC0415

    light, dark = to_rgb("#FBC98A"), to_rgb(RED)
    share = _share(count)
    red, green, blue = (a + (b - a) * share for a, b in zip(light, dark, strict=True))
    return red, green, blue


def _on(count: Count) -> str:
    if not count.found:
        return INK if count.missing else GREY
    return "white" if _share(count) > 0.5 else INK
