"""``python -m observer``: the observer as a process of its own.

It loads effect files from bundle folders by itself and reads ground truth through a read-only
sensor. It holds nothing that can act.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.homeassistant.access import access_of, add_arguments
from hardware.homeassistant.house import HouseError
from hardware.sense.stub import StubWorldSensor
from observer.effect import load_effect
from observer.port import SensorError
from observer.record import RecordError, RecordFile, digest, load_or_create_key
from observer.recorder import Observer, Watched
from observer.sighting import EvidenceClass
from observer.strict_yaml import DocumentError
from observer.wire import listening, serve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observer.port import Sensor


def _load(folders: list[Path]) -> dict[str, Watched]:
    watched = {}
    for folder in folders:
        path = folder / "effect.yaml"
        data = path.read_bytes()
        contract = digest((folder / "contract.yaml").read_bytes())
        watched[digest(data)] = Watched(load_effect(data, str(path)), digest(data), contract)
    return watched


def _sensor(arguments: argparse.Namespace, watched: Mapping[str, Watched]) -> Sensor:
    """Return what reads: the stub world's database, a house, or a camera bench's recipient."""
    ground = StubWorldSensor(arguments.ground_truth)
    if arguments.home_assistant is not None:
        from hardware.sense.homeassistant import HomeAssistantSensor  # noqa: PLC0415  # an extra

        bundles = {item.contract_digest: item.effect.bundle for item in watched.values()}
        journal = arguments.state / "journal.jsonl"
        sensor = HomeAssistantSensor(access_of(arguments), ground, bundles, journal)
        sensor.start()
        return sensor
    if arguments.camera is None:
        return ground
    from hardware.sense.camera import CameraSensor, CameraSetup  # noqa: PLC0415  # Pillow

    return CameraSensor(ground, CameraSetup.read(arguments.camera))


async def _run(arguments: argparse.Namespace) -> None:
    key = load_or_create_key(arguments.state / "key")
    record = RecordFile(arguments.state / "record.jsonl", key)
    watched = _load(arguments.bundles)
    sensor = _sensor(arguments, watched)
    observer = Observer(
        watched,
        sensor,
        record,
        key,
        arguments.settle_milliseconds / 1000,
        state_evidence=(
            EvidenceClass.TARGET_STATE_READ
            if arguments.home_assistant is None
            else EvidenceClass.RELATED_STATE_READ
        ),
    )
    observer.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(arguments.life, stop.set)
    listen = partial(asyncio.start_unix_server, path=arguments.socket, limit=2**21)
    with closing(record), closing(sensor):
        async with listening(partial(serve, handle=observer.answer), listen):
            await stop.wait()


def main() -> int:
    """Parse arguments and serve until the launcher goes away."""
    parser = argparse.ArgumentParser(prog="python -m observer", description=__doc__)
    parser.add_argument("--bundles", type=Path, nargs="+", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--ground-truth", type=Path, required=True, help="read-only database")
    parser.add_argument("--settle-milliseconds", type=int, default=2)
    add_arguments(parser)
    parser.add_argument("--camera", type=Path, help="setup file of a camera bench")
    parser.add_argument("--life", type=int, required=True, help="descriptor; readable means stop")
    arguments = parser.parse_args()
    try:
        asyncio.run(_run(arguments))
    except (DocumentError, RecordError, SensorError, HouseError, OSError) as error:
        print(f"observer: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
