"""``python -m tests.integration.driver CONFIG``: one run in a process that may be killed.

CONFIG is a JSON object, see :class:`Config`. Events are JSON lines on standard output: `programs`
(process ids), `sealing`, `advance` (a cell or a reduction is finished), `finished` (roots, counts,
verdicts). An error of the product goes to standard error as one paragraph, and its exit code is
this process's own.

The faults that a test asks for are put around the parts, never into them.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import os
import resource
import signal
import sys
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retire import wiring
from retire.bundle import load_bundle
from retire.deployments import EMBEDDED, Call, Catalog, Completion, DeploymentFault
from retire.domain.cell import Mediation
from retire.domain.errors import RetireError
from retire.matrix import Protocol
from retire.runner import wire
from retire.skill import render
from retire.wiring import running
from sink.proposal import RawAnswer

if TYPE_CHECKING:
    from retire.domain.trace import Trace

PANEL = Path(__file__).resolve().parents[2] / "bundles" / "panel"


@dataclass
class Config:
    """One run, and the faults around it."""

    out: str
    bundles: list[str] = field(default_factory=lambda: ["ACC_L01", "ENV_L01"])
    deployments: list[str] = field(
        default_factory=lambda: ["heedful", "plain", "eager", "drifting"]
    )
    conditions: list[str] = field(default_factory=lambda: ["B1", "B2", "B3", "B4", "B5", "B6"])
    task_value: bool = True
    repetitions: int = 1
    seed: int = 7
    concurrency: int = 16
    reducer: str = "halving"
    reduces: bool = False
    """Let the run reduce; otherwise the candidate lacks every condition clause."""
    answer_milliseconds: int = 0
    """How long a deployment takes; keeps a run from being over before it can be killed."""
    calls: str = ""
    """A file that gets one line (digest of the prompt) for each question to a deployment."""
    answers: str = ""
    """The text that every deployment answers with, whatever it is asked."""
    failing_calls: int = 0
    """So many questions at first get no completed answer."""
    silence_seconds: float = 0.0
    """The runner's deadline for a program, where it shall be shorter."""
    kill_before_proposal: int = 0
    """SIGKILL to this process with the n-th proposal stored, before a door has it."""
    kill_after_act: int = 0
    """SIGKILL to this process as soon as the direct adapter has acted n times."""
    blind_asks: int = 0
    """So many questions to the observer at first find ground truth unreadable."""
    hide_ground_truth: bool = False
    """Take the world's database away from the observer once everything has started."""
    file_bytes: int = 0
    """Largest file that this process (and its programs) may write: a full disk."""
    file_bytes_of_runner: int = 0
    """The same, for this process alone."""
    file_bytes_of_programs: int = 0
    """The same, for the programs alone."""


def say(**event: Any) -> None:
    """Tell the test something."""
    os.write(1, json.dumps(event).encode() + b"\n")


class Announced:
    """Progress that the test can follow."""

    def begin(self, stage: str, total: int | None, done: int = 0) -> None:
        say(event="begin", stage=stage, total=total, done=done)

    def advance(self, stage: str, note: str = "") -> None:
        say(event="advance", stage=stage)


class Deployment:
    """A simulated deployment that is slow, counted, scripted or failing."""

    def __init__(self, inner: Any, config: Config) -> None:
        self._inner = inner
        self._config = config
        self.name = inner.name
        self.identity = inner.identity
        self.evidence = inner.evidence
        self.concurrency = inner.concurrency
        self.open = inner.open
        self.close = inner.close

    async def propose(self, messages: Any, tools: Any, call: Call) -> Completion:
        if self._config.calls:
            asked = json.dumps([messages, call.seed], sort_keys=True).encode()
            line = f"{self.name} {hashlib.sha256(asked).hexdigest()}\n"
            fd = os.open(self._config.calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, line.encode())
            os.close(fd)
        await asyncio.sleep(self._config.answer_milliseconds / 1000)
        if self._config.failing_calls > 0:
            self._config.failing_calls -= 1
            raise DeploymentFault("the endpoint is down")
        if self._config.answers:
            text = self._config.answers
            return Completion(RawAnswer(mode="json", text=text, finish_reason="stop"))
        return await self._inner.propose(messages, tools, call)


class Door:
    """A door that kills the runner before a proposal arrives, or after an act."""

    def __init__(self, inner: Any, config: Config, counted: Counter[str]) -> None:
        self._inner = inner
        self._config = config
        self._counted = counted

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["op"] == "propose":
            self._counted["proposals"] += 1
            self._kill_at("proposals", self._config.kill_before_proposal)
        reply = await self._inner.ask(message)
        if (reply.get("act") or {}).get("status") == "done":
            self._counted["acts"] += 1
            self._kill_at("acts", self._config.kill_after_act)
        return reply

    def _kill_at(self, what: str, number: int) -> None:
        if number and self._counted[what] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def close(self) -> None:
        self._inner.close()


