"""``python -m hardware.homeassistant``: a local Home Assistant that holds the house of bundles.

It writes a configuration, starts ``hass`` from a virtual environment that has it, waits until it
runs, and prints one JSON line: address, instance file, token files, process id. When standard
input closes, Home Assistant ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from hardware.homeassistant.client import HomeAssistantClient
from hardware.homeassistant.configure import Written, write_configuration, write_private
from hardware.homeassistant.errors import HomeAssistantError, UnreachableError
from hardware.homeassistant.house import HouseError
from hardware.homeassistant.layout import EPISODE, house_of, layout_of, read_bundles
from sink.strict_yaml import DocumentError

_ROOT = Path(__file__).resolve().parents[2]
_INTEGRATION = _ROOT / "deploy" / "homeassistant" / "custom_components" / "retire_bench"
_READY_SECONDS = 180.0
_STOP_SECONDS = 20.0


class StartError(Exception):
    """Home Assistant did not start; the message says why and what to do."""


async def _run(arguments: argparse.Namespace) -> int:
    port = arguments.port or _free_port()
    state = arguments.state.resolve()
    bundles = read_bundles(arguments.bundles)
    house = house_of(bundles)
    now = datetime.now(UTC)  # noqa: TID251  # a program's own clock
    written = write_configuration(state, _INTEGRATION, layout_of(bundles, house), port, now)
    write_private(state / "house.json", house.model_dump_json(by_alias=True, indent=1))
    url = f"http://127.0.0.1:{port}"
    instance = write_private(state / "instance.json", _instance(url, written))
    with (state / "log").open("wb") as log:
        hass = await asyncio.create_subprocess_exec(
            str(_program(arguments.environment)),
            "--config",
            str(written.folder),
            "--skip-pip",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        await _until_running(hass, url, written.tokens["world"].read_text())
        ready = {
            "url": url,
            "instance": str(instance),
            "tokens": {name: str(path) for name, path in written.tokens.items()},
            "pid": hass.pid,
        }
        os.write(sys.stdout.fileno(), json.dumps(ready).encode() + b"\n")
        return await _until_end(hass)
    finally:
        await _stop(hass)


def _instance(url: str, written: Written) -> str:
    return json.dumps(
        {
            "schema": "retire.homeassistant/v1",
            "url": url,
            "house": "house.json",
            "tokens": {name: path.name for name, path in written.tokens.items()},
        },
        indent=1,
    )


def _program(environment: Path) -> Path:
    program = environment / "bin" / "hass"
    if not program.exists():
        raise StartError(
            f"{program} is not there; make the environment first: "
            f"python3 -m venv {environment} && {environment}/bin/pip install --no-deps "
            "-r deploy/homeassistant/requirements.txt"
        )
    return program


async def _until_running(hass: asyncio.subprocess.Process, url: str, token: str) -> None:
    client = HomeAssistantClient(url, token, 2.0)
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while not await _is_running(client):
                if hass.returncode is not None:
                    raise StartError(f"hass ended with code {hass.returncode}; see its log")
                await asyncio.sleep(0.2)
    except TimeoutError as error:
        raise StartError(f"hass was not running after {_READY_SECONDS:g} seconds") from error
    finally:
        await client.close()


async def _is_running(client: HomeAssistantClient) -> bool:
    try:
        config = await client.config()
        return config.get("state") == "RUNNING" and EPISODE in await client.states()
    except UnreachableError:
        return False


async def _until_end(hass: asyncio.subprocess.Process) -> int:
    """Wait until standard input closes (0) or Home Assistant ends by itself (1)."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_reader(sys.stdin.fileno(), stop.set)
    waiting = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(hass.wait())]
    _, pending = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return 0 if stop.is_set() else 1


async def _stop(hass: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        hass.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await hass.wait()
        except TimeoutError:
            hass.kill()
            await hass.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> int:
    """Start, print the line, stay until standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m hardware.homeassistant", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="folder of this instance")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument(
        "--environment",
        type=Path,
        default=_ROOT / ".homeassistant",
        help="virtual environment that has Home Assistant",
    )
    panel = sorted(path.parent for path in (_ROOT / "bundles" / "panel").glob("*/world.yaml"))
    parser.add_argument("--bundles", type=Path, nargs="+", default=panel)
    arguments = parser.parse_args()
    try:
        return asyncio.run(_run(arguments))
    except BrokenPipeError:
        return 0  # whoever started it is gone
    except (StartError, HouseError, HomeAssistantError, DocumentError, OSError) as error:
        print(f"homeassistant: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2


if __name__ == "__main__":
    sys.exit(main())
