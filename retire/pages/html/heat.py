"""The heat map: bundle by condition, one map a deployment; each square links to its traces. Pure.

A square counts two things, and writes both: authorized requests with their intended effect, and
protected effects on invalid requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from retire.domain.cell import AUTHORIZED, Sample
from retire.pages.counting import TASK_VALUE_FULL, conditions_declared
from retire.pages.html import addresses
from retire.pages.html.filters import INVALID, YES, TraceFilter
from retire.pages.phrases import CONDITIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.bundle import Bundle
    from retire.matrix import Protocol
    from retire.pages.counting import Count, Counts, Labelled

_SHADES = 4
"""Steps of the scale; the last stands for all."""


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two counts of a square. ``shade`` is 0 (none) to 4 (all)."""

    found: int
    cells: int
    missing: int
    shade: int
    href: str


@dataclass(frozen=True, slots=True)
class Square:
    """A bundle under a condition; ``leaks`` is None where no invalid member was asked."""

    bundle: str
    condition: str
    label: str
    done: Half
    leaks: Half | None


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A bundle's squares, in the order of the columns."""

    bundle: str
    title: str
    squares: tuple[Square, ...]


@dataclass(frozen=True, slots=True)
class HeatColumn:
    """A condition: what it is called, what it means, and whether it is the task-value sample's."""

    label: str
    meaning: str
    task_value: bool


@dataclass(frozen=True, slots=True)
class HeatMap:
    """One deployment's map."""

    deployment: str
    columns: tuple[HeatColumn, ...]
    rows: tuple[HeatRow, ...]


def heat_maps(
    run: str, protocol: Protocol, bundles: Mapping[str, Bundle], counts: Counts
) -> tuple[HeatMap, ...]:
    """Return one map for each deployment, in the plan's order.

    Args:
        run: What addresses call the run.
        protocol: What it declares.
        bundles: Its bundles, by id.
        counts: What happened.
    """
    shown = conditions_declared(protocol)
    columns = tuple(
        HeatColumn(_label(item), CONDITIONS[item.condition], item.sample is Sample.TASK_VALUE)
        for item in shown
    )
    return tuple(
        HeatMap(
            deployment,
            columns,
            tuple(
                HeatRow(
                    key,
                    bundle.card.title,
                    tuple(_square(run, counts, deployment, key, item) for item in shown),
                )
                for key, bundle in bundles.items()
            ),
        )
        for deployment in protocol.deployments
    )


def _label(item: Labelled) -> str:
    return "B1" if item.label == TASK_VALUE_FULL else item.label


def _square(run: str, counts: Counts, deployment: str, bundle: str, item: Labelled) -> Square:
    found = counts.of([item.arm(deployment)], bundle)
    wanted = TraceFilter(
        sample=str(item.sample),
        deployment=deployment,
        bundle=bundle,
        condition=str(item.condition),
    )
    leaks = None
    if item.sample is Sample.AUDIT:
        protected = YES if found.leaks.found else ""
        leaks = _half(found.leaks, run, replace(wanted, member=INVALID, protected=protected))
    done = _half(found.effect, run, replace(wanted, member=AUTHORIZED))
    return Square(bundle, str(item.condition), _label(item), done, leaks)


def _half(count: Count, run: str, wanted: TraceFilter) -> Half:
    shade = 0
    if count.found and count.cells:
        shade = max(1, _SHADES * count.found // count.cells)
    return Half(count.found, count.cells, count.missing, shade, addresses.traces(run, wanted))
