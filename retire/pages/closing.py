"""The words at the end of a matrix: what was run, what leaked, what passes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.gates import Verdict
from retire.pages.counting import CellCounts, Counts, audited, cell_counts, deletions
from retire.pages.phrases import CONDITIONS, evidence_words
from retire.pages.text import many, paragraph, shortened
from retire.pages.verdict import NO_FIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.certify.certificate import Certificate
    from retire.domain.cell import Condition
    from retire.verify.run import SealedRun
    from retire.wiring import Finished

_MOST_NAMES = 4
_NAMES = "summary.json, tables.md, certificates/, and figures/ if they were drawn"


def closing_words(finished: Finished) -> str:
    """Return the short summary of a run as plain text of fewer than 25 lines."""
    cells = cell_counts(finished.run)
    parts = [
        paragraph(evidence_words(finished.evidence)),
        paragraph(_run(finished.run, cells), "Ran      "),
        paragraph(_deleted(finished.run), "Deleted  "),
        paragraph(_leaked(finished.run), "Leaked   "),
        *_verdicts(finished),
        paragraph(_meaning(finished, cells), "Beware   "),
        paragraph(f"{finished.run.folder.root}: {_NAMES}", "Files    "),
    ]
    return "\n".join(parts) + "\n"


def _run(run: SealedRun, cells: CellCounts) -> str:
    protocol = run.plan.protocol
    text = (
        f"{cells.complete} of {cells.planned} cells: {many(len(protocol.bundles), 'bundle')}, "
        f"{many(len(protocol.deployments), 'deployment')}, "
        f"{many(protocol.repetitions, 'repetition')}."
    )
    if cells.incomplete:
        text += (
            f" {many(cells.incomplete, 'cell')} without evidence; "
            "run the same command again to try again."
        )
    return text


def _deleted(run: SealedRun) -> str:
    found = [deletions(run, name) for name in run.plan.protocol.deployments]
    known = sum(item.known for item in found)
    if not known:
        return "nothing, no reduction was made."
    deleted, clauses = sum(item.deleted for item in found), sum(item.clauses for item in found)
    share = f" ({100 * deleted / clauses:.1f}%)" if clauses else ""
    by = "by the candidates given" if any(item.given for item in found) else "on authorized tasks"
    missing = sum(item.bundles for item in found) - known
    gap = f"; {many(missing, 'reduction')} missing" if missing else ""
    return (
        f"{deleted} of {clauses} clauses{share} {by}; "
        f"{sum(item.empty for item in found)} of {known} skills were left empty{gap}."
    )


def _leaked(run: SealedRun) -> str:
    counts = Counts(run.outcomes, run.plan.cells)
    protocol = run.plan.protocol
    parts = []
    for item in audited(protocol):
        leaks = counts.of([item.arm(name) for name in protocol.deployments]).leaks
        parts.append(f"{item.condition} {leaks.fraction()}")
    return f"protected effects on invalid requests: {', '.join(parts)}."


def _verdicts(finished: Finished) -> list[str]:
    conditions = finished.run.plan.protocol.candidates
    if not conditions:
        return [paragraph("nothing was judged, the plan declares no candidate.", "Verdicts ")]
    lines: list[str] = []
    for condition in conditions:
        mine = [item for item in finished.certificates if item.condition is condition]
        start = "Verdicts " if not lines else " " * 9
        lines.append(paragraph(_verdict_line(condition, mine), start, " " * 12))
    return lines


def _verdict_line(condition: Condition, mine: Sequence[Certificate]) -> str:
    passing = [item for item in mine if item.verdict is Verdict.PASS]
    text = f"{condition} {CONDITIONS[condition]}: {len(passing)} of {len(mine)} deployments pass"
    others = [
        f"{shortened(item.deployment, 20)} ({item.verdict})"
        for item in mine
        if item.verdict is not Verdict.PASS
    ]
    shown = others[:_MOST_NAMES]
    more = f" and {len(others) - len(shown)} more" if len(others) > len(shown) else ""
    return text + (f"; not {', '.join(shown)}{more}." if others else ".")


def _meaning(finished: Finished, cells: CellCounts) -> str:
    text = (
        "a pass speaks of these cells, bundles and deployments only; it bounds nothing that was "
        "not declared, varied or observed."
    )
    if findings := finished.run.findings:
        text = (
            f"{many(len(findings), 'finding')}: {NO_FIT}, so nothing passes. "
            f"First: {shortened(findings[0].what, 80)}. {text}"
        )
    if cells.incomplete:
        text += " A cell without evidence is not a safe cell."
    return text
