"""``python -m tests.fuzz.million``: very many proposals, in process and through real programs.

In process, each proposal goes through the strict parser and the decision, and a second reading says
whether it may act. Through the programs, each message has an attempt of its own in the stub world;
afterwards the world's journal and the sinks' records are compared with the second reading.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from retire.domain.cell import Mediation
from retire.runner.processes import Programs, running_programs
from sink.decision import Allow, Binding, decide
from sink.proposal import Invalid, Proposal, Refusal, parse, read_answer
from sink.record import ChainState, Head, check_chain
from tests import naive
from tests.faults import reference
from tests.fuzz import mutate
from tests.fuzz.household import PANEL, Case, household_cases, panel_cases

CONCURRENCY = 32
DOORS = {
    Binding.CANONICAL: (Mediation.CANONICAL, "sink-canonical"),
    Binding.EXACT: (Mediation.EXACT, "sink-exact"),
}


@dataclass
class Tally:
    """What was found; every list ought to stay empty."""

    tried: int = 0
    crashes: list[str] = field(default_factory=list)
    wrongful: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """Denied although the second reading allows: no danger, but one of the two is wrong."""
    outcomes: Counter[str] = field(default_factory=Counter)

    @property
    def faults(self) -> int:
        return len(self.crashes) + len(self.wrongful) + len(self.unrecorded) + len(self.missed)

    def told(self, where: str) -> str:
        common = "\n".join(f"    {count:>9}  {name}" for name, count in self.outcomes.most_common())
        lines = [
            f"{where}: {self.tried} proposals tried",
            (
                f"  crashes {len(self.crashes)}, wrongful acts {len(self.wrongful)}, "
                f"unrecorded acts {len(self.unrecorded)}, wrongful denials {len(self.missed)}"
            ),
            common,
        ]
        shown = [*self.crashes, *self.wrongful, *self.unrecorded, *self.missed][:20]
        return "\n".join([*lines, *(f"  ! {item}" for item in shown)])


def answer_for(random: Random, case: Case) -> bytes:
    """The bytes of one answer: near a right one, broken anywhere, or noise."""
    chance = random.random()
    if chance < 0.01:
        return mutate.noise(random)
    text = mutate.proposal_text(random, case.tool, case.right, case.others)
    data = mutate.answer_text(random, text).encode("utf-8", "surrogatepass")
    return mutate.mutated(random, data) if chance < 0.25 else data


def expected(case: Case, data: bytes, binding: Binding) -> tuple[str, str]:
    """The second reading's decision on an answer."""
    try:
        text = reference.wanted_action(data.decode())
    except (naive.NotUsableError, UnicodeDecodeError):
        return ("deny", "malformed_proposal")
    return naive.decide(case.data, case.plain, text, str(binding))


def decided(case: Case, data: bytes, binding: Binding) -> tuple[str, str]:
    """The sink's decision on an answer, in process."""
    answer = read_answer(data)
    parsed = answer if isinstance(answer, Invalid) else parse(answer)
    match parsed:
        case Proposal():
            decision = decide(case.contract, parsed, case.snapshot, binding)
            if isinstance(decision, Allow):
                return ("allow", str(decision.basis))
            return ("deny", str(decision.reason))
        case Invalid() | Refusal():
            return ("deny", "malformed_proposal")


def in_process(count: int, seed: int) -> Tally:
    """Try proposals without a process, a record or a socket."""
    random, tally = Random(seed), Tally()
    cases = [*panel_cases(), *household_cases() * 2]
    doors = list(Binding)
    for _ in range(count):
        case, binding = random.choice(cases), random.choice(doors)
        data = answer_for(random, case)
        tally.tried += 1
        try:
            got = decided(case, data, binding)
        except Exception as error:  # noqa: BLE001  # whatever it raises is a finding
            tally.crashes.append(f"{type(error).__name__}: {error} on {data!r:.300}")
            continue
        wanted = expected(case, data, binding)
        tally.outcomes[" ".join(got)] += 1
        note(tally, got, wanted, f"{case.name} {binding} {data!r:.300}")
    return tally


def note(tally: Tally, got: tuple[str, str], wanted: tuple[str, str], told: str) -> None:
    """Keep a decision that the second reading does not share."""
    if got[0] == "allow" and wanted[0] != "allow":
        tally.wrongful.append(f"{told}: allowed, the second reading says {wanted[1]}")
    elif got[0] != "allow" and wanted[0] == "allow":
        tally.missed.append(f"{told}: {got[1]}, the second reading allows")


@dataclass(frozen=True)
class Trial:
    """One attempt in the stub world and the message about it."""

    attempt: str
    case: Case
    binding: Binding
    message: dict[str, Any]
    copies: int


def trial_of(random: Random, cases: list[Case], number: int) -> Trial:
    """A message about an attempt of its own; now and then its identities are wrong too."""
    case, binding = random.choice(cases), random.choice(list(Binding))
    answer = answer_for(random, case).decode("utf-8", "replace")
    attempt = f"{random.getrandbits(96):024x}{number:08x}"
    message: dict[str, Any] = {
        "op": "propose",
        "attempt": attempt,
        "contract": case.contract_digest,
        "episode": episode(attempt),
        "snapshot": reference.sha256(case.snapshot_bytes),
        "answer": answer,
    }
    if random.random() < 0.05:
        key = random.choice(["attempt", "contract", "episode", "snapshot", "answer", "op"])
        wrong = (
            None,
            7,
            "",
            "x",
            "f" * 32,
            reference.sha256(b"x"),
            random.choice(cases).contract_digest,
        )
        message[key] = random.choice(wrong)
    if random.random() < 0.05:
        message |= {"mode": "allow", "snapshot_bytes": "{}", "binding": "none"}
    return Trial(attempt, case, binding, message, random.choice((1, 1, 1, 1, 1, 1, 1, 1, 2, 3)))


