"""Measure the service: ``python -m tests.bench.service [--rows N] [--seconds S] [--runs N]``.

Fills each database with trace rows (100 runs of equal size, bulk insert), then asks a real server
from four connections for single runs and for pages of traces, and prints requests per second and
percentiles of the answer's time. Then a server carries runs of 8,000 cells (1,000 repetitions) at
once while it is asked again; its memory, and that of its programs, is sampled.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from sqlalchemy import insert, text

from retire.domain.digests import sha256
from retire.service.assembly import ready_database
from retire.store.database import writing
from retire.store.registry_tables import RUNS
from retire.store.tables import TRACES
from tests.bench.panel import _family, _pss
from tests.databases import KINDS, fresh_database
from tests.integration.servers import Server, alone, make_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sqlalchemy import Engine

RUNS_STORED = 100
CONNECTIONS = 4
MEMBERS = ("authorized", "invalid_authority", "invalid_principal", "invalid_state")


def run_id(number: int) -> str:
    """The id of a run of the filling."""
    return f"{number:032x}"


def fill(engine: Engine, rows: int, body: dict[str, Any]) -> None:
    """Insert runs and their traces."""
    size = rows // RUNS_STORED
    with writing(engine) as connection:
        connection.execute(insert(RUNS), [run_row(number, size) for number in range(RUNS_STORED)])
    shown = json.dumps(body, separators=(",", ":"))
    for number in range(RUNS_STORED):
        with writing(engine) as connection:
            connection.execute(insert(TRACES), list(trace_rows(number, size, shown)))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


def run_row(number: int, size: int) -> dict[str, Any]:
    """A run that has ended."""
    return {
        "id": run_id(number),
        "number": number + 1,
        "owner": "t-test",
        "state": "complete",
        "plan_digest": sha256(run_id(number).encode()),
        "request": "{}",
        "bundle": "PRV_L01",
        "deployment": "plain",
        "placement": "B4",
        "cells_planned": size,
        "cells_done": size,
        "stages": json.dumps({"d2_deny": size}),
        "created_at": "2026-01-01T00:00:00Z",
        "ended_at": "2026-01-01T00:01:00Z",
        "verdict": "pass",
        "certificate": json.dumps({"payload": "x" * 60_000, "signatures": []}),
    }


def trace_rows(number: int, size: int, body: str) -> Iterable[dict[str, Any]]:
    """Rows with a body of the usual size."""
    for seq in range(1, size + 1):
        denied = seq % 3 == 0
        yield {
            "run": run_id(number),
            "seq": seq,
            "cell": f"audit/plain/PRV_L01/B4/{MEMBERS[seq % 4]}/{seq}",
            "bundle": "PRV_L01",
            "condition": "B4" if seq % 2 else "B1",
            "member": MEMBERS[seq % 4],
            "d1": "proposal",
            "d2": "deny" if denied else "allow",
            # A reason that stands on one row of a thousand.
            "reason": "quorum_unmet" if seq % 1000 == 999 else "state_unmet" if denied else "",
            "protected": 0,
            "body": body,
            "prev": sha256(str(seq - 1).encode()),
            "hash": sha256(str(seq).encode()),
        }


def usual_body(folder: Path) -> dict[str, Any]:
    """The trace of a real cell."""
    alone(folder)
    line = (folder / "traces.jsonl").read_text().splitlines()[-1]
    body: dict[str, Any] = json.loads(line)["body"]
    return body


def ask(server: Server, paths: Callable[[random.Random], str], seconds: float) -> Sequence[float]:
    """Ask from several connections for so long; returns the milliseconds of each answer."""
    taken: list[float] = []
    end = time.perf_counter() + seconds

    def one(seed: int) -> None:
        draw = random.Random(seed)
        with httpx.Client(
            base_url=server.client.base_url, headers=server.client.headers, timeout=60
        ) as client:
            while (began := time.perf_counter()) < end:
                reply = client.get(paths(draw))
                taken.append((time.perf_counter() - began) * 1000)
                if reply.status_code != 200:
                    raise RuntimeError(reply.text)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(taken)


def report(name: str, taken: Sequence[float], seconds: float) -> None:
    """Print one line."""
    places = {percent: taken[int(len(taken) * percent / 100)] for percent in (50, 99)}
    print(
        f"{name:<44} {len(taken) / seconds:7.0f} requests/s   "
        f"p50 {places[50]:7.1f} ms   p99 {places[99]:7.1f} ms"
    )


def reading(server: Server, size: int, seconds: float) -> None:
    """Single runs, pages in the middle, and filtered pages."""

    def run(draw: random.Random) -> str:
        return run_id(draw.randrange(RUNS_STORED))

    calls: dict[str, Callable[[random.Random], str]] = {
        "GET /runs/{id}": lambda draw: f"/runs/{run(draw)}",
        "GET /runs?limit=50": lambda _: "/runs?limit=50",
        "traces, page of 100": lambda draw: (
            f"/runs/{run(draw)}/traces?after={draw.randrange(size)}&limit=100"
        ),
        "traces, page of 20": lambda draw: (
            f"/runs/{run(draw)}/traces?after={draw.randrange(size)}&limit=20"
        ),
        "traces, 20 of a rare reason": lambda draw: (
            f"/runs/{run(draw)}/traces?reason=quorum_unmet&limit=20"
        ),
        "GET /traces/{id}": lambda draw: f"/traces/{run(draw)}.{draw.randrange(1, size)}",
    }
    for name, paths in calls.items():
        report(name, ask(server, paths, seconds), seconds)


def carrying(server: Server, runs: int, seconds: float) -> None:
    """Ask while runs are carried; print memory."""
    started = [server.submit(repetitions=1000, seed=seed)["id"] for seed in range(1, runs + 1)]
    began = time.perf_counter()
    peak = {"server": 0, "all": 0}
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.5):
            own = _pss(server.process.pid)
            peak["server"] = max(peak["server"], own)
            peak["all"] = max(peak["all"], sum(_pss(pid) for pid in _family(server.process.pid)))

    watching = threading.Thread(target=sample)
    watching.start()
    try:
        server.until(started[0], "running", cells=100)
        taken = ask(server, lambda draw: f"/runs/{draw.choice(started)}", seconds)
        report(f"GET /runs/{{id}} while {runs} runs are carried", taken, seconds)
        for run in started:
            server.until(run, "complete", seconds=900)
    finally:
        over.set()
        watching.join()
    took = time.perf_counter() - began
    print(
        f"{runs} runs of 8,000 cells: {8000 * runs / took:.0f} cells/s; peak memory of the server "
        f"{peak['server'] / 2**20:.0f} MB, with its programs {peak['all'] / 2**20:.0f} MB"
    )


def measure(kind: str, options: argparse.Namespace, folder: Path, body: dict[str, Any]) -> None:
    """Fill one kind of database and ask."""
    database = fresh_database(kind, folder)
    token = make_token(database)
    engine = ready_database(database)
    began = time.perf_counter()
    fill(engine, options.rows, body)
    engine.dispose()
    print(f"-- {kind}: {options.rows} rows, filled in {time.perf_counter() - began:.0f} s")
    with Server(folder / "data", database, token, runs_at_once=4, lease_seconds=10) as server:
        reading(server, options.rows // RUNS_STORED, options.seconds)
        if options.runs:
            carrying(server, options.runs, options.seconds)


def main() -> None:
    """Measure both databases."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.service", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--runs", type=int, default=3, help="runs of 8,000 cells at once")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="retire-bench-") as made:
        folder = Path(made)
        body = usual_body(folder / "alone")
        print(f"a trace's body has {len(json.dumps(body, separators=(',', ':')))} bytes")
        for kind in options.kinds:
            (folder / kind).mkdir()
            measure(kind, options, folder / kind, body)


if __name__ == "__main__":
    main()
