"""A house for benches: real Home Assistant entities over simulated devices.

The layout is a JSON file that ``python -m hardware.homeassistant`` writes from bundle folders.
Two services, for administrators alone: ``reset`` puts devices and records into the state of an
episode, ``fault`` makes one device lie.
"""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import voluptuous as vol
from custom_components.retire_bench.device import Device, Fault
from custom_components.retire_bench.entities import (
    KINDS,
    BenchDevice,
    Episode,
    Happening,
    Record,
    Report,
)
from homeassistant.helpers import config_validation as cv
from homeassistant.helpers.entity_component import EntityComponent
from homeassistant.helpers.event import async_track_time_interval
from homeassistant.helpers.service import async_register_admin_service

if TYPE_CHECKING:
    from custom_components.retire_bench.device import Layout, OwnService
    from custom_components.retire_bench.entities import Controlling
    from homeassistant.core import HomeAssistant, ServiceCall
    from homeassistant.helpers.typing import ConfigType

_LOGGER = logging.getLogger(__name__)

DOMAIN = "retire_bench"
CONFIG_SCHEMA = vol.Schema(
    {DOMAIN: vol.Schema({vol.Required("layout"): cv.string})}, extra=vol.ALLOW_EXTRA
)
REPORT_EVERY = timedelta(milliseconds=250)
RESETTING = "resetting"


class Bench:
    """All devices and records of the house."""

    def __init__(self, hass: HomeAssistant, layout: Layout) -> None:
        self.hass = hass
        self.layout = layout
        self.devices = {
            key: Device(hass, key, item["name"], item["state"], item["rules"])
            for key, item in layout["devices"].items()
        }
        self.records = {entity: Record(entity, name) for entity, name in layout["records"].items()}
        self.episode = Episode(layout["episode"])
        self.active: list[Device] = []

    async def start(self) -> None:
        """Add every entity, and the services that only the bench has."""
        await self._component("sensor").async_add_entities(
            [self.episode, *self.records.values(), *self._reports()]
        )
        await self._component("event").async_add_entities(
            [
                Happening(item["events"], self.devices[key], item["event_types"])
                for key, item in self.layout["devices"].items()
                if item["events"]
            ]
        )
        for domain in sorted({key.partition(".")[0] for key in self.devices}):
            await self._start_domain(domain)

    def _reports(self) -> list[Report]:
        return [
            Report(entity, self.devices[key], variable or None)
            for key, item in self.layout["devices"].items()
            for variable, entity in item["reports"].items()
        ]

    async def _start_domain(self, domain: str) -> None:
        component = self._component(domain)
        keys = [key for key in self.devices if key.partition(".")[0] == domain]
        for key in keys:
            for name, own in self.layout["devices"][key]["own_services"].items():
                if not self.hass.services.has_service(domain, name):
                    self._own_service(component, name, own)
        await component.async_add_entities([self._entity(domain, key) for key in keys])

    def _entity(self, domain: str, key: str) -> Controlling:
        native = self.layout["devices"][key]["native"]
        kind = KINDS[domain] if native else BenchDevice
        return kind(self.devices[key])

    def _own_service(self, component: EntityComponent, name: str, own: OwnService) -> None:
        fields = {
            (vol.Required if required else vol.Optional)(key): vol.Any(str, bool, int, float)
            for key, required in own["fields"].items()
        }

        async def command(entity: Controlling, call: ServiceCall) -> None:
            await entity.async_bench_command(
                own["rule"], **{key: call.data[key] for key in own["fields"] if key in call.data}
            )

        component.async_register_entity_service(name, fields, command)

    def _component(self, domain: str) -> EntityComponent:
        found = self.hass.data.get(domain)
        if not isinstance(found, EntityComponent):
            found = EntityComponent(_LOGGER, domain, self.hass)
            self.hass.data[f"{DOMAIN}.{domain}"] = found
        return found

    async def reset(self, call: ServiceCall) -> None:
        """Put the house into the state of an episode, in one step."""
        self.episode.become(RESETTING)
        self.active = [self.devices[key] for key in call.data["devices"]]
        for entity, record in call.data["records"].items():
            self.records[entity].become(record)
        for device in self.active:
            device.restart(call.data["devices"][device.key])
        self.episode.become(call.data["attempt"])

    async def set_fault(self, call: ServiceCall) -> None:
        """Make a device lie, or stop lying."""
        device = self.devices[call.data["device"]]
        device.fault = call.data["fault"]
        device.report()
        device.show()

    def beat(self, _: object) -> None:
        """Let the devices of the episode report, as devices on a bus do."""
        for device in self.active:
            device.report()


async def async_setup(hass: HomeAssistant, config: ConfigType) -> bool:
    """Set up the house."""
    path = Path(config[DOMAIN]["layout"])
    layout: Layout = json.loads(await hass.async_add_executor_job(path.read_bytes))
    bench = Bench(hass, layout)
    await bench.start()
    async_register_admin_service(
        hass,
        DOMAIN,
        "reset",
        bench.reset,
        vol.Schema(
            {
                vol.Required("attempt"): cv.string,
                vol.Required("devices"): {cv.string: {cv.string: str}},
                vol.Required("records"): {cv.string: dict},
            }
        ),
    )
    async_register_admin_service(
        hass,
        DOMAIN,
        "fault",
        bench.set_fault,
        vol.Schema({vol.Required("device"): cv.string, vol.Required("fault"): vol.In(Fault.ALL)}),
    )
    async_track_time_interval(hass, partial(_beat, bench), REPORT_EVERY)
    return True


async def _beat(bench: Bench, now: object) -> None:
    bench.beat(now)