class Observer:
    """An observer whose sensor fails for a while."""

    def __init__(self, inner: Any, config: Config) -> None:
        self._inner = inner
        self._config = config

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if self._config.blind_asks > 0:
            self._config.blind_asks -= 1
            return {"complete": False, "reason": "ground truth cannot be read"}
        return await self._inner.ask(message)

    def close(self) -> None:
        self._inner.close()


def parent_of(pid: int) -> int:
    """Return the parent of a process."""
    status = Path(f"/proc/{pid}/stat").read_text()
    return int(status.rsplit(")", 1)[1].split()[1])


def limit_files(size: int) -> None:
    """Let no file grow beyond a size."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def put_faults_around(config: Config) -> None:
    """Wrap what the wiring puts together."""
    start, seal = running.running_programs, running.seal

    @asynccontextmanager
    async def announced(state: Path, bundles: Any, **given: Any) -> Any:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        if config.file_bytes_of_programs:
            limit_files(config.file_bytes_of_programs)
        async with start(state, bundles, **given) as programs:
            limit_files(before)
            counted: Counter[str] = Counter()
            doors = dict(programs.doors)
            doors = {way: Door(door, config, counted) for way, door in doors.items()}
            if config.kill_after_act:
                doors |= {
                    way: programs.doors[way] for way in (Mediation.CANONICAL, Mediation.EXACT)
                }
            if config.hide_ground_truth:
                truth = state / "world" / "world.sqlite"
                truth.rename(truth.with_name("hidden.sqlite"))
            if config.file_bytes_of_runner:
                limit_files(config.file_bytes_of_runner)
            launcher = parent_of(programs.pids["world"])
            say(event="programs", pids={**programs.pids, "launcher": launcher})
            observer = Observer(programs.observer, config)
            yield dataclasses.replace(programs, doors=doors, observer=observer)

    async def announced_seal(*arguments: Any) -> None:
        say(event="sealing")
        await asyncio.sleep(config.answer_milliseconds / 1000)
        await seal(*arguments)

    running.running_programs = announced
    running.seal = announced_seal
    if config.silence_seconds:
        wire.DEADLINE_SECONDS = config.silence_seconds


def request_of(config: Config) -> wiring.Request:
    """Return what to run."""
    values = {
        "schema": "retire.protocol/v1",
        "name": "driven",
        "seed": config.seed,
        "bundles": tuple(config.bundles),
        "deployments": tuple(config.deployments),
        "conditions": tuple(config.conditions),
        "task_value": config.task_value,
        "repetitions": config.repetitions,
        "reducer": config.reducer,
        "resamples": 99,
    }
    candidates = {}
    if not config.reduces:
        for key in config.bundles:
            bundle = load_bundle(PANEL / key)
            candidates[key] = render(bundle.skill, list(bundle.condition_ids))
    return wiring.Request(
        protocol=Protocol.model_validate(values),
        folders={key: PANEL / key for key in config.bundles},
        out=Path(config.out),
        concurrency=config.concurrency,
        candidates=candidates,
        catalog=Catalog({name: partial(wrapped, name, config) for name in EMBEDDED.names}),
    )


def wrapped(name: str, config: Config) -> Deployment:
    """Return a deployment with the run's faults around it."""
    return Deployment(EMBEDDED.named(name), config)


def counted_as(trace: Trace) -> str:
    """Return everything of a trace that a count could rest on."""
    cell, d2, d3 = trace.cell, trace.d2, trace.d3
    named = [cell.sample, cell.deployment, cell.bundle, cell.condition, cell.member]
    stages = [trace.d1.outcome, d2.outcome, d2.reason, d3.intended, d3.protected]
    return json.dumps([*named, *stages])


def told(finished: wiring.Finished) -> dict[str, Any]:
    """Return what two runs are compared by, and what else a test wants to know."""
    run = finished.run
    traces = [row.body for row in run.traces]
    return {
        "outcome_root": run.traces.outcome_root,
        "record_root": run.traces.record_root,
        "verdicts": {
            f"{item.deployment}/{item.condition}": [str(item.verdict), item.gates.as_json()]
            for item in finished.certificates
        },
        "counts": Counter(counted_as(trace) for trace in traces),
        "findings": [[item.kind, item.where, item.what] for item in run.findings],
        "planned": len(run.plan.cells),
        "rows": len(traces),
        "incomplete": dict(finished.incomplete),
        "attempts": sorted(
            attempt
            for attempt, cell in run.records.attempts.items()
            if not cell.startswith("development/")
        ),
        "accounted": sorted(
            attempt for trace in traces for attempt in (trace.attempt, *trace.earlier_attempts)
        ),
        "deleted": {"/".join(pair): value for pair, value in run.deleted.items()},
        "keys": {name: head.key for name, head in run.records.heads.items()},
    }


def main() -> int:
    """Run, tell, and end with the product's own exit code."""
    config = Config(**json.loads(sys.argv[1]))
    put_faults_around(config)
    if config.file_bytes:
        limit_files(config.file_bytes)
    try:
        finished = asyncio.run(wiring.execute(wiring.prepare(request_of(config)), Announced()))
        say(event="finished", **told(finished))
        wiring.require_complete(finished)
    except RetireError as error:
        print(f"driver: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
