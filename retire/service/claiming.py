"""Claiming queued runs by lease, and removing what a killed server left half made."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from retire.domain.errors import IncompleteError
from retire.service.debris import sweep_runs, sweep_uploads
from retire.store.writer import in_short

if TYPE_CHECKING:
    from collections.abc import Callable

    from retire.service.settings import KeeperSettings
    from retire.service.work import RunWork
    from retire.store.registry import Registry

_CLAIM_SECONDS = 0.3
_SWEEP_SECONDS = 2.0

log = logging.getLogger("retire.service")


class RunClaims:
    """The background tasks of one server.

    Args:
        registry: Where runs are queued and leased.
        settings: What the operator configured.
        work: Carries what is claimed.
        server: This server's name in leases.
        clock: The present instant in whole seconds.
    """

    def __init__(
        self,
        registry: Registry,
        settings: KeeperSettings,
        work: RunWork,
        server: str,
        clock: Callable[[], int],
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._work = work
        self._server = server
        self._clock = clock
        self._loop: asyncio.Task[None] | None = None
        self._sweep: asyncio.Task[None] | None = None
        self._running: dict[str, asyncio.Task[None]] = {}

    @property
    def alive(self) -> bool:
        """Whether runs are being claimed."""
        return self._loop is not None and not self._loop.done()

    async def start(self) -> None:
        """Begin to work on queued runs, and on those a killed server left behind."""
        self._loop = asyncio.create_task(self._claim_runs())
        self._sweep = asyncio.create_task(self._sweep_debris())

    async def stop(self) -> None:
        """Stop; runs under way stay stored and are resumed by the next server."""
        # The loop first: it must not claim what nobody will carry.
        own = [task for task in (self._loop, self._sweep) if task is not None]
        for tasks in (own, list(self._running.values())):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(SQLAlchemyError):
            await asyncio.to_thread(self._registry.let_go, f"{self._server}/")
        self._work.close()

    async def _claim_runs(self) -> None:
        told = False
        while True:
            try:
                while len(self._running) < self._settings.runs_at_once:
                    if not await self._claim_one():
                        break
            except SQLAlchemyError as error:
                if not told:
                    log.warning("no run can be claimed until further notice: %s", in_short(error))
                told = True
            else:
                if told:
                    log.info("runs can be claimed again")
                told = False
            await asyncio.sleep(_CLAIM_SECONDS)

    async def _sweep_debris(self) -> None:
        """Remove once what an earlier server left half made, when nobody is taking anything in."""
        while True:
            try:
                runs = await asyncio.to_thread(sweep_runs, self._settings.data, self._knows)
                if runs and await asyncio.to_thread(sweep_uploads, self._settings.uploads):
                    return
            except (SQLAlchemyError, IncompleteError) as error:
                log.warning("what was left half made is not removed yet: %s", error)
            await asyncio.sleep(_SWEEP_SECONDS)

    def _knows(self, run: str) -> bool:
        return self._registry.run(run) is not None

    async def _claim_one(self) -> bool:
        lease = f"{self._server}/{secrets.token_hex(8)}"
        run = await asyncio.to_thread(
            self._registry.claim,
            lease,
            self._clock(),
            self._settings.lease_seconds,
            tuple(self._running),
        )
        if run is None:
            return False
        task = asyncio.create_task(self._work.carry(run, lease))
        self._running[run] = task
        task.add_done_callback(lambda _: self._running.pop(run))
        return True
