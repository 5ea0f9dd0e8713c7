"""A house of two bundles, as a file would describe it, and the states in which it stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hardware.homeassistant.access import Access
from hardware.homeassistant.house import House
from tests.unit.homeassistant.lying_home import TOKEN, LyingHome

if TYPE_CHECKING:
    from collections.abc import Mapping

EPISODE = "sensor.bench_episode"
BOLT = "sensor.bolt"
SETPOINT = "sensor.setpoint"
LINK = "sensor.camera_link"
HAPPENED = "event.camera"
RECORD = {"name": "alarm", "value": "off", "reported_at": "2026-01-01T00:00:00Z", "version": 1}


def described(**changes: Any) -> dict[str, Any]:
    temperature = {
        "key": "temperature",
        "kind": "number",
        "minimum": "5",
        "maximum": "30",
        "step": "0.5",
        "unit": "C",
    }
    return {
        "schema": "retire.house/v1",
        "bench": True,
        "temperature_unit": "\N{DEGREE SIGN}C",
        "episode": EPISODE,
        "report_seconds": 1.0,
        "devices": {
            "lock.front_door": {
                "entity": "lock.front_door",
                "services": {
                    "lock.unlock": {"service": "lock.unlock"},
                    "lock.lock": {"service": "lock.lock"},
                },
                "variables": {"position": {"report": BOLT}},
            },
            "climate.den": {
                "entity": "climate.den",
                "services": {
                    "climate.set_temperature": {
                        "service": "climate.set_temperature",
                        "parameters": {"temperature": temperature},
                    }
                },
                "variables": {"temperature": {"attribute": "temperature", "report": SETPOINT}},
            },
            "camera.den": {
                "entity": "camera.den",
                "services": {
                    "camera.open_stream": {
                        "service": "camera.open_stream",
                        "parameters": {
                            "recipient": {
                                "key": "recipient",
                                "kind": "text",
                                "choices": ["display.a", "display.b"],
                            }
                        },
                    }
                },
                "link": LINK,
                "events": HAPPENED,
            },
        },
        "bundle_devices": {"DOOR": ["lock.front_door", "climate.den"], "VIEW": ["camera.den"]},
        "records": {"DOOR": {"facts/alarm": "sensor.door_facts_alarm"}, "VIEW": {}},
        **changes,
    }


def small_house(**changes: Any) -> House:
    return House.model_validate_json(json.dumps(described(**changes)))


def furnish(home: LyingHome) -> None:
    """Put the house into the state in which an attempt begins."""
    for entity, state, attributes in (
        (EPISODE, "none", {}),
        (BOLT, "locked", {}),
        (SETPOINT, "21", {}),
        (LINK, "alive", {}),
        (HAPPENED, "unknown", {"event_types": ["stream_opened"]}),
        ("lock.front_door", "locked", {}),
        ("climate.den", "heat", {"temperature": 21.0, "min_temp": 5, "max_temp": 28}),
        ("camera.den", "idle", {}),
        ("sensor.door_facts_alarm", "off", {"record": RECORD}),
    ):
        home.set(entity, state, attributes)
    home.registry = {entity: f"own-{entity}" for entity in home.states}
    home.beating = {BOLT, SETPOINT, LINK}


def access(home: LyingHome, changes: Mapping[str, Any] | None = None) -> Access:
    return Access(home.url, TOKEN, small_house(**(changes or {})))
