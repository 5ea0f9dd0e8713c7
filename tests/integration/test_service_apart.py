"""Work in a thread of its own: results, errors, and cancellations that wait for the end."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from retire.service.apart import apart

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


async def test_work_runs_in_another_thread_and_loop(executor: ThreadPoolExecutor) -> None:
    async def work() -> tuple[str, bool]:
        await asyncio.sleep(0)
        return threading.current_thread().name, asyncio.get_running_loop() is own

    own = asyncio.get_running_loop()
    name, same = await apart(executor, work)
    assert name != threading.current_thread().name
    assert not same

    async def failing() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await apart(executor, failing)


async def test_a_long_step_of_the_work_holds_nobody_up(executor: ThreadPoolExecutor) -> None:
    go = threading.Event()

    async def work() -> str:
        assert go.wait(20)
        return "done"

    task = asyncio.create_task(apart(executor, work))
    for _ in range(5):
        await asyncio.sleep(0.01)
    assert not task.done()
    go.set()
    assert await task == "done"


async def test_a_cancellation_waits_until_the_work_has_ended(executor: ThreadPoolExecutor) -> None:
    begun, told = threading.Event(), []

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.1)
            told.append("cleaned up")

    task = asyncio.create_task(apart(executor, work))
    assert await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == ["cleaned up"]


async def test_work_that_waits_for_a_thread_is_never_begun(executor: ThreadPoolExecutor) -> None:
    go, told = threading.Event(), []

    async def first() -> None:
        go.wait(20)

    async def second() -> None:
        told.append("begun")

    running = asyncio.create_task(apart(executor, first))
    waiting = asyncio.create_task(apart(executor, second))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.sleep(0.05)
    go.set()
    await running
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert told == []


async def test_work_that_finishes_in_spite_of_it_gives_its_result(
    executor: ThreadPoolExecutor,
) -> None:
    begun = threading.Event()

    async def work() -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "finished"
        return "slept"

    task = asyncio.create_task(apart(executor, work))
    assert await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    assert await task == "finished"
