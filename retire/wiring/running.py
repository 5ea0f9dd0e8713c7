"""Running a prepared plan: programs, reductions, cells, seal; resumed where it was cut."""

from __future__ import annotations

import secrets
import shutil
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel

from retire.bundle import read_files
from retire.certify.stability import Measurements
from retire.deployments import DeploymentFault
from retire.domain.errors import IncompleteError, InputError
from retire.runner.attempt import AttemptRunner
from retire.runner.engine import Engine, Progress, Surroundings
from retire.runner.folder import (
    read_bytes,
    write_document,
    write_json,
    write_lines,
    write_whole,
)
from retire.runner.launching import launched_programs, refuse_launched
from retire.runner.passes import keep_pass
from retire.runner.processes import running_programs
from retire.runner.recording import write_cassette
from retire.runner.reducing import FoundReduction, GivenReduction
from retire.runner.sealing import seal
from retire.runner.stability import measure_stability
from retire.skill import render
from retire.store import RunStore
from retire.wiring.concluding import Finished, conclude
from retire.wiring.spending import within_budget

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from retire.bundle import Bundle
    from retire.certify.stability import Stability
    from retire.deployments import Deployment
    from retire.reduce import Reduction
    from retire.runner.folder import RunFolder
    from retire.runner.processes import Programs
    from retire.wiring.preparing import Prepared


async def execute(
    prepared: Prepared, progress: Progress, store: RunStore | None = None
) -> Finished:
    """Run whatever of the plan has not been run, seal, and certify.

    The same plan again in the same folder resumes, or reports what is there.

    Raises:
        InputError: The folder holds another plan, or cannot be written.
        IncompleteError: A program is gone; run again to resume.
    """
    folder = prepared.folder
    folder.prepare()
    store = store or RunStore(folder.database)
    seconds = _seconds_so_far(folder)
    incomplete: dict[str, str] = {}
    try:
        store.bind(prepared.plan)
        prepared = within_budget(prepared, store)
        _copy_inputs(prepared)
        finished = folder.seal.exists() and store.done() >= {
            cell.key for cell in prepared.plan.cells
        }
        if not finished:
            folder.reopen()
            try:
                incomplete = await _run_programs(prepared, store, progress, seconds)
            finally:
                write_cassette(folder, store, prepared.deployments)
                write_json(folder.timings, seconds)
    finally:
        store.close()
    began = time.perf_counter()
    result = conclude(prepared, incomplete, seconds)
    seconds["certify"] = time.perf_counter() - began
    return result


class Timings(BaseModel):
    """Seconds spent so far, over all passes of a run."""

    reduce: float = 0.0
    matrix: float = 0.0
    certify: float = 0.0


def _seconds_so_far(folder: RunFolder) -> dict[str, float]:
    spent = Timings()
    if folder.timings.exists():
        try:
            spent = Timings.model_validate_json(read_bytes(folder.timings))
        except ValueError as error:
            raise InputError(
                "this is not what a run writes here",
                where=str(folder.timings),
                mend="Remove it; the run then counts its seconds from now on",
            ) from error
    return spent.model_dump()


async def _run_programs(
    prepared: Prepared, store: RunStore, progress: Progress, seconds: dict[str, float]
) -> dict[str, str]:
    async with _ready_engine(prepared, store, progress) as (engine, programs):
        began = time.perf_counter()
        deleted = await _deletions(prepared, engine)
        seconds["reduce"] += time.perf_counter() - began
        began = time.perf_counter()
        await engine.run_cells(deleted)
        await seal(prepared.folder, programs, store)
        seconds["matrix"] += time.perf_counter() - began
        return dict(engine.incomplete)


@asynccontextmanager
async def _ready_engine(
    prepared: Prepared, store: RunStore, progress: Progress
) -> AsyncIterator[tuple[Engine, Programs]]:
    """Start the programs over the run's copies, and have what an earlier pass cut observed."""
    async with (
        _programs(prepared) as programs,
        store,
        _open(prepared.deployments),
    ):
        keep_pass(prepared.folder, programs.users, resumed=store.attempts() > 0)
        attempts = AttemptRunner(programs, store, lambda: secrets.token_hex(16))
        given = Surroundings(
            prepared.bundles,
            prepared.deployments,
            programs,
            store,
            attempts,
            progress,
            _attempts_at_once(prepared),
        )
        engine = Engine(prepared.plan, given)
        await engine.sight_cut_attempts()
        yield engine, programs