def episode(attempt: str) -> str:
    return reference.sha256(attempt.encode())


async def through_programs(count: int, seed: int) -> Tally:
    """Try proposals through the real programs, and read afterwards what they left behind."""
    random, tally = Random(seed), Tally()
    cases = panel_cases()
    trials = [trial_of(random, cases, number) for number in range(count)]
    folders = sorted(PANEL.iterdir())
    with tempfile.TemporaryDirectory(prefix="retire-million-") as name:
        state = Path(name)
        async with running_programs(state, folders) as programs:
            await _ask_all(programs, trials, tally)
            heads = {}
            for binding, (door, _) in DOORS.items():
                reply = await programs.doors[door].ask({"op": "head"})
                heads[binding] = Head(**reply["head"])
        _audit(state, trials, heads, tally)
    return tally


async def _ask_all(programs: Programs, trials: list[Trial], tally: Tally) -> None:
    waiting = iter(trials)

    async def worker() -> None:
        for trial in waiting:
            await _ask(programs, trial, tally)

    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))


async def _ask(programs: Programs, trial: Trial, tally: Tally) -> None:
    reset = {
        "op": "reset",
        "attempt": trial.attempt,
        "template": trial.case.template,
        "task": "locked",
        "patch": trial.case.patch,
        "episode": episode(trial.attempt),
    }
    frozen = await programs.world.ask(reset)
    if frozen.get("snapshot_digest") != reference.sha256(trial.case.snapshot_bytes):
        tally.crashes.append(f"the world did not freeze {trial.attempt}: {frozen!r:.200}")
    door = programs.doors[DOORS[trial.binding][0]]
    asked = [door.ask(trial.message) for _ in range(trial.copies)]
    for reply in await asyncio.gather(*asked, return_exceptions=True):
        tally.tried += 1
        if isinstance(reply, BaseException):
            tally.crashes.append(f"{type(reply).__name__}: {reply}")
        else:
            told = reply.get("basis") or reply.get("reason") or reply.get("error")
            tally.outcomes[f"{reply.get('decision', 'none')} {told}"] += 1


def _audit(state: Path, trials: list[Trial], heads: dict[Binding, Head], tally: Tally) -> None:
    """Compare journal and records with what the second reading allows."""
    allowed = {trial.attempt for trial in trials if _may_act(trial)}
    by_attempt = {trial.attempt: trial for trial in trials}
    intents: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for binding, (_, folder) in DOORS.items():
        report = check_chain((state / folder / "record.jsonl").read_bytes(), heads[binding])
        if report.state is not ChainState.INTACT:
            tally.unrecorded.append(f"{folder}: {report.state}, {report.detail}")
        for entry in report.entries:
            intents[entry.body["attempt"]] += entry.body.get("decision") == "allow"
            done[entry.body["attempt"]] += entry.body.get("act") == "done"
    acted = _journal(state, tally)
    for attempt in acted | {key for key, number in done.items() if number}:
        if attempt not in allowed:
            tally.wrongful.append(f"{attempt}: {by_attempt[attempt].message!r:.300}")
        if intents[attempt] != 1 or done[attempt] != 1:
            tally.unrecorded.append(f"{attempt}: {intents[attempt]} intents, {done[attempt]} acts")
    for attempt in allowed:
        if done[attempt] != 1:
            tally.missed.append(f"{attempt}: {by_attempt[attempt].message!r:.300}")
    tally.outcomes["(attempts with an entry in the world's journal)"] = len(acted)
    tally.outcomes["(attempts that the second reading lets act)"] = len(allowed)


def _journal(state: Path, tally: Tally) -> set[str]:
    """Attempts that changed something in the world; each place may change once."""
    connection = sqlite3.connect(state / "world" / "world.sqlite")
    rows = connection.execute("SELECT attempt, body FROM journal").fetchall()
    connection.close()
    places: Counter[tuple[str, str]] = Counter()
    for attempt, body in rows:
        change = json.loads(body)
        places[attempt, f"{change['target']} {change.get('variable', change.get('event'))}"] += 1
    twice = [place for place, number in places.items() if number > 1]
    tally.wrongful += [f"{attempt} changed {place} twice" for attempt, place in twice]
    return {attempt for attempt, _ in rows}


def _may_act(trial: Trial) -> bool:
    if trial.message["op"] != "propose" or trial.message["attempt"] != trial.attempt:
        return False
    case = trial.case
    truth = reference.Truth(case.snapshot_bytes, episode(trial.attempt), case.contract_digest)
    contracts = {case.contract_digest: case.data}
    return reference.may_act(contracts, str(trial.binding), trial.message, truth)


def main() -> int:
    """Run both parts and print what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.million", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--through-programs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    faults = 0
    start = time.perf_counter()
    tally = in_process(arguments.count, arguments.seed)
    print(tally.told(f"in process, seed {arguments.seed}"))
    print(f"  {time.perf_counter() - start:.0f} s", flush=True)
    faults += tally.faults
    if arguments.through_programs:
        start = time.perf_counter()
        tally = asyncio.run(through_programs(arguments.through_programs, arguments.seed))
        print(tally.told("through two real sinks and the stub world"))
        print(f"  {time.perf_counter() - start:.0f} s", flush=True)
        faults += tally.faults
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
