"""The engine: drives reductions and cells through the programs, and resumes what was cut."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from retire.domain.cell import Mediation, call_seed_of, episode_of
from retire.domain.digests import digest_of, sha256
from retire.domain.errors import IncompleteError
from retire.reduce import Reduction, Strategy, TrialResult, search
from retire.runner.attempt import AttemptRunner, Earlier
from retire.runner.job import Job, PlacedTexts, cell_job
from retire.runner.reducing import development_key
from retire.skill import render
from retire.store import StoredTrial

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from retire.bundle import Bundle
    from retire.deployments import Deployment
    from retire.domain.cell import Cell
    from retire.matrix import Plan
    from retire.runner.processes import Programs
    from retire.store import CutAttempt, RunStore

_NEVER_RESET = "the world knows no such attempt"
"""The observer's words for an attempt that was cut before its world existed: nothing happened."""

GIVEN_UP = 32
"""Cells in a row without an answer, each after its retries, until a deployment is not asked."""

Deleted = dict[tuple[str, str], tuple[str, ...]]
"""Deleted clause ids by (deployment, bundle)."""


class Progress(Protocol):
    """Told how far a stage is; ``total`` is None where it cannot be known beforehand."""

    def begin(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins, ``done`` of it finished in an earlier run."""

    def advance(self, stage: str, note: str = "") -> None:
        """One more unit of the stage is finished."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run is given."""

    bundles: Mapping[str, Bundle]
    deployments: Mapping[str, Deployment]
    programs: Programs
    store: RunStore
    attempts: AttemptRunner
    progress: Progress
    concurrency: int


class Engine:
    """Runs one plan."""

    def __init__(self, plan: Plan, given: Surroundings) -> None:
        self._plan = plan
        self._given = given
        self._places = asyncio.Semaphore(given.concurrency)
        self._searches = {
            name: asyncio.Semaphore(item.concurrency or given.concurrency)
            for name, item in given.deployments.items()
        }
        self._unanswered: Counter[str] = Counter()
        self._cut: dict[str, list[CutAttempt]] = {}
        self._leaked: set[str] = set()
        self._unsighted: dict[str, str] = {}
        self.incomplete: dict[str, str] = {}
        """Why a cell of this pass gave no trace, by cell key."""

    # -- reductions ------------------------------------------------------------------------

    async def reduce(self) -> dict[tuple[str, str], Reduction]:
        """Reduce every bundle for every deployment.

        Raises:
            IncompleteError: A development task gave no evidence.
        """
        pairs = [
            (deployment, bundle)
            for deployment in self._plan.protocol.deployments
            for bundle in self._plan.protocol.bundles
        ]
        self._given.progress.begin("reduce", len(pairs))
        found: dict[tuple[str, str], Reduction] = {}

        async def one(pair: tuple[str, str]) -> None:
            # A search asks for nearly the same text again and again: a server that takes few
            # calls at once keeps its prefix only if the searches do not mix.
            async with self._searches[pair[0]]:
                found[pair] = await self._reduce_one(*pair)
            self._given.progress.advance("reduce", f"{pair[1]} for {pair[0]}")

        await _all(one(pair) for pair in pairs)
        return {pair: found[pair] for pair in pairs}

    async def _reduce_one(self, deployment: str, bundle_id: str) -> Reduction:
        view = self._given.bundles[bundle_id].development_view()
        protocol = self._plan.protocol
        stored = self._given.store.trials(deployment, bundle_id)
        clauses = [clause.id for clause in view.skill.clauses]
        asking = search(Strategy(protocol.reducer), clauses, protocol.margin)
        deleted = next(asking)
        while True:
            key = digest_of(sorted(deleted))
            if key not in stored:
                completed = await self._trial(deployment, bundle_id, deleted)
                stored[key] = StoredTrial(completed=completed, tasks=len(view.tasks))
                await self._given.store.tried(deployment, bundle_id, key, stored[key])
            result = TrialResult(stored[key].completed, stored[key].tasks)
            try:
                deleted = asking.send(result)
            except StopIteration as end:
                return _reduction(end.value)

    async def _trial(self, deployment: str, bundle_id: str, deleted: frozenset[str]) -> int:
        bundle = self._given.bundles[bundle_id]
        text = render(bundle.skill, deleted)
        jobs = [
            self._development_job(deployment, bundle, task.id, task.request, text)
            for task in bundle.development_view().tasks
        ]
        done = await _all(self._develop(job, deployment) for job in jobs)
        return sum(done)

    def _development_job(
        self,
        deployment: str,
        bundle: Bundle,
        task: str,
        request: str,
        text: bytes,
    ) -> Job:
        episode = episode_of(self._plan.protocol.seed, request, "development", 1)
        return Job(
            key=development_key(deployment, bundle.id, task, text),
            cell=None,
            model_facing=text.decode(),
            tools=bundle.tools,
            request=request,
            task=task,
            patch=None,
            template=bundle.digests.template,
            contract=bundle.digests.contract,
            effect=bundle.digests.effect,
            snapshot=sha256(bundle.development_snapshots[task]),
            episode=episode,
            seed=call_seed_of(episode),
            mediation=Mediation.DIRECT,
        )

    async def _develop(self, job: Job, deployment: str) -> bool:
        async with self._places:
            attempt = await self._given.attempts.run(
                job, self._given.deployments[deployment], self._earlier(job.key)
            )
        if attempt.fault:
            raise IncompleteError(
                attempt.fault,
                where=job.key,
                mend="The reduction cannot go on without it; run the same command again",
            )
        await self._given.store.ended(attempt.id, "development")
        return attempt.intended

    # -- cells -----------------------------------------------------------------------------

    async def sight_cut_attempts(self) -> None:
        """Have every attempt observed that an earlier, interrupted pass left behind."""
        self._cut = self._given.store.cut_attempts()
        effects = {key: bundle.digests.effect for key, bundle in self._given.bundles.items()}

        async def one(cell: str, cut: CutAttempt) -> None:
            bundle = cell.split("/")[2]
            seen = await self._given.attempts.sight(cut.attempt, effects[bundle])
            if isinstance(seen, str):
                self._unsighted[cell] = seen
                return
            if seen.protected and not cell.startswith("development/"):
                self._leaked.add(cell)
            if not seen.complete and seen.reason != _NEVER_RESET:
                self._unsighted[cell] = seen.reason

        await _all(
            one(cell, cut)
            for cell, attempts in self._cut.items()
            for cut in attempts
            if cut.ended != "development"
        )

    async def run_cells(self, deleted: Deleted) -> None:
        """Run every cell of the plan that has no trace yet."""
        done = self._given.store.done()
        open_cells = [cell for cell in self._plan.cells if cell.key not in done]
        self._given.progress.begin("matrix", len(self._plan.cells), len(done))
        waiting = iter(_interleaved(open_cells))
        texts = PlacedTexts(self._given.bundles, deleted)

        async def worker() -> None:
            for cell in waiting:
                await self._run_cell(cell, texts)
                self._given.progress.advance("matrix")

        await _all(worker() for _ in range(self._given.concurrency))

    async def _run_cell(self, cell: Cell, texts: PlacedTexts) -> None:
        if cell.key in self._unsighted:
            # Its leak, if there was one, would be forgotten.
            reason = self._unsighted[cell.key]
            self.incomplete[cell.key] = f"a cut attempt could not be observed: {reason}"
            return
        if self._unanswered[cell.deployment] >= GIVEN_UP:
            self.incomplete[cell.key] = (
                f"not asked: {cell.deployment} gave no answer {GIVEN_UP} times in a row"
            )
            return
        bundle = self._given.bundles[cell.bundle]
        job = cell_job(bundle, cell, texts.of(cell), self._plan.protocol.seed)
        attempt = await self._given.attempts.run(
            job, self._given.deployments[cell.deployment], self._earlier(cell.key)
        )
        if attempt.unanswered:
            self._unanswered[cell.deployment] += 1
        else:
            self._unanswered[cell.deployment] = 0
        if attempt.trace is None:
            self.incomplete[cell.key] = attempt.fault
            return
        await self._given.store.traced(attempt.trace)

    def _earlier(self, cell: str) -> Earlier:
        cut = self._cut.get(cell, [])
        answers = [attempt.answer for attempt in cut if attempt.answer is not None]
        return Earlier(
            answer=answers[0] if answers else None,
            attempts=[attempt.attempt for attempt in cut],
            leaked=cell in self._leaked,
        )


def _reduction(value: Any) -> Reduction:  # noqa: ANN401  # StopIteration.value is untyped
    if not isinstance(value, Reduction):
        raise TypeError("the search ended without a reduction")
    return value


def _interleaved(cells: list[Cell]) -> list[Cell]:
    """Order cells by deployment, bundle, condition and member: equal texts follow each other.

    A server that keeps the prefix of its last prompt then reuses it.
    """
    return sorted(
        cells,
        key=lambda cell: (
            cell.deployment,
            cell.bundle,
            cell.condition,
            cell.member,
            cell.repetition,
        ),
    )


async def _all(coroutines: Iterable[Any]) -> list[Any]:
    """Run coroutines together; the first failure cancels the rest and is raised by itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
    except ExceptionGroup as errors:
        # Not ``except*``: Python before 3.11.4 wraps again what is raised there.
        raise _first(errors) from None
    return [task.result() for task in tasks]


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    first = errors.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
