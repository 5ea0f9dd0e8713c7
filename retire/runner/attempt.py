"""One attempt at a job: start, freeze, ask, parse, decide, observe. The path of a cell.

Every step is stored or recorded before the next begins: the start before the world is reset, the
answer before it is proposed, the intent before the act, the sighting before the trace.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from retire.deployments.port import DeploymentFault
from retire.domain.cell import Mediation
from retire.domain.digests import sha256
from retire.domain.document import DocumentFault, as_document
from retire.domain.errors import EvidenceError, IncompleteError
from retire.domain.outcome import D2Outcome
from retire.domain.trace import (
    D2,
    D3,
    NOT_REACHED,
    SCHEMA,
    CellName,
    Microseconds,
    Trace,
    stage_of,
)
from retire.prompts import build_prompt
from sink.decision import Reason
from sink.proposal import Proposal, RawAnswer, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from retire.deployments.port import Deployment, Served
    from retire.domain.trace import D1
    from retire.prompts import Prompt
    from retire.runner.job import Job
    from retire.runner.processes import Programs
    from retire.store import RunStore


@dataclass(slots=True)
class Attempt:
    """What one attempt gave.

    ``fault`` says why it gave nothing usable, ``unanswered`` that its deployment is to blame.
    """

    id: str
    number: int
    trace: Trace | None = None
    fault: str = ""
    unanswered: bool = False
    intended: bool = False


@dataclass(slots=True)
class Earlier:
    """What cut attempts at the same cell left behind."""

    answer: str | None = None
    attempts: list[str] = field(default_factory=list)
    leaked: bool = False


class AttemptRunner:
    """Runs attempts against the programs of a run."""

    def __init__(self, programs: Programs, store: RunStore, new_attempt: Callable[[], str]) -> None:
        self._programs = programs
        self._store = store
        self._new_attempt = new_attempt
        self._servers = store.servers()

    async def run(self, job: Job, deployment: Deployment, earlier: Earlier) -> Attempt:
        """Run a job once.

        Raises:
            IncompleteError: A program is gone, or another model answers; the run must stop.
            EvidenceError: The world froze other bytes than the member's.
        """
        attempt = Attempt(self._new_attempt(), 0)
        attempt.number = await self._store.started(attempt.id, job.key)
        clock = [time.perf_counter()]
        snapshot = await self._freeze(job, attempt)
        if snapshot is None:
            await self._store.ended(attempt.id, attempt.fault)
            return attempt
        clock.append(time.perf_counter())
        prompt = build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)
        try:
            answer, served = await self._answer(job, deployment, prompt, earlier)
        except DeploymentFault as fault:
            attempt.fault = f"the deployment gave no completed answer: {fault}"
            attempt.unanswered = True
            await self._store.ended(attempt.id, attempt.fault)
            return attempt
        await self._store.answered(attempt.id, answer, prompt.digest, served)
        clock.append(time.perf_counter())
        parsed = parse(RawAnswer.model_validate_json(answer))
        d2: D2 | str = NOT_REACHED
        if isinstance(parsed, Proposal):
            d2 = await self._propose(job, attempt.id, answer)
        clock.append(time.perf_counter())
        sighted = await self._end(attempt.id, job.effect)
        clock.append(time.perf_counter())
        if not isinstance(sighted, D3) or not sighted.complete:
            reason = sighted.reason if isinstance(sighted, D3) else sighted
            attempt.fault = f"the observer could not read: {reason}"
        elif isinstance(d2, str):
            attempt.fault = d2
        if attempt.fault or isinstance(sighted, str) or isinstance(d2, str):
            await self._store.ended(attempt.id, attempt.fault)
            return attempt
        attempt.intended = sighted.intended
        if job.cell is not None:
            named = CellName.of(job.cell)
            stages = (stage_of(parsed), d2, sighted)
            attempt.trace = _trace(named, job, attempt, (prompt, answer), stages, earlier, clock)
        return attempt

    async def sight(self, attempt: str, effect: str) -> D3 | str:
        """Have a cut attempt observed, whose world still stands; a fault is returned in words."""
        await self._programs.observer.ask({"op": "begin", "attempt": attempt, "effect": effect})
        return await self._end(attempt, effect)

    async def _end(self, attempt: str, effect: str) -> D3 | str:
        reply = await self._programs.observer.ask(
            {"op": "end", "attempt": attempt, "effect": effect}
        )
        return sighting_of(reply)

    async def _freeze(self, job: Job, attempt: Attempt) -> str | None:
        frozen = await self._programs.world.ask(
            {
                "op": "reset",
                "attempt": attempt.id,
                "template": job.template,
                "task": job.task,
                "patch": job.patch,
                "episode": job.episode,
            }
        )
        if "error" in frozen:
            attempt.fault = f"the world refused the reset: {frozen['error']}"
            return None
        if frozen["snapshot_digest"] != job.snapshot:
            raise EvidenceError(
                "the world froze another snapshot than the bundle's member has",
                where=job.key,
                mend="Start the run again with an unchanged bundle folder",
            )
        begun = await self._programs.observer.ask(
            {"op": "begin", "attempt": attempt.id, "effect": job.effect}
        )
        if "error" in begun:
            attempt.fault = f"the observer did not begin: {begun['error']}"
            return None
        return str(frozen["snapshot"])

    async def _answer(
        self, job: Job, deployment: Deployment, prompt: Prompt, earlier: Earlier
    ) -> tuple[str, str | None]:
        """Return the answer and what its server reported, both as stored."""
        if earlier.answer is not None:
            return earlier.answer, None
        completion = await deployment.propose(prompt.messages, prompt.tools, job.call)
        if completion.served is None:
            return answer_text(completion.answer), None
        self._check_server(deployment.name, completion.served, job.key)
        return answer_text(completion.answer), completion.served.model_dump_json()

    def _check_server(self, deployment: str, served: Served, key: str) -> None:
        """A run judges one model: whoever answers must stay who answered first."""
        reports = (served.model, served.fingerprint)
        first = self._servers.setdefault(deployment, reports)
        if reports != first:
            raise IncompleteError(
                f"the server of {deployment} now reports model {reports[0]!r} with fingerprint "
                f"{reports[1]!r}; it was {first[0]!r} with {first[1]!r}",
                where=key,
                mend="Run again in a new folder, or when the first model is back",
            )

    async def _propose(self, job: Job, attempt: str, answer: str) -> D2 | str:
        """Return the decision stage, or why the door's reply is no evidence."""
        reply = await self._programs.doors[job.mediation].ask(
            {
                "op": "propose",
                "attempt": attempt,
                "contract": job.contract,
                "episode": job.episode,
                "snapshot": job.snapshot,
                "answer": answer,
            }
        )
        try:
            d2 = decision_of(reply, job.mediation)
        except DocumentFault as fault:
            return f"the door answered with something else ({fault})"
        return lost_decision(d2) or d2


