"""What is kept of a reduction, and replaying its trial ledger. Pure.

The ledger states the result of every trial. The search is deterministic, so that these results give
back which trials were made, in which order, and what was deleted in the end. The results themselves
are held against what the observer's record says of each trial's attempts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.certify.joining import OBSERVER
from retire.domain.digests import canonical, sha256
from retire.reduce import Reduction, Strategy, TrialResult, search
from retire.skill import render
from sink.record import parse_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from retire.bundle import Bundle
    from retire.certify.joining import Evidence
    from retire.matrix import Plan

_DEVELOPMENT = "development/"


@dataclass(frozen=True, slots=True)
class KeptReduction:
    """A reduction as it lies in a run's folder; None is what is missing there.

    Attributes:
        described: What was deleted, and how it was found.
        text: The reduced skill.
        ledger: The trials, one JSON object a line.
    """

    described: Mapping[str, Any] | None
    text: bytes | None
    ledger: bytes | None


def reduction_json(reduction: Reduction) -> dict[str, Any]:
    """Return what is kept of a reduction beside its text and its trials."""
    return {
        "given": False,
        "strategy": str(reduction.strategy),
        "deleted": list(reduction.deleted),
        "trials": len(reduction.trials),
        "pass_trials": reduction.pass_trials,
        "verification_trials": reduction.verification_trials,
        "allowed_losses": reduction.allowed_losses,
        "margin_binding": reduction.margin_binding,
        "vacuous": reduction.vacuous,
        "non_monotone": [list(pair) for pair in reduction.non_monotone],
    }


def trial_json(trial: Any) -> dict[str, Any]:  # noqa: ANN401  # a frozen slots dataclass
    """Return one line of the trial ledger."""
    return {name: getattr(trial, name) for name in trial.__slots__}


def development_key(deployment: str, bundle: str, task: str, text: bytes) -> str:
    """Return what attempts at one development task of one trial are filed under.

    Args:
        deployment: Who is asked.
        bundle: Whose task it is.
        task: The task's id.
        text: The reduced skill of the trial.
    """
    return f"{_DEVELOPMENT}{deployment}/{bundle}/{task}/{sha256(text)[7:23]}"


def sighted_development(evidence: Evidence) -> dict[str, list[bool]]:
    """Return whether the observer saw the intended effect, for each attempt of each trial's task.

    The keys are those of :func:`development_key`. An attempt that was cut and made again is there
    twice.
    """
    served = {
        attempt: key for attempt, key in evidence.attempts.items() if key.startswith(_DEVELOPMENT)
    }
    found: dict[str, list[bool]] = defaultdict(list)
    if served:
        for line in (evidence.records.get(OBSERVER) or b"").splitlines():
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
        if item.text != render(bundles[key].skill, tuple(described["deleted"])):
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
    return bool(plan.statement["candidates"]) or not plan.protocol.candidates


def _ledger_problems(
    ledger: bytes, replayed: Reduction, described: Mapping[str, Any], place: str
) -> Iterator[str]:
    where = f"{place}/trials.jsonl"
    lines = ledger.splitlines()
    for number, trial in enumerate(replayed.trials, start=1):
        if _canonical_line(lines[number - 1]) != canonical(_as_json(trial_json(trial))):
            yield f"{where}:{number}: the search gives another trial with these results"
            return
    if len(lines) > len(replayed.trials):
        yield f"{where}:{len(replayed.trials) + 1}: the search had ended, and made no such trial"
    again = reduction_json(replayed)
    for name in sorted(again.keys() | described.keys()):
        if canonical(_as_json(again.get(name))) != canonical(_as_json(described.get(name))):
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
        result = _result_of(line, len(view.tasks))
        if result is None:
            return _Stopped(number, "this is no trial as a run writes it")
        listed, completed = result
        if listed != [clause for clause in clauses if clause in deleted]:
            return _Stopped(number, "the search tries another deletion here")
        try:
            deleted = asking.send(TrialResult(completed, len(view.tasks)))
        except StopIteration as end:
            if isinstance(end.value, Reduction):
                return end.value
    return _Stopped(len(lines) + 1, "a trial is missing: the search had not ended")


def _result_of(line: bytes, tasks: int) -> tuple[list[object], int] | None:
    """Return what a trial deleted and how many tasks it completed; None where it is damaged."""
    try:
        trial = json.loads(line)
        completed, deleted = trial["completed"], trial["deleted"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if type(completed) is not int or not 0 <= completed <= tasks or not isinstance(deleted, list):
        return None
    return deleted, completed


def _canonical_line(line: bytes) -> bytes:
    try:
        return canonical(json.loads(line))
    except (ValueError, TypeError, RecursionError):
        return b""


def _as_json(value: object) -> Any:  # noqa: ANN401  # JSON
    """Return a value as reading its JSON gives it: tuples are lists there."""
    return json.loads(json.dumps(value))
