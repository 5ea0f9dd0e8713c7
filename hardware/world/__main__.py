"""``python -m hardware.world``: the world as a process of its own.

The stub world, or with ``--home-assistant`` a house in Home Assistant, which one run has for itself
as long as it lasts.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import socket
import sqlite3
import sys
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.homeassistant.access import access_of, add_arguments
from hardware.homeassistant.client import HomeAssistantClient
from hardware.homeassistant.errors import HomeAssistantError
from hardware.homeassistant.house import HouseError
from hardware.wire import listening, serve
from hardware.world.bundles import digest, load_templates
from hardware.world.homeassistant import HomeAssistantWorld
from hardware.world.store import WorldStore
from hardware.world.world import StubWorld
from sink.contract import load_contract
from sink.strict_yaml import DocumentError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hardware.world.world import World


@asynccontextmanager
async def _world(arguments: argparse.Namespace, store: WorldStore) -> AsyncIterator[World]:
    templates = load_templates(arguments.bundles)
    if arguments.home_assistant is None:
        yield StubWorld(templates, store)
        return
    access = access_of(arguments)
    contracts = [folder / "contract.yaml" for folder in arguments.bundles]
    read = {path: path.read_bytes() for path in contracts}
    ids = {digest(data): load_contract(data, str(path)).bundle for path, data in read.items()}
    client = HomeAssistantClient(access.url, access.token)
    with arguments.house.open("rb") as house:
        try:
            # A house is one place: two runs in it would see each other's effects.
            fcntl.flock(house, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HouseError(f"another run uses the house {arguments.house}") from error
        try:
            yield HomeAssistantWorld(templates, ids, store, access.house, client, _now)
        finally:
            await client.close()


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251  # the shell's clock


async def _run(arguments: argparse.Namespace) -> None:
    with closing(WorldStore(arguments.state / "world.sqlite")) as store:
        async with _world(arguments, store) as world:
            await _serve(arguments, world)


async def _serve(arguments: argparse.Namespace, world: World) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(arguments.life, stop.set)
    faces = [
        await asyncio.open_connection(sock=socket.socket(fileno=fd), limit=2**22)
        for fd in arguments.act_face
    ]
    acting = [
        asyncio.ensure_future(serve(reader, writer, world.act_face)) for reader, writer in faces
    ]
    listen = partial(asyncio.start_unix_server, path=arguments.socket, limit=2**22)
    try:
        async with listening(partial(serve, handle=world.reset_face), listen):
            await stop.wait()
    finally:
        for task in acting:
            task.cancel()
        await asyncio.gather(*acting, return_exceptions=True)


def main() -> int:
    """Parse arguments and serve until the launcher goes away."""
    parser = argparse.ArgumentParser(prog="python -m hardware.world", description=__doc__)
    parser.add_argument("--bundles", type=Path, nargs="+", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True, help="the reset face")
    parser.add_argument("--act-face", type=int, nargs="+", required=True, help="descriptors")
    add_arguments(parser)
    parser.add_argument("--life", type=int, required=True, help="descriptor; readable means stop")
    arguments = parser.parse_args()
    try:
        asyncio.run(_run(arguments))
    except (DocumentError, HouseError, HomeAssistantError, OSError, sqlite3.Error) as error:
        print(f"world: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