def answer_text(raw: RawAnswer) -> str:
    """Return the stored form of a raw answer."""
    return json.dumps(raw.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def decision_of(reply: Mapping[str, object], mediation: Mediation) -> D2:
    """Return the decision stage of a door's reply; :func:`lost_decision` says what it is worth.

    Raises:
        DocumentFault: The reply is not of the form that a door answers in.
    """
    if mediation is Mediation.DIRECT:
        # A door without a monitor decides nothing, and says no more than what it did.
        said = {
            **NOT_REACHED.as_json(),
            "outcome": D2Outcome.UNMEDIATED,
            "detail": str(reply.get("error", "")),
            "record": reply.get("record"),
            "act": reply.get("act"),
        }
        return as_document(D2, said)
    said = {key: reply[key] for key in reply.keys() - {"id", "decision"}}
    return as_document(D2, {**said, "outcome": reply.get("decision")})


def lost_decision(d2: D2) -> str:
    """Return why a decision is no evidence, or nothing where it is.

    A door that failed, could not keep its record, or does not know whether it acted has said
    nothing about the candidate. Nothing was let through by that; but the cell runs again, in a
    world of its own, and what this attempt did is sighted like every other.
    """
    if d2.record is None:
        return f"the door kept no record: {d2.detail}"
    if d2.reason == Reason.INTERNAL_ERROR:
        return f"the sink failed: {d2.detail}"
    if d2.act is not None and d2.act.status == "in_doubt":
        return f"the act is in doubt: {d2.act.detail}"
    if d2.act is not None and d2.act.detail.startswith(("the journal failed", "the world failed")):
        return f"the world failed: {d2.act.detail.removeprefix('the world failed: ')}"
    return ""


def sighting_of(reply: Mapping[str, object]) -> D3 | str:
    """Return the observer's sighting, or in words why there is none."""
    if "error" in reply:
        return str(reply["error"])
    try:
        return as_document(D3, {key: reply[key] for key in reply.keys() - {"id", "kind"}})
    except DocumentFault as fault:
        return f"it answered with something else ({fault})"


def _trace(
    cell: CellName,
    job: Job,
    attempt: Attempt,
    asked: tuple[Prompt, str],
    stages: tuple[D1, D2, D3],
    earlier: Earlier,
    clock: list[float],
) -> Trace:
    prompt, answer = asked
    d1, d2, d3 = stages
    if earlier.leaked:
        d3 = d3.model_copy(update={"protected": True, "leaked_in_earlier_attempt": True})
    freeze, deployment, decision, observation = (
        round((after - before) * 1_000_000) for before, after in pairwise(clock)
    )
    return Trace(
        schema=SCHEMA,
        cell=cell,
        attempt=attempt.id,
        attempt_number=attempt.number,
        earlier_attempts=tuple(earlier.attempts),
        episode=job.episode,
        seed=job.seed,
        prompt=prompt.digest,
        answer=RawAnswer.model_validate_json(answer),
        answer_digest=sha256(answer.encode()),
        d1=d1,
        d2=d2,
        d3=d3,
        snapshot=job.snapshot,
        contract=job.contract,
        effect=job.effect,
        microseconds=Microseconds(
            freeze=freeze, deployment=deployment, decision=decision, observation=observation
        ),
    )
