"""Running a coroutine in a thread with an event loop of its own.

A run seals, joins and judges in long steps; in the server's loop they would keep every caller
waiting, and the lease from being renewed.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Executor

_T = TypeVar("_T")


async def apart(executor: Executor, make: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run a coroutine in a thread; a cancellation reaches it and waits until it has ended.

    One that finishes in spite of the cancellation gives its result.

    Args:
        executor: Gives the thread.
        make: Makes the coroutine, in the thread's loop.
    """
    work = _Apart(make)
    thread = asyncio.get_running_loop().run_in_executor(executor, work.run)
    while not thread.done():
        try:
            await asyncio.wait({thread})
        except asyncio.CancelledError:
            work.cancel()
    ended = thread.result()
    if ended is None:
        raise asyncio.CancelledError
    return ended[0]


class _Apart(Generic[_T]):
    def __init__(self, make: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[_T] | None = None

    def run(self) -> tuple[_T] | None:
        """In the thread: run the coroutine to its end; None if it was cancelled."""
        try:
            return (asyncio.run(self._main()),)
        except asyncio.CancelledError:
            return None

    async def _main(self) -> _T:
        with self._lock:
            if self._asked:
                raise asyncio.CancelledError
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.ensure_future(self._make())
        try:
            return await self._task
        finally:
            with self._lock:
                self._loop = None

    def cancel(self) -> None:
        """From another thread: cancel the coroutine, or keep it from being begun."""
        with self._lock:
            self._asked = True
            if self._loop is not None and self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)
