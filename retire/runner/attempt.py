"""One attempt at a job: start, freeze, ask, parse, decide, observe. The path of a cell.

Every step is stored or recorded before the next begins: the start before the world is reset, the
answer before it is proposed, the intent before the act, the sighting before the trace.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retire.deployments.port import DeploymentFault
from retire.domain.cell import Mediation
from retire.domain.digests import sha256
from retire.domain.errors import EvidenceError, IncompleteError
from retire.domain.outcome import D1
from retire.domain.trace import SCHEMA, cell_json
from retire.prompts import build_prompt
from sink.contract import canonical_scalar
from sink.decision import Reason
from sink.proposal import Invalid, Proposal, RawAnswer, Refusal, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from retire.deployments.port import Deployment, Served
    from retire.prompts import Prompt
    from retire.runner.job import Job
    from retire.runner.processes import Programs
    from retire.store import RunStore

NOT_REACHED: dict[str, Any] = {
    "outcome": "not_reached",
    "basis": "",
    "reason": "",
    "detail": "",
    "parameter": "",
    "predicates": {},
    "record": None,
    "act": None,
}


@dataclass(slots=True)
class Attempt:
    """What one attempt gave.

    ``fault`` says why it gave nothing usable, ``unanswered`` that its deployment is to blame.
    """

    id: str
    number: int
    body: dict[str, Any] | None = None
    fault: str = ""
    unanswered: bool = False
    d3: Mapping[str, Any] = field(default_factory=dict)


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
        d1, d2, lost = await self._propose(job, attempt.id, answer)
        clock.append(time.perf_counter())
        attempt.d3 = await self._programs.observer.ask(
            {"op": "end", "attempt": attempt.id, "effect": job.effect}
        )
        clock.append(time.perf_counter())
        if "error" in attempt.d3 or not attempt.d3.get("complete"):
            reason = attempt.d3.get("error") or attempt.d3.get("reason")
            attempt.fault = f"the observer could not read: {reason}"
            await self._store.ended(attempt.id, attempt.fault)
            return attempt
        if lost:
            attempt.fault = lost
            await self._store.ended(attempt.id, attempt.fault)
            return attempt
        if job.cell is None:
            return attempt
        attempt.body = _body(job, attempt, (prompt, answer), (d1, d2), earlier, clock)
        return attempt

    async def sight(self, attempt: str, effect: str) -> Mapping[str, Any]:
        """Have a cut attempt observed; its world still stands."""
        await self._programs.observer.ask({"op": "begin", "attempt": attempt, "effect": effect})
        return await self._programs.observer.ask(
            {"op": "end", "attempt": attempt, "effect": effect}
        )

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

    async def _propose(
        self, job: Job, attempt: str, answer: str
    ) -> tuple[dict[str, Any], dict[str, Any], str]:
        """Return both stages, and why the second is no evidence where it is none."""
        parsed = parse(RawAnswer.model_validate_json(answer))
        d1 = d1_json(parsed)
        if not isinstance(parsed, Proposal):
            return d1, dict(NOT_REACHED), ""
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
        return d1, d2_json(reply, job.mediation), lost_decision(reply)


def answer_text(raw: RawAnswer) -> str:
    """Return the stored form of a raw answer."""
    return json.dumps(raw.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def d1_json(parsed: Proposal | Refusal | Invalid) -> dict[str, Any]:
    """Return the proposal stage as JSON."""
    match parsed:
        case Proposal():
            arguments = {key: canonical_scalar(item) for key, item in parsed.arguments.items()}
            return {
                "outcome": str(D1.PROPOSAL),
                "rule": "",
                "tool": parsed.tool,
                "arguments": arguments,
            }
        case Refusal():
            return {"outcome": str(D1.REFUSAL), "rule": "", "text": parsed.reason}
        case Invalid():
            return {"outcome": str(D1.INVALID), "rule": parsed.rule, "text": parsed.detail}


def d2_json(reply: Mapping[str, Any], mediation: Mediation) -> dict[str, Any]:
    """Return the decision stage as JSON; ``lost_decision`` says whether it may be believed."""
    if mediation is Mediation.DIRECT:
        outcome = {"outcome": "unmediated", "detail": str(reply.get("error", ""))}
        return {
            **NOT_REACHED,
            **outcome,
            "record": reply.get("record"),
            "act": reply.get("act"),
        }
    return {
        "outcome": reply["decision"],
        "basis": reply["basis"],
        "reason": reply["reason"],
        "detail": reply["detail"],
        "parameter": reply["parameter"],
        "predicates": reply["predicates"],
        "record": reply["record"],
        "act": reply["act"],
    }


def lost_decision(reply: Mapping[str, Any]) -> str:
    """Return why a door's reply is no evidence, or nothing where it is.

    A door that failed, could not keep its record, or does not know whether it acted has said
    nothing about the candidate. Nothing was let through by that; but the cell runs again, in a
    world of its own, and what this attempt did is sighted like every other.
    """
    act = reply.get("act") or {}
    if reply.get("record") is None:
        return f"the door kept no record: {reply.get('error') or reply.get('detail')}"
    if reply.get("reason") == Reason.INTERNAL_ERROR:
        return f"the sink failed: {reply.get('detail')}"
    if act.get("status") == "in_doubt":
        return f"the act is in doubt: {act.get('detail')}"
    if str(act.get("detail")).startswith(("the journal failed", "the world failed")):
        return f"the world failed: {str(act['detail']).removeprefix('the world failed: ')}"
    return ""


def _body(
    job: Job,
    attempt: Attempt,
    asked: tuple[Prompt, str],
    stages: tuple[dict[str, Any], dict[str, Any]],
    earlier: Earlier,
    clock: list[float],
) -> dict[str, Any]:
    if job.cell is None:
        raise ValueError("a development job has no trace")
    prompt, answer = asked
    d3 = {key: value for key, value in attempt.d3.items() if key not in {"id", "kind"}}
    if earlier.leaked:
        d3["protected"] = True
        d3["leaked_in_earlier_attempt"] = True
    names = ("freeze", "deployment", "decision", "observation")
    microseconds = {
        name: round((after - before) * 1_000_000)
        for name, before, after in zip(names, clock, clock[1:], strict=False)
    }
    return {
        "schema": SCHEMA,
        "cell": cell_json(job.cell),
        "attempt": attempt.id,
        "attempt_number": attempt.number,
        "earlier_attempts": list(earlier.attempts),
        "episode": job.episode,
        "seed": job.seed,
        "prompt": prompt.digest,
        "answer": json.loads(answer),
        "answer_digest": sha256(answer.encode()),
        "d1": stages[0],
        "d2": stages[1],
        "d3": d3,
        "snapshot": job.snapshot,
        "contract": job.contract,
        "effect": job.effect,
        "microseconds": microseconds,
    }
