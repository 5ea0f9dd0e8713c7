"""Programs of a run end with it, however often whoever ends it is interrupted meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from retire.runner.processes import running_programs
from tests.integration.driver import parent_of
from tests.integration.driving import survivors

pytestmark = pytest.mark.integration


async def begun(state: Path, panel: Path) -> tuple[asyncio.Task[None], dict[str, int]]:
    """Programs in a task that waits for ever; returns it and their process ids."""
    pids: dict[str, int] = {}
    ready = asyncio.Event()

    async def work() -> None:
        async with running_programs(state, [panel / "ACC_L01"]) as programs:
            pids.update(programs.pids)
            pids["launcher"] = parent_of(programs.pids["world"])
            ready.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await ready.wait()
    return task, pids


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_no_cancellation_leaves_a_program_behind(
    tmp_path: Path, panel: Path, times: int
) -> None:
    task, pids = await begun(tmp_path, panel)
    # A program that stands still keeps the launcher from ending at once.
    os.kill(pids["observer"], signal.SIGSTOP)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0.1)
    assert not task.done()
    os.kill(pids["observer"], signal.SIGCONT)
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    assert survivors(pids, 0) == {}


async def test_a_cancellation_at_any_moment_of_the_start_leaves_nothing(
    tmp_path: Path, panel: Path
) -> None:
    for number in range(6):
        state = tmp_path / str(number)

        async def work(state: Path = state) -> None:
            async with running_programs(state, [panel / "ACC_L01"]):
                await asyncio.Event().wait()

        task = asyncio.create_task(work())
        await asyncio.sleep(number * 0.08)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.02)
        with suppress(asyncio.CancelledError):
            await task
        assert using(state) == []


def using(state: Path) -> list[str]:
    """The commands of living processes that were given a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().decode(errors="replace").split("\0")
            if any(word == str(state) or word.startswith(f"{state}/") for word in words):
                found.append(" ".join(words))
    return found
