"""The programs of a camera bench, as the runner reaches them: started by it, never imported."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retire.domain.cell import Mediation
from retire.domain.errors import IncompleteError, InputError
from retire.runner.wire import Channel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

_PREFLIGHT_SECONDS = 60.0
_READY_SECONDS = 150.0
_STOP_SECONDS = 15.0
_PROGRAM = (sys.executable, "-m", "hardware.bench")


@dataclass(frozen=True, slots=True)
class BenchPrograms:
    """Channels to the running programs, and the folder in which they keep their state."""

    world: Channel
    observer: Channel
    doors: Mapping[Mediation, Channel]
    state: Path
    pids: Mapping[str, int]

    def requests(self, mediation: Mediation, attempt: str) -> list[dict[str, Any]]:
        """Return what the acting program of a door sent to Home Assistant for an attempt."""
        name = "sink-canonical" if mediation is Mediation.CANONICAL else "direct"
        return _lines(self.state / name / "requests.jsonl", attempt)

    def evidence(self, attempt: str) -> dict[str, Any] | None:
        """Return what the observer noted of an attempt's pictures, or None."""
        found = _lines(self.state / "observer" / "evidence.jsonl", attempt)
        return found[-1] if found else None


def _lines(path: Path, attempt: str) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [line for line in lines if line["attempt"] == attempt]


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How the programs of a bench are started.

    Attributes:
        instance: The instance file; the programs read it, this process does not.
        bundles: The folder of the bundle.
        state: Where the programs keep their state.
        frames: Pictures that end a session.
        keep: Folder for the pictures themselves, or None.
        unmediated: Whether a program without a monitor is started.
    """

    instance: Path
    bundles: Sequence[Path]
    state: Path
    frames: int
    keep: Path | None = None
    unmediated: bool = False

    def arguments(self) -> list[str]:
        """Return the program's arguments."""
        given = ["run", "--instance", str(self.instance), "--state", str(self.state)]
        given += ["--frames", str(self.frames)]
        if self.keep is not None:
            given += ["--keep", str(self.keep)]
        if self.unmediated:
            given.append("--unmediated")
        return [*given, "--bundles", *(str(path) for path in self.bundles)]


async def preflight(instance: Path) -> dict[str, Any]:
    """Have the bench looked at; returns the steps and what the instance file says of itself.

    Raises:
        InputError: The instance file cannot be used.
        IncompleteError: The preflight gave no answer.
    """
    process = await asyncio.create_subprocess_exec(
        *_PROGRAM,
        "preflight",
        "--instance",
        str(instance),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_PREFLIGHT_SECONDS):
            answer, said = await process.communicate()
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise IncompleteError(
            f"the preflight gave no answer within {_PREFLIGHT_SECONDS:g} seconds"
        ) from error
    if process.returncode == 2:
        raise InputError(_last_line(said) or "the instance cannot be used")
    try:
        found: dict[str, Any] = json.loads(answer)
    except ValueError as error:
        raise IncompleteError(
            f"the preflight gave no answer: {_last_line(said)}",
            mend="Is the extra there? pip install 'retire[homeassistant]'",
        ) from error
    return found


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


@asynccontextmanager
async def bench_programs(settings: BenchSettings) -> AsyncIterator[BenchPrograms]:
    """Start the programs, connect, and end everything on the way out.

    Raises:
        IncompleteError: The programs did not start; their own words are on standard error.
    """
    launcher = await asyncio.create_subprocess_exec(
        *_PROGRAM,
        *settings.arguments(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    programs: BenchPrograms | None = None
    try:
        programs = await _connect(launcher, settings.state)
        yield programs
    finally:
        if programs is not None:
            for channel in (programs.world, programs.observer, *programs.doors.values()):
                channel.close()
        await _stop(launcher)


async def _connect(launcher: asyncio.subprocess.Process, state: Path) -> BenchPrograms:
    if launcher.stdout is None:
        raise IncompleteError("the launcher has no output")
    try:
        async with asyncio.timeout(_READY_SECONDS):
            line = await launcher.stdout.readline()
    except TimeoutError:
        line = b""
    if not line:
        raise IncompleteError(
            "the programs of the bench did not start", mend="Their message stands above"
        )
    started = json.loads(line)
    sockets = {name: Path(path) for name, path in started["sockets"].items()}
    doors = {Mediation.CANONICAL: await Channel.open("sink", sockets["sink-canonical"])}
    if "direct" in sockets:
        doors[Mediation.DIRECT] = await Channel.open("direct adapter", sockets["direct"])
    world = await Channel.open("world", sockets["world"])
    observer = await Channel.open("observer", sockets["observer"])
    return BenchPrograms(world, observer, doors, state, started["pids"])


async def _stop(launcher: asyncio.subprocess.Process) -> None:
    if launcher.stdin is not None:
        launcher.stdin.close()
    with suppress(ProcessLookupError):
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await launcher.wait()
        except TimeoutError:
            launcher.kill()
            await launcher.wait()