def _programs(prepared: Prepared) -> AbstractAsyncContextManager[Programs]:
    """Return the programs over the run's copies, started here or by a launcher."""
    folder, request = prepared.folder, prepared.request
    copies = [folder.bundles / key for key in prepared.bundles]
    if request.launcher is not None:
        return launched_programs(request.launcher, folder.processes, copies)
    refuse_launched(folder.processes)
    return running_programs(folder.processes, copies, home_assistant=request.home_assistant)


async def stability_of(
    deployment: Deployment,
    bundles: Mapping[str, Bundle],
    seed: int,
    repetitions: int,
    progress: Progress,
) -> Stability:
    """Ask every member of every bundle twice; nothing is proposed to any door.

    Raises:
        IncompleteError: The deployment cannot be made ready.
    """
    async with _open({deployment.name: deployment}):
        return await measure_stability(deployment, bundles, seed, repetitions, progress)


@asynccontextmanager
async def _open(deployments: Mapping[str, Deployment]) -> AsyncIterator[None]:
    """Have every deployment ready.

    Raises:
        IncompleteError: One cannot be made ready.
    """
    async with AsyncExitStack() as opened:
        for name, deployment in deployments.items():
            try:
                await deployment.open()
            except DeploymentFault as fault:
                raise IncompleteError(
                    str(fault), where=name, mend="Run the same command again when it is there"
                ) from fault
            opened.push_async_callback(deployment.close)
        yield


def _attempts_at_once(prepared: Prepared) -> int:
    """Return how many attempts may be under way: as declared, and so many that wait for answers.

    A house in Home Assistant stands in one attempt at a time.
    """
    if prepared.request.home_assistant is not None:
        return 1
    waiting = sum(item.concurrency or 0 for item in prepared.deployments.values())
    return prepared.request.concurrency + waiting


async def _deletions(prepared: Prepared, engine: Engine) -> dict[tuple[str, str], tuple[str, ...]]:
    protocol = prepared.plan.protocol
    if prepared.request.candidates or not protocol.candidates:
        deleted = {
            (deployment, key): prepared.given_deletions.get(key, ())
            for deployment in protocol.deployments
            for key in protocol.bundles
        }
        for (deployment, key), clauses in deleted.items():
            described = GivenReduction(given=True, deleted=clauses)
            _write_reduction(prepared, deployment, key, described)
        return deleted
    reductions = await engine.reduce()
    keep_reductions(prepared, reductions)
    return {pair: reduction.deleted for pair, reduction in reductions.items()}


def keep_reductions(prepared: Prepared, reductions: Mapping[tuple[str, str], Reduction]) -> None:
    """Write each reduced skill, what was deleted, and the replayable ledger of its trials."""
    for (deployment, key), reduction in reductions.items():
        _write_reduction(prepared, deployment, key, FoundReduction.of(reduction))
        trials = prepared.folder.reduction(deployment, key) / "trials.jsonl"
        write_lines(trials, reduction.trials)


def _write_reduction(
    prepared: Prepared, deployment: str, key: str, described: GivenReduction | FoundReduction
) -> None:
    place = prepared.folder.reduction(deployment, key)
    write_whole(place / "SKILL.md", render(prepared.bundles[key].skill, described.deleted))
    write_document(place / "reduction.json", described)


def _copy_inputs(prepared: Prepared) -> None:
    """Keep the bundles beside the evidence: a certificate is verified against these copies."""
    write_document(prepared.folder.plan, prepared.plan.statement)
    if prepared.request.stability:
        measured = Measurements(measurements=prepared.request.stability)
        write_document(prepared.folder.stability, measured)
    for key, source in prepared.request.folders.items():
        target = prepared.folder.bundles / key
        if not target.exists():
            partial = target.with_name(f".{key}.part")
            shutil.rmtree(partial, ignore_errors=True)
            for name, data in read_files(source).items():
                write_whole(partial / name, data)
            partial.rename(target)


async def reduce_only(prepared: Prepared, progress: Progress) -> dict[tuple[str, str], Reduction]:
    """Reduce every bundle of a plan for every deployment, and keep text and trials.

    Raises:
        InputError: The folder holds another plan, or cannot be written.
        IncompleteError: A program is gone or a development task gave no evidence.
    """
    prepared.folder.prepare()
    store = RunStore(prepared.folder.database)
    try:
        store.bind(prepared.plan)
        prepared = within_budget(prepared, store)
        _copy_inputs(prepared)
        async with _ready_engine(prepared, store, progress) as (engine, _):
            reductions = await engine.reduce()
            keep_reductions(prepared, reductions)
            return reductions
    finally:
        write_cassette(prepared.folder, store, prepared.deployments)
        store.close()
