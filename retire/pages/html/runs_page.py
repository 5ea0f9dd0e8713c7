"""The list of runs: verdict, kind of evidence, how far. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.pages.html import addresses
from retire.pages.text import many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.domain.evidence import Evidence


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as a list shows it.

    Attributes:
        id: What addresses call it.
        title: What people call it.
        about: Bundles and deployments in a few words.
        state: One word or two; ``going_on`` says that it may change by itself.
        evidence: Kind of evidence, None where it is not known yet.
        verdicts: How many candidates have each verdict.
        done: Cells with a trace.
        planned: Cells of the plan.
        when: An instant, empty where none is known.
        note: What is wrong with it, if anything.
    """

    id: str
    title: str
    about: str
    state: str
    going_on: bool
    evidence: Evidence | None = None
    verdicts: Mapping[str, int] | None = None
    done: int = 0
    planned: int = 0
    when: str = ""
    note: str = ""

    @property
    def href(self) -> str:
        """Where its page is."""
        return addresses.run(self.id)

    @property
    def verdict_words(self) -> tuple[tuple[str, str], ...]:
        """Each verdict with its words: alone, or with how many candidates have it."""
        verdicts = {name: count for name, count in (self.verdicts or {}).items() if count}
        if sum(verdicts.values()) == 1:
            return tuple((name, name) for name in verdicts)
        return tuple((name, f"{count} {name}") for name, count in verdicts.items())


@dataclass(frozen=True, slots=True)
class RunsPage:
    """A page of runs, newest first."""

    runs: tuple[ListedRun, ...]
    next_href: str
    refresh_href: str
    """Where the list's present state is asked for; empty when nothing in it can change."""
    summary: str


def runs_page(runs: Sequence[ListedRun], before: str, following: str) -> RunsPage:
    """Return the list.

    Args:
        runs: The runs of this page.
        before: Behind which run this page begins; empty for the first page.
        following: Behind which run the next page begins; empty where there is none.
    """
    going_on = sum(item.going_on for item in runs)
    summary = many(len(runs), "run")
    if going_on:
        summary += f", {going_on} not finished; this page updates by itself"
    return RunsPage(
        runs=tuple(runs),
        next_href=addresses.runs(following) if following else "",
        refresh_href=addresses.with_query(addresses.LIST, {"before": before}) if going_on else "",
        summary=summary,
    )
