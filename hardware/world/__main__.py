"""``python -m hardware.world``: the stub world as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import socket
import sqlite3
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardware.wire import serve
from hardware.world.bundles import load_templates
from hardware.world.store import WorldStore
from hardware.world.world import StubWorld
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Handler = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


async def _connected(
    handle: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    # Cancelled only when the program stops; a cancelled connection would be reported as an error.
    with suppress(asyncio.CancelledError):
        await serve(reader, writer, handle)


async def _run(arguments: argparse.Namespace) -> None:
    store = WorldStore(arguments.state / "world.sqlite")
    world = StubWorld(load_templates(arguments.bundles), store)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(arguments.life, stop.set)
    faces = [
        await asyncio.open_connection(sock=socket.socket(fileno=fd), limit=2**22)
        for fd in arguments.act_face
    ]
    acting = [
        asyncio.ensure_future(serve(reader, writer, world.act_face)) for reader, writer in faces
    ]
    server = await asyncio.start_unix_server(
        partial(_connected, world.reset_face), path=arguments.socket, limit=2**22
    )
    try:
        async with server:
            await stop.wait()
    finally:
        for task in acting:
            task.cancel()
        store.close()


def main() -> int:
    """Parse arguments and serve until the launcher goes away."""
    parser = argparse.ArgumentParser(prog="python -m hardware.world", description=__doc__)
    parser.add_argument("--bundles", type=Path, nargs="+", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True, help="the reset face")
    parser.add_argument("--act-face", type=int, nargs="+", required=True, help="descriptors")
    parser.add_argument("--life", type=int, required=True, help="descriptor; readable means stop")
    arguments = parser.parse_args()
    try:
        asyncio.run(_run(arguments))
    except (DocumentError, OSError, sqlite3.Error) as error:
        print(f"world: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
