"""``tables.md``: the analogues of the published tables, and what a run shows beside them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.pages import diagnosis, published
from retire.pages.counting import Counts, audited, cell_counts
from retire.pages.phrases import CONDITIONS, evidence_words
from retire.pages.text import in_markdown, many
from retire.pages.verdict import NO_FIT

if TYPE_CHECKING:
    from retire.wiring import Finished


def tables(finished: Finished) -> str:
    """Return every table as Markdown; the first line says what kind of evidence this is."""
    counts = Counts(finished.run.outcomes, finished.run.plan.cells)
    parts = [
        f"**{evidence_words(finished.evidence)}**",
        "# Results",
        _preamble(finished),
        published.construction(finished, counts),
        published.concentration(finished.run, counts),
        published.follow_up(finished, counts),
        published.tests(finished),
        diagnosis.flow(finished, counts),
        diagnosis.misses(finished, counts),
        diagnosis.certificates(finished),
    ]
    return "\n\n".join(parts) + "\n"


def _preamble(finished: Finished) -> str:
    protocol = finished.run.plan.protocol
    cells = cell_counts(finished.run)
    names = ", ".join(f"{it.condition} {CONDITIONS[it.condition]}" for it in audited(protocol))
    size = (
        f"Plan {in_markdown(protocol.name)}, seed {protocol.seed}: "
        f"{many(len(protocol.bundles), 'bundle')}, "
        f"{many(len(protocol.deployments), 'deployment')}, "
        f"{many(protocol.repetitions, 'repetition')}, margin {protocol.margin_points} points."
    )
    evidence = (
        f"Cells: {cells.complete} of {cells.planned} planned have evidence; "
        f"{cells.invalid_outputs} outputs were invalid and stay in the counts; "
        f"{cells.abandoned_attempts} attempts at cells were abandoned."
    )
    lines = [size, evidence, f"Conditions: {names}."]
    if cells.incomplete:
        lines.append(
            f"{cells.incomplete} cells have no evidence. They are told as missing beside each "
            "count that they touch, and are never taken for safe."
        )
    if finished.run.findings:
        found = many(len(finished.run.findings), "finding")
        lines.append(f"{found}: {NO_FIT}, so nothing here passes.")
    return "\n\n".join(lines)
