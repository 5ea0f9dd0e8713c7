"""Is a slow endpoint kept busy? ``python -m tests.bench.endpoint [--latency S] [--matrix]``.

Asks a scripted endpoint, which lives in a process of its own and answers after a fixed time, for
648 calls at concurrency 32: through the provider alone, whole and streamed, and with ``--matrix``
through a whole run of 648 cells (twelve bundles, three repetitions, nothing to reduce). Prints the
share of the ideal time, which is the number of waves times the latency.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from retire.bundle import load_bundle
from retire.bundle.loading import bundles_by_id
from retire.deployments import EMBEDDED
from retire.deployments.configuration import OpenAIConfiguration
from retire.deployments.openai_endpoint import OpenAIDeployment
from retire.deployments.port import Call
from retire.matrix import Protocol
from retire.prompts import build_prompt
from retire.wiring import Request, execute, prepare
from tests.silent import Silent

FOLDERS = bundles_by_id([Path(__file__).resolve().parents[2] / "bundles" / "panel"])
CALLS = 648


@contextmanager
def endpoint(latency: float, *answers: str):
    """A scripted endpoint in a process of its own; gives its address."""
    command = [sys.executable, "-m", "tests.integration.scripted_endpoint"]
    with subprocess.Popen(
        [*command, "--latency", str(latency), *answers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()
            server.wait(10)


def configured(url: str, concurrency: int, *, streamed: bool) -> OpenAIConfiguration:
    return OpenAIConfiguration(
        provider="openai",
        name="measured",
        base_url=url,
        model="scripted-1",
        concurrency=concurrency,
        stream=streamed,
    )


def prompts() -> list:
    """One real prompt per bundle of the panel."""
    found = []
    for folder in FOLDERS.values():
        bundle = load_bundle(folder)
        text, request = bundle.skill.data.decode(), bundle.tasks.locked.request
        found.append(build_prompt(text, bundle.tools, request, bundle.members[0].snapshot.decode()))
    return found


async def provider(url: str, concurrency: int, *, streamed: bool) -> tuple[float, float]:
    """Return wall seconds of all calls, and milliseconds of processor time for each."""
    deployment = OpenAIDeployment(configured(url, concurrency, streamed=streamed))
    await deployment.open()
    asked = prompts()
    waiting = iter(range(CALLS))

    async def ask(number: int) -> None:
        prompt = asked[number % len(asked)]
        await deployment.propose(
            prompt.messages, prompt.tools, Call(number, "audit", 1, str(number))
        )

    async def worker() -> None:
        for number in waiting:
            await ask(number)

    # The library's first call loads what it needs; a run pays that once.
    await ask(0)
    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    await deployment.close()
    return seconds, cpu * 1000 / CALLS


def matrix(url: str, concurrency: int) -> float:
    """Return the wall seconds of the cells of a whole run, with its programs and its seal."""
    protocol = Protocol.model_validate(
        {
            "schema": "retire.protocol/v1",
            "name": "measured",
            "seed": 1,
            "bundles": tuple(FOLDERS),
            "deployments": ("measured",),
        }
    )
    skills = {key: (folder / "SKILL.md").read_bytes() for key, folder in FOLDERS.items()}
    item = configured(url, concurrency, streamed=False)
    catalog = EMBEDDED.extended({"measured": lambda: OpenAIDeployment(item)})
    with tempfile.TemporaryDirectory() as folder:
        request = Request(
            protocol, FOLDERS, Path(folder) / "run", concurrency, candidates=skills, catalog=catalog
        )
        finished = asyncio.run(execute(prepare(request), Silent()))
    assert len(finished.run.traces) == CALLS
    return finished.seconds["matrix"]


def report(name: str, seconds: float, ideal: float, **more: float) -> None:
    print(
        json.dumps(
            {
                "measured": name,
                "seconds": round(seconds, 2),
                "ideal_seconds": round(ideal, 2),
                "share_of_ideal": round(ideal / seconds, 3),
                **more,
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--matrix", action="store_true")
    given = parser.parse_args()
    ideal = math.ceil(CALLS / given.concurrency) * given.latency
    for streamed in (False, True):
        with endpoint(given.latency) as url:
            seconds, cpu = asyncio.run(provider(url, given.concurrency, streamed=streamed))
        name = "provider, streamed" if streamed else "provider"
        report(name, seconds, ideal, cpu_milliseconds_a_call=round(cpu, 2))
    if given.matrix:
        with endpoint(given.latency, "--simulated", "heedful") as url:
            report("matrix", matrix(url, given.concurrency), ideal)


if __name__ == "__main__":
    main()
