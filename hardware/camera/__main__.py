"""``python -m hardware.camera --port P``: the stand-in camera as a process of its own.

It listens on loopback. Its mode can be changed while it runs: write one of the words into the
control file. It ends when its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.camera.device import Boundary, Device, Manner, Mode
from hardware.wire import listening

if TYPE_CHECKING:
    from collections.abc import Callable


def mode_from(control: Path | None, start: Mode) -> Callable[[], Mode]:
    """Return how the mode is asked: from the control file where it holds a mode."""

    def mode() -> Mode:
        if control is not None:
            # A file that is being written holds no whole word for a moment.
            with suppress(OSError, ValueError):
                return Mode(control.read_text("utf-8").strip())
        return start

    return mode


async def _run(arguments: argparse.Namespace) -> None:
    manner = Manner(arguments.per_second, arguments.boundary, lengths=not arguments.no_lengths)
    device = Device(manner, mode_from(arguments.control, arguments.mode))
    listen = partial(asyncio.start_server, host="127.0.0.1", port=arguments.port)
    async with listening(device.serve, listen) as server:
        port = server.sockets[0].getsockname()[1]
        ready = {"url": f"http://127.0.0.1:{port}", "port": port, "pid": os.getpid()}
        os.write(sys.stdout.fileno(), json.dumps(ready).encode() + b"\n")
        stop = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _on_input, stop)
        await stop.wait()


def _on_input(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        stop.set()


def main() -> int:
    """Parse arguments and serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m hardware.camera", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port")
    parser.add_argument("--per-second", type=float, default=10.0, help="pictures per second")
    parser.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.LIVE)
    parser.add_argument("--control", type=Path, help="a file whose one word is the mode")
    parser.add_argument("--boundary", type=Boundary, choices=list(Boundary), default=Boundary.PLAIN)
    parser.add_argument("--no-lengths", action="store_true", help="parts without Content-Length")
    arguments = parser.parse_args()
    try:
        asyncio.run(_run(arguments))
    except OSError as error:
        print(f"camera: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
