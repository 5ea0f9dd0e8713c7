"""``python -m hardware.homeassistant``: a local Home Assistant that holds the house of bundles.

With ``--camera`` it holds one camera instead. It writes a configuration, starts ``hass`` from a
virtual environment that has it, waits until it runs, and prints one JSON line: address, instance
file, token files, process id. When standard input closes, Home Assistant ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.homeassistant.camera import ENTITY, write_bench, write_camera
from hardware.homeassistant.configure import Written, write_configuration, write_private
from hardware.homeassistant.errors import HomeAssistantError
from hardware.homeassistant.house import HouseError
from hardware.homeassistant.layout import EPISODE, house_of, layout_of, read_bundles
from hardware.homeassistant.running import StartError, held, program_of, running, until_ready
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    from collections.abc import Coroutine

_ROOT = Path(__file__).resolve().parents[2]
_INTEGRATION = _ROOT / "deploy" / "homeassistant" / "custom_components" / "retire_bench"


@dataclass(frozen=True, slots=True)
class Prepared:
    """An instance before its start.

    Attributes:
        url: Where it will answer.
        written: Its configuration and tokens.
        instance: The file that tells others of it.
        entity: There as soon as it can be used.
        reader: Whose token is used to look.
    """

    url: str
    written: Written
    instance: Path
    entity: str
    reader: str

    def line(self, pid: int) -> bytes:
        """Return the line that is printed when it runs."""
        ready = {
            "url": self.url,
            "instance": str(self.instance),
            "tokens": {name: str(path) for name, path in self.written.tokens.items()},
            "entity": self.entity,
            "pid": pid,
        }
        return json.dumps(ready).encode() + b"\n"


async def _run(arguments: argparse.Namespace) -> int:
    program = program_of(arguments.environment)
    state = arguments.state.resolve()
    with held(state):
        prepared = _prepared(arguments, state)
        stop = _ending()
        folder = prepared.written.folder
        async with running(program, folder, state / "log") as hass:
            token = prepared.written.tokens[prepared.reader].read_text()
            starting = until_ready(hass, prepared.url, token, prepared.entity)
            if not await _before(starting, stop):
                return 0
            os.write(sys.stdout.fileno(), prepared.line(hass.pid))
            return 1 if await _before(hass.wait(), stop) else 0


def _prepared(arguments: argparse.Namespace, state: Path) -> Prepared:
    port = _free_port(arguments.port)
    url = f"http://127.0.0.1:{port}"
    now = datetime.now(UTC)  # noqa: TID251  # a program's own clock
    if arguments.camera is not None:
        written = write_camera(state, arguments.camera, port, now)
        instance = write_bench(state, url, arguments.camera, written)
        return Prepared(url, written, instance, ENTITY, "observer")
    bundles = read_bundles(arguments.bundles)
    house = house_of(bundles)
    written = write_configuration(state, _INTEGRATION, layout_of(bundles, house), port, now)
    write_private(state / "house.json", house.model_dump_json(by_alias=True, indent=1))
    instance = write_private(state / "instance.json", _instance(url, written))
    return Prepared(url, written, instance, EPISODE, "world")


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


def _ending() -> asyncio.Event:
    """Return what is set when standard input closes or a signal asks for the end."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_reader(sys.stdin.fileno(), stop.set)
    return stop


async def _before(work: Coroutine[None, None, object], stop: asyncio.Event) -> bool:
    """Return whether work came to its end before the stop; otherwise it is cancelled."""
    doing, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait((doing, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in (doing, stopping):
        task.cancel()
    if stop.is_set():
        await asyncio.gather(doing, return_exceptions=True)
        return False
    await doing
    return True


def _free_port(wanted: int) -> int:
    """Return the port that is wanted, any with 0.

    Raises:
        StartError: Another program has it; Home Assistant itself would go on without a port.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as error:
            raise StartError(
                f"port {wanted} cannot be used: {error.strerror}; give another, or 0 for any"
            ) from error
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
    holds = parser.add_mutually_exclusive_group()
    holds.add_argument("--bundles", type=Path, nargs="+", default=panel)
    holds.add_argument("--camera", help="address of a camera: an instance with that camera alone")
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
