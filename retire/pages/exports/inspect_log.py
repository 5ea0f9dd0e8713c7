"""A run as logs of Inspect AI, so that its viewer shows every cell.

One log per deployment, sample and condition: there a model and a task are what the viewer takes
them for, and only one such arm is held in memory. A sample is a member of a bundle, its epoch the
repetition. The library inspect-ai is optional: only the command that needs it imports this.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalScore,
    EvalSpec,
    EvalStats,
    write_eval_log,
)
from inspect_ai.model import ModelUsage

from retire.domain.errors import InputError
from retire.pages.exports.columns import truths_of
from retire.pages.exports.inspect_sample import COMPLETION, LEAK, model_name, sample_of
from retire.pages.phrases import CONDITIONS, DOORS, evidence_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspect_ai.log import EvalSample

    from retire.domain.cell import Cell, Condition
    from retire.verify.run import SealedRun

_WHOLE = "all cells"


def write_inspect(run: SealedRun, path: Path) -> tuple[Path, ...]:
    """Write a run as Inspect AI logs; returns the files.

    Args:
        run: The sealed run.
        path: A name that ends in ``.eval`` gets one log of all cells, which are then held in
            memory together; any other names a folder, which gets one log per deployment, sample
            and condition.

    Raises:
        InputError: A file cannot be written.
        EvidenceError: A prompt cannot be rendered again.
    """
    if path.suffix == ".eval":
        _write(_log(run, _WHOLE, sorted(run.plan.cells)), path)
        return (path,)
    arms: dict[str, list[Cell]] = defaultdict(list)
    for cell in sorted(run.plan.cells):
        arms[f"{cell.deployment}-{cell.sample}-{cell.condition}"].append(cell)
    written = []
    for name, cells in arms.items():
        target = path / f"{name}.eval"
        _write(_log(run, name, cells), target)
        written.append(target)
    return tuple(written)


def _write(log: EvalLog, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".inspect-") as name:
            part = Path(name) / target.name
            write_eval_log(log, part)
            part.replace(target)
    except OSError as error:
        raise InputError(
            f"the file cannot be written: {error.strerror}",
            where=str(target),
            mend="Free some space or choose another place",
        ) from error


def _log(run: SealedRun, name: str, cells: Sequence[Cell]) -> EvalLog:
    samples = list(_samples(run, name, cells))
    when = run.sealed_at.isoformat()
    return EvalLog(
        status="success",
        eval=_spec(run, name, cells),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=sum(sample.error is None for sample in samples),
            scores=list(_counts(name, samples)),
        ),
        stats=EvalStats(started_at=when, completed_at=when, model_usage=_usage(samples)),
        samples=samples,
    )


def _spec(run: SealedRun, name: str, cells: Sequence[Cell]) -> EvalSpec:
    protocol = run.plan.protocol
    identity = run.plan.digest.removeprefix("sha256:")[:16]
    deployments = sorted({cell.deployment for cell in cells})
    ids = list(dict.fromkeys(_sample_id(cell, name) for cell in cells))
    model = deployments[0] if len(deployments) == 1 else "all-deployments"
    return EvalSpec(
        eval_id=f"{identity}-{name}",
        run_id=identity,
        created=run.sealed_at.isoformat(),
        task=f"{protocol.name} {name}",
        task_id=f"{identity}-{name}",
        task_args={"plan_seed": protocol.seed, "margin_points": protocol.margin_points},
        dataset=EvalDataset(name=protocol.name, samples=len(ids), sample_ids=ids),
        model=model_name(model),
        config=EvalConfig(epochs=protocol.repetitions),
        tags=[str(run.evidence)],
        metadata={
            "evidence": evidence_words(run.evidence),
            "plan_digest": run.plan.digest,
            "outcome_root": run.traces.outcome_root,
            "record_root": run.traces.record_root,
            "conditions": {
                str(item): _condition_words(item) for item in sorted({c.condition for c in cells})
            },
        },
    )


def _condition_words(condition: Condition) -> str:
    return f"{CONDITIONS[condition]}; {DOORS[condition.mediation]}"


def _sample_id(cell: Cell, log: str) -> str:
    member = f"{cell.bundle}/{cell.member}"
    if log != _WHOLE:
        return member
    return f"{cell.sample}/{cell.deployment}/{cell.condition}/{member}"


def _samples(run: SealedRun, log: str, cells: Sequence[Cell]) -> Iterator[EvalSample]:
    truths = truths_of(run.bundles)
    for stored in run.cells(cells):
        cell = stored.cell
        name = _sample_id(cell, log)
        yield sample_of(stored, name, run.prompt(cell), truths[cell.bundle, cell.member])


def _counts(log: str, samples: Sequence[EvalSample]) -> Iterator[EvalScore]:
    """Count each score by deployment, sample and condition, which are never pooled."""
    arms: dict[str, list[EvalSample]] = defaultdict(list)
    for sample in samples:
        known = sample.metadata
        arm = f"{known['deployment']}-{known['sample']}-{known['condition']}"
        arms["" if log == arm else f" {arm}"].append(sample)
    for arm, mine in arms.items():
        for score in (COMPLETION, LEAK):
            yield _counted(score, f"{score}{arm}", mine)


def _counted(score: str, name: str, samples: Sequence[EvalSample]) -> EvalScore:
    """Return the count of one score; samples that it does not apply to are left out."""
    values = [
        sample.scores[score].as_int()
        for sample in samples
        if sample.scores is not None and score in sample.scores
    ]
    metrics = {
        "count": EvalMetric(name="count", value=sum(values)),
        "cells": EvalMetric(name="cells", value=len(values)),
    }
    if values:
        metrics["share"] = EvalMetric(name="share", value=sum(values) / len(values))
    return EvalScore(
        name=name,
        scorer=score,
        scored_samples=len(values),
        unscored_samples=len(samples) - len(values),
        metrics=metrics,
    )


def _usage(samples: Sequence[EvalSample]) -> dict[str, ModelUsage]:
    totals: dict[str, ModelUsage] = {}
    for sample in samples:
        for model, usage in sample.model_usage.items():
            totals[model] = totals.get(model, ModelUsage()) + usage
    return totals
