"""A stand-in camera and a Home Assistant that shows it: two programs with one life."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.domain.errors import IncompleteError, InputError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator
    from pathlib import Path

_STOP_SECONDS = 40.0
"""Longer than Home Assistant's own starter waits for it."""


@dataclass(frozen=True, slots=True)
class HomeSettings:
    """How a home with a stand-in camera is started.

    Attributes:
        state: Folder of the home; made if it is not there, readable by its user alone.
        port: Home Assistant's port on loopback; 0 takes any free one.
        environment: Virtual environment that has Home Assistant, or None for the usual place.
    """

    state: Path
    port: int = 0
    environment: Path | None = None

    @property
    def control(self) -> Path:
        """The file whose one word says how the camera behaves."""
        return self.state / "camera.mode"


@dataclass(frozen=True, slots=True)
class CameraHome:
    """A home that runs.

    Attributes:
        url: Home Assistant's address.
        entity: The camera in Home Assistant.
        camera: The camera's own address.
        programs: The two programs, by name.
    """

    url: str
    entity: str
    camera: str
    programs: dict[str, Process]

    async def ended(self) -> str:
        """Wait until a program ends by itself; returns its name."""
        waiting = {asyncio.ensure_future(item.wait()): name for name, item in self.programs.items()}
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return waiting[done.pop()]


@asynccontextmanager
async def camera_home(settings: HomeSettings) -> AsyncIterator[CameraHome]:
    """Start camera and Home Assistant, and end both on the way out.

    Token files and the instance file ``instance.yaml`` are written by the program that starts
    Home Assistant, into the folder; this process reads none of them.

    Raises:
        InputError: The folder cannot be used, or a program cannot be started as asked.
        IncompleteError: A program did not start; its own words are on standard error.
    """
    _prepare(settings)
    async with AsyncExitStack() as stack:
        options = ["--control", str(settings.control)]
        camera, device = await stack.enter_async_context(_program("hardware.camera", options))
        options = ["--state", str(settings.state), "--port", str(settings.port)]
        options += ["--camera", device["url"]]
        if settings.environment is not None:
            options += ["--environment", str(settings.environment)]
        hass, home = await stack.enter_async_context(_program("hardware.homeassistant", options))
        yield CameraHome(
            home["url"],
            home["entity"],
            device["url"],
            {"the stand-in camera": camera, "Home Assistant": hass},
        )


def _prepare(settings: HomeSettings) -> None:
    try:
        settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.control.write_text("live\n", "utf-8")
    except OSError as error:
        raise InputError(
            f"the folder cannot be used: {error.strerror}",
            where=str(settings.state),
            mend="Name a folder that you may write, or a new one",
        ) from error


@asynccontextmanager
async def _program(module: str, options: list[str]) -> AsyncIterator[tuple[Process, Any]]:
    """Start a program, and hand out its one line. The end of its input ends it."""
    # A session of its own: an interrupt at the terminal ends it in order, through this program.
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process, await _ready(process, module)
    finally:
        await _end(process)


async def _ready(process: Process, module: str) -> dict[str, Any]:
    line = await process.stdout.readline() if process.stdout is not None else b""
    if line:
        ready: dict[str, Any] = json.loads(line)
        return ready
    code = await process.wait()
    kind = InputError if code == 2 else IncompleteError
    raise kind(f"{module} did not start", mend="Its message stands above")


async def _end(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    with suppress(ProcessLookupError):
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
