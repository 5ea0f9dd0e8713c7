"""The programs of a run, as the runner reaches them: sockets to propose, observe and reset."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retire.domain.cell import Mediation
from retire.domain.errors import IncompleteError
from retire.runner.wire import Channel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence

STOP_SECONDS = 15.0
"""How long programs may take to end before they are made to."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Channels to the running programs.

    Attributes:
        world: Resets.
        observer: Observes.
        doors: Propose, by mediation.
        pids: Process ids as the launcher told them, for tests and the operator's eyes.
        users: Who each program and this runner is, as the kernel says of the connections.
    """

    world: Channel
    observer: Channel
    doors: Mapping[Mediation, Channel]
    pids: Mapping[str, int]
    users: Mapping[str, int] = field(default_factory=dict)

    def all_channels(self) -> tuple[Channel, ...]:
        """Return every channel."""
        return (self.world, self.observer, *self.doors.values())


@asynccontextmanager
async def running_programs(
    state: Path,
    bundles: Sequence[Path],
    settle_milliseconds: int = 2,
    home_assistant: Path | None = None,
) -> AsyncIterator[Programs]:
    """Start the launcher, connect, and end everything on the way out.

    The launcher alone makes and hands out the channel that acts; what this process gets is a
    line with socket paths. With ``home_assistant``, an instance file, the world is a house in
    Home Assistant; the file names token files, and only the launcher reads it.

    Raises:
        IncompleteError: The programs did not start; their own words are on standard error.
    """
    launcher = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hardware.launch",
        "--state",
        str(state),
        "--settle-milliseconds",
        str(settle_milliseconds),
        *(() if home_assistant is None else ("--home-assistant", str(home_assistant))),
        "--bundles",
        *(str(path) for path in bundles),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    programs: Programs | None = None
    try:
        programs = await _connect(launcher)
        yield programs
    finally:
        if programs is not None:
            for channel in programs.all_channels():
                channel.close()
        await to_the_end(_end(launcher))


async def _connect(launcher: asyncio.subprocess.Process) -> Programs:
    if launcher.stdout is None:
        raise IncompleteError("the launcher has no output")
    line = await launcher.stdout.readline()
    if not line:
        raise IncompleteError(
            "the programs (world, sink, direct, observer) did not start",
            mend="Their message stands above",
        )
    return await connected(json.loads(line))


async def connected(started: Mapping[str, Any]) -> Programs:
    """Connect to what a launcher says it started.

    Raises:
        IncompleteError: A program is gone already.
    """
    sockets = {name: Path(path) for name, path in started["sockets"].items()}
    doors = {
        Mediation.CANONICAL: await Channel.open("sink", sockets["sink-canonical"]),
        Mediation.EXACT: await Channel.open("sink (exact)", sockets["sink-exact"]),
        Mediation.DIRECT: await Channel.open("direct adapter", sockets["direct"]),
    }
    world = await Channel.open("world", sockets["world"])
    observer = await Channel.open("observer", sockets["observer"])
    users = {
        "runner": os.geteuid(),
        "world": world.user,
        "sink-canonical": doors[Mediation.CANONICAL].user,
        "sink-exact": doors[Mediation.EXACT].user,
        "direct": doors[Mediation.DIRECT].user,
        "observer": observer.user,
    }
    return Programs(world, observer, doors, started["pids"], users)


async def to_the_end(end: Coroutine[Any, Any, None]) -> None:
    """End the launcher and with it every program, however often this is cancelled meanwhile."""
    ending = asyncio.ensure_future(end)
    cancelled: asyncio.CancelledError | None = None
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError as error:
            # Whoever cancels wants this over, not programs that nobody will ever end.
            cancelled = error
    ending.result()
    if cancelled is not None:
        raise cancelled


async def _end(launcher: asyncio.subprocess.Process) -> None:
    if launcher.stdin is not None:
        launcher.stdin.close()
    with suppress(ProcessLookupError):
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await launcher.wait()
        except TimeoutError:
            launcher.kill()
            await launcher.wait()
