"""``python -m tests.fuzz.record_length``: does a decision cost more when the record is long?

For each length a record of that many entries is written (an intent and its outcome by turns), a
sink is started on it in a fresh process, and its start-up, its decisions and its memory are
measured. A message is answered when its entry is durable, so its time is mostly the disk's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sink.decision import Binding, decide
from sink.proposal import Proposal, RawAnswer, parse, read_answer
from sink.record import GENESIS, make_entry
from tests import houses
from tests.faults import rig

LENGTHS = (10, 10_000, 1_000_000)
DECISIONS = 400


def write_record(path: Path, length: int) -> None:
    """Write a record as a sink would have after many allowed attempts."""
    prev, seq = GENESIS, 0
    with path.open("wb", buffering=2**20) as file:
        while seq < length:
            attempt = f"{seq:032x}"
            for body in (_intent(attempt), _outcome(attempt)):
                entry = make_entry(seq + 1, prev, body)
                prev, seq = entry.hash, entry.seq
                file.write(entry.line())


def _intent(attempt: str) -> dict[str, object]:
    return {
        "kind": "decision",
        "attempt": attempt,
        "nonce": attempt,
        "episode": rig.EPISODE,
        "contract": rig.CONTRACT,
        "snapshot": rig.EPISODE,
        "frozen_snapshot": rig.EPISODE,
        "answer": rig.EPISODE,
        "binding": "canonical",
        "at": houses.NOW,
        "decision": "allow",
        "basis": "authority",
        "reason": "",
        "detail": "",
        "parameter": "",
        "predicates": dict.fromkeys(
            ("authority", "neighbour", "adults", "window", "outdoor", "gateway"), True
        ),
        "grants": ["boost"],
        "action": {
            "service": "climate.set",
            "target": "climate.den",
            "parameters": {"temperature": "#26.5"},
        },
    }


def _outcome(attempt: str) -> dict[str, object]:
    return {
        "kind": "outcome",
        "attempt": attempt,
        "nonce": attempt,
        "act": "done",
        "detail": "",
        "at": houses.NOW,
    }


async def measure(folder: Path) -> dict[str, float]:
    """Start a sink on the record of a folder and time it; times in seconds."""
    start = time.perf_counter()
    sink = rig.Rig(folder)
    await sink.monitor.start()
    started = time.perf_counter() - start
    whole = []
    for number in range(DECISIONS):
        attempt = f"f{number:031x}"
        sink.freeze(rig.snapshot_bytes((("/grants/boost/status", "revoked"),)), attempt)
        message = sink.message(attempt=attempt)
        start = time.perf_counter()
        await sink.monitor.handle(message)
        whole.append(time.perf_counter() - start)
    sink.record.close()
    return {
        "start": started,
        "message": statistics.median(whole),
        "message_99": statistics.quantiles(whole, n=100)[98],
        "pure": pure_seconds(),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def pure_seconds() -> float:
    """Median time of strict parse, predicates and binding, without record or world."""
    contract = houses.contract(rig.contract_data())
    snapshot = houses.snapshot()
    data = houses.answer({"target": "climate.den", "temperature": 26.5}).encode()
    times = []
    for _ in range(5000):
        start = time.perf_counter()
        answer = read_answer(data)
        assert isinstance(answer, RawAnswer)
        proposal = parse(answer)
        assert isinstance(proposal, Proposal)
        decide(contract, proposal, snapshot, Binding.CANONICAL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def in_fresh_process(folder: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.fuzz.record_length", "--measure", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    """Measure and print one line for each length."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.record_length")
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--measure", type=Path, help="used by itself: a folder with a record")
    arguments = parser.parse_args()
    if arguments.measure is not None:
        print(json.dumps(asyncio.run(measure(arguments.measure))))
        return
    print("entries    file MB  start-up s  message ms (p50, p99)  parse+decide us  memory MB")
    for length in arguments.lengths:
        with tempfile.TemporaryDirectory(prefix="retire-record-") as name:
            path = Path(name) / "record.jsonl"
            write_record(path, length)
            size = path.stat().st_size / 1e6
            told = in_fresh_process(Path(name))
        print(
            f"{length:>9} {size:>8.1f} {told['start']:>11.3f} {told['message'] * 1e3:>10.2f}"
            f" {told['message_99'] * 1e3:>10.2f} {told['pure'] * 1e6:>16.1f}"
            f" {told['memory']:>10.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
