"""Measure the main job: ``python -m tests.bench.panel [--large] [--seeds N]``.

Prints cells per second, the share of time per stage, the decision's time in process and over the
socket, reducer trials for both strategies, peak memory of all programs together; with ``--large``
the cost per cell at 25,920 cells beside 2,592; with ``--seeds N`` the verdicts over N plan seeds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import statistics
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Self

from retire.bundle import find_bundles, load_bundle
from retire.domain.cell import Mediation
from retire.matrix import Protocol, load_protocol
from retire.runner.processes import running_programs
from retire.runner.reducing import FoundReduction
from retire.wiring import Finished, Request, execute, prepare
from sink.contract import read_snapshot
from sink.decision import Binding, decide
from sink.proposal import Proposal, RawAnswer, parse
from tests.silent import Silent

ROOT = Path(__file__).resolve().parents[2]
PANEL = ROOT / "bundles" / "panel"


class Memory:
    """Samples the proportional set size of this process and its descendants."""

    def __init__(self) -> None:
        self.peak = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.5):
            self.peak = max(self.peak, sum(_pss(pid) for pid in _family(os.getpid())))


def _family(root: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
    family = [root]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def _pss(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def declared(**changes: object) -> Protocol:
    """Return the panel's protocol with changes."""
    path = ROOT / "bundles" / "protocols" / "panel.yaml"
    values = load_protocol(path.read_bytes(), str(path)).model_dump(by_alias=True)
    return Protocol.model_validate({**values, **changes})


def run(protocol: Protocol, out: Path) -> tuple[Finished, float, int]:
    """Run a protocol; returns the result, wall seconds, and peak memory in bytes."""
    folders = {path.name: path for path in find_bundles([PANEL])}
    began = time.perf_counter()
    with Memory() as memory:
        finished = asyncio.run(execute(prepare(Request(protocol, folders, out)), Silent()))
    return finished, time.perf_counter() - began, memory.peak


def report_run(name: str, finished: Finished, seconds: float, peak: int) -> None:
    """Print what one run cost."""
    cells = len(finished.run.traces)
    matrix = finished.seconds["matrix"]
    parts = ", ".join(f"{key} {value:.1f} s" for key, value in finished.seconds.items())
    print(f"{name}: {seconds:.1f} s in all ({parts}); {cells} cells")
    print(f"  {cells / matrix:.0f} cells/s, {1000 * matrix / cells:.2f} ms a cell")
    print(f"  peak memory of all programs together: {peak / 2**20:.0f} MiB")
    stages: Counter[str] = Counter()
    for row in finished.run.traces:
        stages.update(row.body.microseconds.model_dump())
    total = sum(stages.values())
    shares = ", ".join(f"{key} {100 * value / total:.0f}%" for key, value in stages.items())
    print(f"  share of a cell's waiting time per stage (concurrency 16): {shares}")


def trials(finished: Finished) -> int:
    """Return the reducer trials of a run."""
    return sum(
        item.described.trials
        for item in finished.run.reductions.values()
        if isinstance(item.described, FoundReduction)
    )


def decision_times(repeats: int = 20_000) -> tuple[float, float]:
    """Return median and p99 of one decision in process, in microseconds.

    Strict parse, predicates and binding; no signature, nonce or socket.
    """
    bundle = load_bundle(PANEL / "PRV_L01")
    action = bundle.contract.action
    arguments = {"target": action.target, **action.canonical}
    answer = RawAnswer(
        mode="json",
        text=json.dumps({"tool": action.tool, "arguments": arguments}, default=str),
        finish_reason="stop",
    )
    snapshots = [read_snapshot(member.snapshot) for member in bundle.members]
    taken = []
    for number in range(repeats):
        snapshot = snapshots[number % len(snapshots)]
        before = time.perf_counter_ns()
        proposal = parse(answer)
        assert isinstance(proposal, Proposal)
        decide(bundle.contract, proposal, snapshot, Binding.CANONICAL)
        taken.append((time.perf_counter_ns() - before) / 1000)
    taken.sort()
    return statistics.median(taken), taken[int(0.99 * len(taken))]


async def socket_times(repeats: int = 2000) -> tuple[float, float]:
    """Return median and p99 of decision, record and act over the socket, in microseconds.

    One request at a time: the whole round trip with the synced record and the world's commit.
    """
    bundle = load_bundle(PANEL / "PRV_L01")
    action = bundle.contract.action
    text = json.dumps(
        {"tool": action.tool, "arguments": {"target": action.target, **action.canonical}},
        default=str,
    )
    answer = RawAnswer(mode="json", text=text, finish_reason="stop").model_dump_json()
    member = bundle.members[0]
    taken = []
    with tempfile.TemporaryDirectory() as state:
        async with running_programs(Path(state), [PANEL / "PRV_L01"]) as programs:
            sink = programs.doors[Mediation.CANONICAL]
            for _ in range(repeats):
                attempt = secrets.token_hex(16)
                await programs.world.ask(
                    {
                        "op": "reset",
                        "attempt": attempt,
                        "template": bundle.digests.template,
                        "task": "locked",
                        "patch": None,
                        "episode": "bench",
                    }
                )
                message = {
                    "op": "propose",
                    "attempt": attempt,
                    "contract": bundle.digests.contract,
                    "episode": "bench",
                    "snapshot": member.snapshot_digest,
                    "answer": answer,
                }
                before = time.perf_counter_ns()
                reply = await sink.ask(message)
                taken.append((time.perf_counter_ns() - before) / 1000)
                assert reply["decision"] == "allow", reply
    taken.sort()
    return statistics.median(taken), taken[int(0.99 * len(taken))]


def report_seeds(count: int, folder: Path) -> None:
    """Run the panel under many plan seeds and tabulate the verdicts."""
    verdicts: dict[str, Counter[str]] = {}
    for seed in range(1, count + 1):
        finished, _, _ = run(declared(seed=seed), folder / f"seed-{seed}")
        for item in finished.certificates:
            name = f"{item.deployment} {item.condition}"
            verdicts.setdefault(name, Counter())[str(item.verdict)] += 1
    print(f"verdicts over {count} plan seeds:")
    for name, counted in verdicts.items():
        print(f"  {name}: " + ", ".join(f"{key} {value}" for key, value in counted.items()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="25,920 cells too (minutes)")
    parser.add_argument("--seeds", type=int, default=0, help="verdicts over this many seeds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        median, p99 = decision_times()
        print(f"decision in process: median {median:.1f} us, p99 {p99:.1f} us")
        median, p99 = asyncio.run(socket_times())
        print(f"decision, record and act over the socket: median {median:.0f} us, p99 {p99:.0f} us")
        finished, seconds, peak = run(declared(), folder / "panel")
        report_run("2,592 cells", finished, seconds, peak)
        print(f"reducer trials, one-at-a-time: {trials(finished)}")
        halving, _, _ = run(declared(reducer="halving"), folder / "halving")
        print(f"reducer trials, halving: {trials(halving)}")
        same = {
            pair: set(deleted) == set(halving.run.deleted[pair])
            for pair, deleted in finished.run.deleted.items()
        }
        print(f"both strategies delete the same clauses in {sum(same.values())} of {len(same)}")
        if arguments.large:
            finished, seconds, peak = run(declared(repetitions=30), folder / "large")
            report_run("25,920 cells", finished, seconds, peak)
        if arguments.seeds:
            report_seeds(arguments.seeds, folder)


if __name__ == "__main__":
    main()
