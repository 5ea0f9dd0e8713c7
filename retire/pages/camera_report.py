"""The report of a camera bench, as Markdown. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.domain.trace import D3
from retire.pages.phrases import CONDITIONS
from retire.pages.text import Column, in_markdown, many, numeric, table
from retire.runner.camera_record import CONDITIONS as RUN_CONDITIONS
from retire.runner.camera_record import Status

if TYPE_CHECKING:
    from retire.runner.camera_record import BenchRun, CameraRecord

FIRST_LINE = (
    "**This is a bench measurement of one camera chain. It is outside every certificate: it "
    "changes none, and it is no permission to ship.**"
)


def camera_report(run: BenchRun, pictures: list[str]) -> str:
    """Return the report.

    Args:
        run: What the bench gave.
        pictures: Names of image files beside the report.
    """
    parts = [
        FIRST_LINE,
        "# Camera bench",
        _setting(run),
        f"## What was found\n\n{_found(run)}",
        *(f"![{name}]({name})" for name in pictures),
        f"## Records\n\n{_records(run)}",
        f"## Sessions\n\n{_sessions(run)}",
        *_reasons(run),
        f"## Preflight\n\n{_preflight(run)}",
        f"## What this does not show\n\n{_limits(run)}",
    ]
    return "\n\n".join(parts) + "\n"


def _setting(run: BenchRun) -> str:
    found = run.preflight
    deployments = ", ".join(f"{name} ({kind})" for name, kind in run.evidence.items())
    source = "the camera's own log is read too" if found["second_source"] else "none"
    lines = [
        (
            f"Home Assistant at {found['url']}, entity {found['entity']}, which the contract of "
            f"{run.bundle} calls {found['target']}."
        ),
        f"Deployments: {deployments}.",
        f"Second source of the observer: {source}.",
        "Conditions: " + ", ".join(f"{item} {CONDITIONS[item]}" for item in RUN_CONDITIONS) + ".",
    ]
    lines += [
        f"Reduction for {name}: {deleted} of {of} clauses deleted, certified on authorized tasks "
        "in the stub world."
        for name, (deleted, of) in run.reductions.items()
    ]
    return "\n\n".join(in_markdown(line) for line in lines)


def _found(run: BenchRun) -> str:
    whole = [item for item in run.sessions if item.frames >= run.frames]
    unique = sorted({item.unique for item in whole})
    counts = " or ".join(map(str, unique)) if unique else "no"
    silent = sum(not item.contacts for item in run.ended_early)
    not_run = len(run.records) - len(run.run_records)
    lines = [
        (
            f"- {many(len(run.records), 'record')} and one qualification trace; "
            f"{len(run.run_records)} records were run, {not_run} were not."
        ),
        (
            f"- {many(len(run.sessions), 'eligible session')} opened a stream; {len(whole)} gave "
            f"{run.frames} whole pictures, with {counts} different ones."
        ),
        (
            f"- {many(len(run.ended_early), 'record')} ended before an act; of these {silent} sent "
            "nothing to Home Assistant, by the acting programs' own logs of requests."
        ),
        f"- {many(len(run.incomplete), 'record')} gave no evidence.",
    ]
    if run.unswept:
        lines.append(f"- no sweep for streams outside the records: {in_markdown(run.unswept)}")
    lines += [f"- contradiction: {in_markdown(fault)}" for fault in run.faults]
    return "\n".join(lines)


def stage_words(record: CameraRecord, frames: int) -> tuple[str, str, str]:
    """Return what a record shows at each of the three stages, in a few words."""
    if record.status is Status.NOT_RUN:
        return "not run", "not run", "not run"
    proposal = record.d1.outcome if record.d1 else "none"
    outcome, reason = record.d2.outcome.replace("_", " "), record.d2.reason.replace("_", " ")
    decision = f"{outcome}: {reason}" if reason else outcome
    if record.status is Status.INCOMPLETE:
        seen = f", {many(record.frames, 'picture')} seen" if record.frames else ""
        return proposal, decision, f"no evidence{seen}"
    if isinstance(record.d3, D3) and record.d3.protected:
        whole = f"{record.frames} of {frames}" if record.frames < frames else str(record.frames)
        return proposal, decision, f"stream: {whole} pictures, {record.unique} different"
    return proposal, decision, "no stream"


def _records(run: BenchRun) -> str:
    columns = [
        *numeric("no."),
        *(Column(name) for name in ("deployment", "condition", "request")),
        *(Column(name) for name in ("D1 proposal", "D2 decision", "D3 effect")),
        *numeric("requests to Home Assistant"),
    ]
    rows = [
        [
            str(item.number),
            item.deployment,
            item.condition,
            item.member.replace("_", " "),
            *stage_words(item, run.frames),
            str(item.contacts),
        ]
        for item in (run.qualification, *run.records)
    ]
    return table(columns, rows)


def _sessions(run: BenchRun) -> str:
    if not run.sessions:
        return "No session was opened."
    columns = [
        *numeric("no."),
        Column("recipient"),
        *numeric("pictures", "different", "new", "seconds"),
        *(Column(name) for name in ("size", "how the stream was written", "first hash")),
    ]
    rows = []
    for item in run.sessions:
        seen = item.evidence or {}
        arrivals, hashes = seen.get("arrivals") or [0.0], seen.get("hashes") or [""]
        rows.append(
            [
                str(item.number),
                str(seen.get("recipient", "")),
                str(item.frames),
                str(item.unique),
                str(seen.get("fresh", 0)),
                f"{arrivals[-1]:.2f}",
                ", ".join(seen.get("sizes", [])),
                str(seen.get("variant", "")),
                hashes[0][:16],
            ]
        )
    note = "Different pictures are counted by the SHA-256 of their bytes; all of them are on record"
    kept = "and the pictures themselves were kept." if run.kept else "and no picture was kept."
    return f"{table(columns, rows)}\n\n{note}, {kept}"


def _reasons(run: BenchRun) -> list[str]:
    parts = []
    skipped = [item for item in run.records if item.status is Status.NOT_RUN]
    for title, items in (("Not run", skipped), ("No evidence", run.incomplete)):
        lines = [
            f"- record {item.number} ({item.deployment}, {item.condition}, "
            f"{item.member.replace('_', ' ')}): {item.reason}"
            for item in items
        ]
        if lines:
            parts.append(f"## {title}\n\n" + "\n".join(in_markdown(line) for line in lines))
    return parts


def _preflight(run: BenchRun) -> str:
    rows = [[step["name"], step["found"]] for step in run.preflight["steps"]]
    return table([Column("looked at"), Column("found")], rows)


def _limits(run: BenchRun) -> str:
    lines = [
        "One camera, one path, one repetition: nothing here is a rate.",
        "That nothing was sent before a decision rests on the acting program's own log"
        + (
            " and on the camera's own log, which the observer read."
            if run.preflight["second_source"]
            else "; the camera kept no log that could be compared."
        ),
        "Grants, consents and facts were frozen by the stub world; the act was real.",
        "A stream outside this chain, for example another client of the camera, is not seen.",
    ]
    if not all(kind.ships for kind in run.evidence.values()):
        lines.append("A simulated deployment is a fixture that exercises the method, not a model.")
    return "\n".join(f"- {line}" for line in lines)
