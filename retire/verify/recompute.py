"""Recompute a run: every prompt, every answer's reading, every reduction.

The ledger of a reduction states the result of every trial. The search is deterministic, so that
these results give back which trials were made, in which order, and what was deleted in the end. The
results themselves are held against what the observer's record says of each trial's attempts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.joining import OBSERVER
from retire.domain.digests import sha256
from retire.domain.document import DocumentFault, read_document
from retire.domain.trace import stage_of
from retire.prompts import build_prompt
from retire.reduce import Reduction, Strategy, Trial, TrialResult, search
from retire.runner.attempt import answer_text
from retire.runner.job import PlacedTexts, cell_job
from retire.runner.reducing import DEVELOPMENT, FoundReduction, development_key
from retire.skill import render
from sink.proposal import parse
from sink.record import parse_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from retire.bundle import Bundle
    from retire.certify.joining import Records
    from retire.matrix import Plan
    from retire.runner.reducing import GivenReduction, KeptReduction
    from retire.verify.run import SealedRun


def run_problems(run: SealedRun) -> tuple[str, ...]:
    """Return the reductions, prompts and answers of a run that do not come out again."""
    sighted = sighted_development(run.records)
    return (
        *kept_problems(run.plan, run.bundles, run.reductions, sighted),
        *_trace_problems(run),
    )


def _trace_problems(run: SealedRun) -> Iterator[str]:
    """Re-render every prompt and re-read every answer."""
    declared = set(run.plan.cells)
    texts = PlacedTexts(run.bundles, run.deleted)
    for row in run.traces:
        trace = row.body
        cell = trace.cell.cell
        if cell not in declared:
            yield f"{cell.key}: the plan declares no such cell"
            continue
        bundle = run.bundles[cell.bundle]
        job = cell_job(bundle, cell, texts.of(cell), run.plan.protocol.seed)
        snapshot = bundle.member(cell.member).snapshot.decode()
        prompt = build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)
        answer = answer_text(trace.answer)
        checks = {
            "the prompt does not re-render": trace.prompt == prompt.digest,
            "the snapshot is not its member's": trace.snapshot == job.snapshot,
            "the contract digest differs": trace.contract == job.contract,
            "the effect digest differs": trace.effect == job.effect,
            "the answer's digest differs": trace.answer_digest == sha256(answer.encode()),
            "the proposal stage is not what the answer says": trace.d1
            == stage_of(parse(trace.answer)),
        }
        for problem, holds in checks.items():
            if not holds:
                yield f"{cell.key}: {problem}"


def sighted_development(records: Records) -> dict[str, list[bool]]:
    """Return whether the observer saw the intended effect, for each attempt of each trial's task.

    The keys are those of :func:`development_key`. An attempt that was cut and made again is there
    twice.
    """
    served = {
        attempt: key
        for attempt, key in records.attempts.items()
        if key.startswith(f"{DEVELOPMENT}/")
    }
    found: dict[str, list[bool]] = defaultdict(list)
    if served:
        for line in (records.files.get(OBSERVER) or b"").splitlines():
            entry = parse_line(line)
            body = entry.body if entry is not None else {}
            key = served.get(str(body.get("attempt")))
            if key is not None and body.get("kind") == "sighting":
                found[key].append(bool(body.get("complete")) and bool(body.get("intended")))
    return found


def kept_problems(
    plan: Plan,
    bundles: Mapping[str, Bundle],
    kept: Mapping[tuple[str, str], KeptReduction],
    sighted: Mapping[str, list[bool]],
) -> Iterator[str]:
    """Say what of the reductions does not come out again: the texts, then the trials.

    Args:
        plan: The run's plan.
        bundles: Its bundles.
        kept: Its reductions, by deployment and bundle.
        sighted: What :func:`sighted_development` returns of its evidence.
    """
    for (deployment, key), item in kept.items():
        place = f"reductions/{deployment}/{key}"
        described = item.described
        if described is None or item.text is None:
            yield f"{place}: the reduction is missing"
            continue
        if item.text != render(bundles[key].skill, described.deleted):
            yield f"{place}: SKILL.md is not the full skill without the clauses of reduction.json"
        if _given(plan):
            continue
        if item.ledger is None:
            yield f"{place}/trials.jsonl: the trial ledger is missing"
            continue
        replayed = _replay(plan, bundles[key], item.ledger.splitlines())
        if isinstance(replayed, _Stopped):
            yield f"{place}/trials.jsonl:{replayed.line}: {replayed.why}"
            continue
        yield from _ledger_problems(item.ledger, replayed, described, place)
        yield from _sighting_problems(deployment, bundles[key], replayed, sighted, place)


def _given(plan: Plan) -> bool:
    """Whether the run's reducer made no candidates; the plan says it, not the reduction's file."""
    return bool(plan.statement.candidates) or not plan.protocol.candidates


def _ledger_problems(
    ledger: bytes, replayed: Reduction, described: GivenReduction | FoundReduction, place: str
) -> Iterator[str]:
    where = f"{place}/trials.jsonl"
    lines = ledger.splitlines()
    for number, trial in enumerate(replayed.trials, start=1):
        if _trial_of(lines[number - 1]) != trial:
            yield f"{where}:{number}: the search gives another trial with these results"
            return
    if len(lines) > len(replayed.trials):
        yield f"{where}:{len(replayed.trials) + 1}: the search had ended, and made no such trial"
    again, said = FoundReduction.of(replayed).as_json(), described.as_json()
    for name in sorted(again.keys() | said.keys()):
        if again.get(name) != said.get(name):
            yield f"{place}/reduction.json: the trials give another value of {name}"


def _sighting_problems(
    deployment: str,
    bundle: Bundle,
    reduction: Reduction,
    sighted: Mapping[str, list[bool]],
    place: str,
) -> Iterator[str]:
    tasks = bundle.development_view().tasks
    for trial in reduction.trials:
        text = render(bundle.skill, trial.deleted)
        keys = [development_key(deployment, bundle.id, task.id, text) for task in tasks]
        seen = [sighted.get(key, []) for key in keys]
        where = f"{place}/trials.jsonl:{trial.number}"
        if not all(seen):
            yield f"{where}: the observer saw no attempt at {seen.count([])} of the trial's tasks"
            return
        # Of a task that was tried again the ledger holds one result, and not which.
        least, most = sum(map(all, seen)), sum(map(any, seen))
        if not least <= trial.completed <= most:
            yield f"{where}: the observer saw {most} of its tasks completed, not {trial.completed}"
            return


@dataclass(frozen=True, slots=True)
class _Stopped:
    """Where a ledger cannot be replayed any further."""

    line: int
    why: str


def _replay(plan: Plan, bundle: Bundle, lines: list[bytes]) -> Reduction | _Stopped:
    protocol = plan.protocol
    view = bundle.development_view()
    clauses = [clause.id for clause in view.skill.clauses]
    asking = search(Strategy(protocol.reducer), clauses, protocol.margin)
    deleted = next(asking)
    for number, line in enumerate(lines, start=1):
        trial = _trial_of(line)
        if trial is None or not 0 <= trial.completed <= len(view.tasks):
            return _Stopped(number, "this is no trial as a run writes it")
        if trial.deleted != tuple(clause for clause in clauses if clause in deleted):
            return _Stopped(number, "the search tries another deletion here")
        try:
            deleted = asking.send(TrialResult(trial.completed, len(view.tasks)))
        except StopIteration as end:
            if isinstance(end.value, Reduction):
                return end.value
    return _Stopped(len(lines) + 1, "a trial is missing: the search had not ended")


def _trial_of(line: bytes) -> Trial | None:
    try:
        return read_document(Trial, line)
    except DocumentFault:
        return None
