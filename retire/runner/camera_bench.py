"""The records of a camera bench: each one attempt along the three stages, on a real chain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from retire.deployments import DeploymentFault
from retire.domain.cell import AUTHORIZED, Cell, Condition, Sample
from retire.domain.document import DocumentFault
from retire.domain.errors import EvidenceError
from retire.domain.trace import stage_of
from retire.prompts import build_prompt
from retire.runner.attempt import answer_text, decision_of, lost_decision, sighting_of
from retire.runner.camera_record import (
    QUALIFICATION,
    CameraRecord,
    Status,
    contradictions,
    why_incomplete,
)
from retire.runner.job import cell_job, placed_text
from sink.proposal import Proposal, RawAnswer, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from retire.bundle import Bundle
    from retire.deployments import Deployment
    from retire.runner.camera_programs import BenchPrograms
    from retire.runner.job import Job


class CameraBench:
    """Makes records with the programs of one bench.

    Args:
        bundle: The bundle of the camera's stream.
        programs: The running programs.
        frames: Pictures that a whole session has.
        seed: Plan seed.
        new_attempt: Gives attempt ids.
    """

    def __init__(
        self,
        bundle: Bundle,
        programs: BenchPrograms,
        frames: int,
        seed: int,
        new_attempt: Callable[[], str],
    ) -> None:
        self._bundle = bundle
        self._programs = programs
        self._frames = frames
        self._seed = seed
        self._new_attempt = new_attempt

    async def qualify(self) -> CameraRecord:
        """Make the qualification trace: the contract's own action, authorized, through the sink."""
        cell = Cell(Sample.AUDIT, QUALIFICATION, self._bundle.id, Condition.B4, AUTHORIZED, 1)
        record = _begun(0, cell)
        action = self._bundle.contract.action
        arguments = {"target": action.target, **action.canonical}
        text = json.dumps({"tool": action.tool, "arguments": arguments}, default=_number)
        raw = RawAnswer(mode="json", text=text, finish_reason="stop")
        job = cell_job(self._bundle, cell, "", self._seed)
        record.attempt = self._new_attempt()
        if await self._freeze(job, record) is not None:
            await self._finish(job, record, answer_text(raw))
        return record

    async def record(
        self,
        number: int,
        deployment: Deployment,
        condition: Condition,
        member: str,
        deleted: Sequence[str],
    ) -> CameraRecord:
        """Make one record."""
        cell = Cell(Sample.AUDIT, deployment.name, self._bundle.id, condition, member, 1)
        record = _begun(number, cell)
        text = placed_text(self._bundle, condition, deleted)
        job = cell_job(self._bundle, cell, text, self._seed)
        record.attempt = self._new_attempt()
        snapshot = await self._freeze(job, record)
        if snapshot is None:
            return record
        prompt = build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)
        record.prompt = prompt.digest
        try:
            completion = await deployment.propose(prompt.messages, prompt.tools, job.call)
        except DeploymentFault as fault:
            record.reason = f"the deployment gave no completed answer: {fault}"
            return record
        await self._finish(job, record, answer_text(completion.answer))
        return record

    async def close(self) -> dict[str, Any]:
        """Return the signed heads of the records, and what the observer's sweep found."""
        swept = await self._programs.observer.ask({"op": "sweep"})
        doors = {
            str(mediation): await channel.ask({"op": "head"})
            for mediation, channel in self._programs.doors.items()
        }
        observer = await self._programs.observer.ask({"op": "head"})
        return {
            "sweep": {key: value for key, value in swept.items() if key != "id"},
            "heads": {**{k: v.get("head") for k, v in doors.items()}, "observer": observer["head"]},
        }

    async def _freeze(self, job: Job, record: CameraRecord) -> str | None:
        frozen = await self._programs.world.ask(
            {
                "op": "reset",
                "attempt": record.attempt,
                "template": job.template,
                "task": job.task,
                "patch": job.patch,
                "episode": job.episode,
            }
        )
        if "error" in frozen:
            record.reason = f"the world refused the reset: {frozen['error']}"
            return None
        if frozen["snapshot_digest"] != job.snapshot:
            raise EvidenceError("the world froze another snapshot than the bundle's member has")
        begun = await self._programs.observer.ask(
            {"op": "begin", "attempt": record.attempt, "effect": job.effect}
        )
        if "error" in begun:
            record.reason = f"the observer did not begin: {begun['error']}"
            return None
        return str(frozen["snapshot"])

    async def _finish(self, job: Job, record: CameraRecord, answer: str) -> None:
        """Propose, decide, observe, and say what the record is worth."""
        record.answer = json.loads(answer)
        parsed = parse(RawAnswer.model_validate_json(answer))
        record.d1 = stage_of(parsed)
        lost = ""
        if isinstance(parsed, Proposal):
            lost = await self._propose(job, record, answer)
        seen = await self._programs.observer.ask(
            {"op": "end", "attempt": record.attempt, "effect": job.effect}
        )
        record.d3 = sighting_of(seen)
        record.evidence = self._programs.evidence(record.attempt)
        record.requests = self._programs.requests(job.mediation, record.attempt)
        record.reason = lost or why_incomplete(record, self._frames)
        record.status = Status.INCOMPLETE if record.reason else Status.COMPLETE
        record.faults = contradictions(record)

    async def _propose(self, job: Job, record: CameraRecord, answer: str) -> str:
        reply = await self._programs.doors[job.mediation].ask(
            {
                "op": "propose",
                "attempt": record.attempt,
                "contract": job.contract,
                "episode": job.episode,
                "snapshot": job.snapshot,
                "answer": answer,
            }
        )
        try:
            record.d2 = decision_of(reply, job.mediation)
        except DocumentFault as fault:
            return f"the door answered with something else ({fault})"
        act = record.d2.act
        record.eligible = act is not None and act.status in {"done", "in_doubt"}
        return lost_decision(record.d2)


def _number(value: object) -> int | float:
    """Return the JSON form of a parameter that is a decimal number."""
    number = float(str(value))
    return int(number) if number.is_integer() else number


def _begun(number: int, cell: Cell) -> CameraRecord:
    return CameraRecord(
        number, cell.deployment, str(cell.condition), cell.member, Status.INCOMPLETE
    )
