"""Home Assistant as a process: started from its own environment, waited for, and ended."""

from __future__ import annotations

import asyncio
import fcntl
import os
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

from hardware.homeassistant.client import HomeAssistantClient
from hardware.homeassistant.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

_READY_SECONDS = 180.0
_STOP_SECONDS = 20.0


class StartError(Exception):
    """Home Assistant did not start; the message says why and what to do."""


def program_of(environment: Path) -> Path:
    """Return the program ``hass`` of a virtual environment.

    Raises:
        StartError: It has none; says how to make it.
    """
    program = environment / "bin" / "hass"
    if not program.exists():
        raise StartError(
            f"{program} is not there; make the environment first, with Python 3.11: "
            f"python3 -m venv {environment} && {environment}/bin/pip install --no-deps "
            "-r deploy/homeassistant/requirements.txt"
        )
    return program


@contextmanager
def held(state: Path) -> Iterator[None]:
    """Hold a folder: of two instances in it, the second would take the tokens of the first.

    Raises:
        StartError: Another program holds it.
        OSError: It cannot be made.
    """
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StartError(
                f"a Home Assistant runs in {state} already; end it or name another folder"
            ) from error
        yield
    finally:
        os.close(descriptor)


@asynccontextmanager
async def running(
    program: Path, configuration: Path, log: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start ``hass`` over a configuration folder, and end it on the way out."""
    with log.open("wb") as output:
        hass = await asyncio.create_subprocess_exec(
            str(program),
            "--config",
            str(configuration),
            "--skip-pip",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield hass
    finally:
        await _stop(hass)


async def until_ready(hass: asyncio.subprocess.Process, url: str, token: str, entity: str) -> None:
    """Wait until Home Assistant runs and has an entity.

    Raises:
        StartError: It ended, or it does not get there in time.
        HomeAssistantError: It answers, and not as it must.
    """
    client = HomeAssistantClient(url, token, 2.0)
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while not await _is_ready(client, entity):
                if hass.returncode is not None:
                    raise StartError(f"hass ended with code {hass.returncode}; see its log")
                await asyncio.sleep(0.2)
    except TimeoutError as error:
        raise StartError(f"hass was not running after {_READY_SECONDS:g} seconds") from error
    finally:
        await client.close()


async def _is_ready(client: HomeAssistantClient, entity: str) -> bool:
    try:
        config = await client.config()
        return config.state == "RUNNING" and entity in await client.states()
    except UnreachableError:
        return False


async def _stop(hass: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        hass.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await hass.wait()
        except TimeoutError:
            hass.kill()
            await hass.wait()
