"""What a camera bench leaves: files, closing words, and the exit code that goes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.cli.console import say
from retire.cli.inputs import many
from retire.domain.errors import EvidenceError, IncompleteError
from retire.pages.camera_figures import contact_sheet, stages_figure
from retire.pages.camera_report import camera_report
from retire.runner.camera_record import Status
from retire.runner.folder import write_json, write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from retire.runner.camera_record import BenchRun


def write_results(run: BenchRun, out: Path) -> None:
    """Write the summary, the figure, the report, and a sheet of the pictures that were kept."""
    write_json(out / "bench.json", run.summary())
    names = []
    for kind, data in stages_figure(run).items():
        write_whole(out / f"stages.{kind}", data)
    names.append("stages.svg")
    if run.kept:
        write_whole(out / "contact-sheet.png", contact_sheet(run, out / "frames"))
        names.append("contact-sheet.png")
    write_whole(out / "report.md", camera_report(run, names).encode())


def conclude(run: BenchRun, out: Path) -> None:
    """Say what there is, and end with the exit code that goes with it.

    Raises:
        EvidenceError: Something was seen that must not be.
        IncompleteError: A record gave no evidence.
    """
    skipped = len(run.records) - len(run.run_records)
    say(f"{many(len(run.sessions), 'eligible session')}, the qualification trace among them")
    say(f"{many(len(run.ended_early), 'record')} ended before contact with Home Assistant")
    if skipped:
        reason = next(item.reason for item in run.records if item.status is Status.NOT_RUN)
        say(f"{skipped} of {len(run.records)} records were not run: {reason}")
    say(f"report: {out / 'report.md'} (outside every certificate)")
    if run.faults:
        raise EvidenceError(
            f"{many(len(run.faults), 'contradiction')}: {run.faults[0]}", where=str(out)
        )
    if run.unswept:
        raise IncompleteError(
            f"whether anything happened outside the records is not known: {run.unswept}",
            where=str(out),
        )
    if run.incomplete:
        first = run.incomplete[0]
        raise IncompleteError(
            f"{many(len(run.incomplete), 'record')} gave no evidence; record {first.number}: "
            f"{first.reason}",
            where=str(out),
            mend="Mend the chain and run again in a new folder",
        )
