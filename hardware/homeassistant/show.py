"""``python -m hardware.homeassistant.show``: what a house shows and reports, as one JSON object.

It reads with the observer's token, which can do nothing else.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.homeassistant.access import read_token
from hardware.homeassistant.client import HomeAssistantClient
from hardware.homeassistant.errors import HomeAssistantError
from hardware.homeassistant.house import HouseError, load_house, load_instance
from hardware.homeassistant.reading import text_of, usable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardware.homeassistant.house import House, HouseDevice
    from hardware.homeassistant.reading import EntityState


async def read_house(path: Path) -> dict[str, object]:
    """Return the attempt, every device and every record of the house of an instance file.

    Raises:
        HouseError: A file cannot be used.
        HomeAssistantError: Home Assistant gave no usable answer.
    """
    instance = load_instance(path)
    house = load_house(Path(instance.house))
    client = HomeAssistantClient(instance.url, read_token(Path(instance.tokens.observer)))
    try:
        return described(house, await client.states())
    finally:
        await client.close()


def described(house: House, states: Mapping[str, EntityState]) -> dict[str, object]:
    """Return a house in plain words: what is shown, what is reported, what cannot be read."""
    return {
        "attempt": _state(states, house.episode),
        "devices": {key: _device(item, states) for key, item in house.devices.items()},
        "records": {
            bundle: {place: _state(states, entity) for place, entity in records.items()}
            for bundle, records in house.records.items()
        },
    }


def _device(device: HouseDevice, states: Mapping[str, EntityState]) -> dict[str, object]:
    found = states.get(device.entity)
    variables = {
        name: {
            "shown": variable.shown(found) if found is not None else "missing",
            "reported": _state(states, variable.report),
        }
        for name, variable in device.variables.items()
    }
    event = states.get(device.events) if device.events is not None else None
    last = event.attributes.get("event_type") if event is not None else None
    return {
        "entity": device.entity,
        "state": str(usable(found)) if found is None else found.state,
        "variables": variables,
        "last_event": last,
    }


def _state(states: Mapping[str, EntityState], entity: str) -> str:
    found = states.get(entity)
    return str(usable(found)) if found is None else text_of(found.state)


def main() -> int:
    """Read once and print."""
    parser = argparse.ArgumentParser(
        prog="python -m hardware.homeassistant.show", description=__doc__
    )
    parser.add_argument("--instance", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        found = asyncio.run(read_house(arguments.instance))
    except (HouseError, HomeAssistantError) as error:
        print(f"homeassistant: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 3 if isinstance(error, HomeAssistantError) else 2
    os.write(sys.stdout.fileno(), json.dumps(found).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
