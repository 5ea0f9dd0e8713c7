"""``python -m observer``: the observer as a process of its own.

It loads effect files from bundle folders by itself and reads ground truth through a read-only
sensor. It holds nothing that can act.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from hardware.sense.stub import StubWorldSensor
from observer.effect import load_effect
from observer.record import RecordError, RecordFile, digest, load_or_create_key
from observer.recorder import Observer, Watched
from observer.strict_yaml import DocumentError
from observer.wire import serve


def _load(folders: list[Path]) -> dict[str, Watched]:
    watched = {}
    for folder in folders:
        path = folder / "effect.yaml"
        data = path.read_bytes()
        contract = digest((folder / "contract.yaml").read_bytes())
        watched[digest(data)] = Watched(load_effect(data, str(path)), digest(data), contract)
    return watched


async def _connected(
    observer: Observer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    # Cancelled only when the program stops; a cancelled connection would be reported as an error.
    with suppress(asyncio.CancelledError):
        await serve(reader, writer, observer.answer)


async def _run(arguments: argparse.Namespace) -> None:
    record = RecordFile(arguments.state / "record.jsonl")
    observer = Observer(
        _load(arguments.bundles),
        StubWorldSensor(arguments.ground_truth),
        record,
        load_or_create_key(arguments.state / "key"),
        arguments.settle_milliseconds / 1000,
    )
    observer.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(arguments.life, stop.set)
    server = await asyncio.start_unix_server(
        partial(_connected, observer), path=arguments.socket, limit=2**21
    )
    try:
        async with server:
            await stop.wait()
    finally:
        record.close()


def main() -> int:
    """Parse arguments and serve until the launcher goes away."""
    parser = argparse.ArgumentParser(prog="python -m observer", description=__doc__)
    parser.add_argument("--bundles", type=Path, nargs="+", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--ground-truth", type=Path, required=True, help="read-only database")
    parser.add_argument("--settle-milliseconds", type=int, default=2)
    parser.add_argument("--life", type=int, required=True, help="descriptor; readable means stop")
    arguments = parser.parse_args()
    try:
        asyncio.run(_run(arguments))
    except (DocumentError, RecordError, OSError) as error:
        print(f"observer: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
