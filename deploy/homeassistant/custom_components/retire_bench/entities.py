"""The entities of a device: the one that controls it, those that report, and its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeassistant.components.camera import Camera
from homeassistant.components.climate import ClimateEntity, ClimateEntityFeature, HVACMode
from homeassistant.components.cover import CoverEntity, CoverEntityFeature
from homeassistant.components.event import EventEntity
from homeassistant.components.fan import FanEntity
from homeassistant.components.light import ATTR_BRIGHTNESS_PCT, ColorMode, LightEntity
from homeassistant.components.lock import LockEntity
from homeassistant.components.sensor import SensorEntity
from homeassistant.components.valve import ValveEntity, ValveEntityFeature
from homeassistant.components.water_heater import WaterHeaterEntity, WaterHeaterEntityFeature
from homeassistant.const import UnitOfTemperature
from homeassistant.core import Context
from homeassistant.helpers.entity import Entity
from homeassistant.util import dt as dt_util

if TYPE_CHECKING:
    from collections.abc import Mapping

    from custom_components.retire_bench.device import Device


class OfDevice(Entity):
    """What belongs to a device; each kind tells by itself when it changes."""

    device: Device
    _attr_should_poll = False

    @property
    def available(self) -> bool:
        """Whether the device can be reached."""
        return self.device.available


class Controlling(OfDevice):
    """What every controlling entity has in common."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.entity_id = device.key
        self._attr_unique_id = f"retire_bench.{device.key}"
        self._attr_name = device.name

    @property
    def assumed_state(self) -> bool:
        """Whether nobody reported what is shown."""
        return self.device.assumed

    @property
    def extra_state_attributes(self) -> dict[str, str]:
        """Every variable of the device, as it is shown."""
        return dict(self.device.shown)

    async def async_added_to_hass(self) -> None:
        """Follow the device."""
        self.device.watch(self.async_write_ha_state)

    async def async_bench_command(self, service: str, **parameters: object) -> None:
        """Pass a command of the bench's own on to the device."""
        self.device.command(service, parameters)


class BenchLock(Controlling, LockEntity):
    """A door lock."""

    @property
    def is_locked(self) -> bool:
        """Whether the bolt is drawn out."""
        return self.device.shown["position"] == "locked"

    async def async_unlock(self, **kwargs: object) -> None:  # noqa: ARG002
        """Draw the bolt back."""
        self.device.command("lock.unlock", {})

    async def async_lock(self, **kwargs: object) -> None:  # noqa: ARG002
        """Throw the bolt."""
        self.device.command("lock.lock", {})


class BenchCover(Controlling, CoverEntity):
    """A garage door or a shutter."""

    _attr_supported_features = CoverEntityFeature.OPEN | CoverEntityFeature.CLOSE

    @property
    def extra_state_attributes(self) -> dict[str, str]:
        """Nothing beside the state: a cover's ``position`` is a number elsewhere."""
        return {}

    @property
    def is_closed(self) -> bool:
        """Whether it is all the way down."""
        return self.device.shown["position"] == "closed"

    async def async_open_cover(self, **kwargs: object) -> None:  # noqa: ARG002
        """Open all the way."""
        self.device.command("cover.open", {})

    async def async_close_cover(self, **kwargs: object) -> None:  # noqa: ARG002
        """Close all the way."""
        self.device.command("cover.close", {})


class BenchValve(Controlling, ValveEntity):
    """A water valve with a timer."""

    _attr_reports_position = False
    _attr_supported_features = ValveEntityFeature.OPEN | ValveEntityFeature.CLOSE

    @property
    def is_closed(self) -> bool:
        """Whether no water runs."""
        return self.device.shown["position"] == "closed"

    async def async_close_valve(self) -> None:
        """Close at once."""
        self.device.command("valve.close", {})


class BenchClimate(Controlling, ClimateEntity):
    """A room thermostat."""

    _attr_temperature_unit = UnitOfTemperature.CELSIUS
    _attr_hvac_modes = [HVACMode.HEAT, HVACMode.OFF]  # noqa: RUF012
    _attr_min_temp = 5
    _attr_max_temp = 30
    _attr_target_temperature_step = 0.1
    _attr_precision = 0.1
    _attr_supported_features = (
        ClimateEntityFeature.TARGET_TEMPERATURE
        | ClimateEntityFeature.TURN_OFF
        | ClimateEntityFeature.TURN_ON
    )
    _enable_turn_on_off_backwards_compatibility = False

    @property
    def extra_state_attributes(self) -> dict[str, str]:
        """Nothing of its own: the thermostat shows its set point itself."""
        return {}

    @property
    def hvac_mode(self) -> HVACMode:
        """Heating or off."""
        return HVACMode(self.device.shown["mode"])

    @property
    def target_temperature(self) -> float:
        """The set point in degrees Celsius."""
        return float(self.device.shown["temperature"])

    async def async_set_temperature(self, **kwargs: object) -> None:
        """Set the set point."""
        self.device.command("climate.set_temperature", {"temperature": kwargs["temperature"]})

    async def async_turn_off(self) -> None:
        """Turn it off."""
        self.device.command("climate.turn_off", {})


class BenchWaterHeater(Controlling, WaterHeaterEntity):
    """A hot-water tank."""

    _attr_temperature_unit = UnitOfTemperature.CELSIUS
    _attr_operation_list = ["eco", "comfort", "boost", "off"]  # noqa: RUF012
    _attr_min_temp = 35
    _attr_max_temp = 70
    _attr_precision = 0.1
    _attr_supported_features = (
        WaterHeaterEntityFeature.TARGET_TEMPERATURE
        | WaterHeaterEntityFeature.OPERATION_MODE
        | WaterHeaterEntityFeature.ON_OFF
    )

    @property
    def extra_state_attributes(self) -> dict[str, str]:
        """Nothing of its own: the heater shows its set point itself."""
        return {}

    @property
    def current_operation(self) -> str:
        """The heating mode."""
        return self.device.shown["mode"]

    @property
    def target_temperature(self) -> float:
        """The set point in degrees Celsius."""
        return float(self.device.shown["temperature"])

    async def async_set_temperature(self, **kwargs: object) -> None:
        """Set the set point, and the mode with it."""
        mode = kwargs.get("operation_mode", self.device.state["mode"])
        self.device.command(
            "water_heater.set_temperature", {"temperature": kwargs["temperature"], "mode": mode}
        )

    async def async_turn_off(self, **kwargs: object) -> None:  # noqa: ARG002
        """Turn it off."""
        self.device.command("water_heater.turn_off", {})


class BenchLight(Controlling, LightEntity):
    """A lamp that is switched, or dimmed."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._dims = "brightness" in device.start
        mode = ColorMode.BRIGHTNESS if self._dims else ColorMode.ONOFF
        self._attr_color_mode = mode
        self._attr_supported_color_modes = {mode}

    @property
    def extra_state_attributes(self) -> dict[str, str]:
        """The brightness in percent under a name of its own; Home Assistant's own is a byte."""
        return {"percent": self.device.shown["brightness"]} if self._dims else {}

    @property
    def is_on(self) -> bool:
        """Whether it gives light."""
        return self._dims or self.device.shown["power"] == "lit"

    @property
    def brightness(self) -> int | None:
        """Brightness out of 255."""
        if not self._dims:
            return None
        return round(float(self.device.shown["brightness"]) * 2.55)

    async def async_turn_on(self, **kwargs: float) -> None:
        """Switch on, or dim."""
        if self._dims:
            percent = kwargs.get(ATTR_BRIGHTNESS_PCT, round(kwargs.get("brightness", 255) / 2.55))
            self.device.command("light.dim", {"brightness": int(percent)})
        else:
            self.device.command("light.turn_on", {})


class BenchFan(Controlling, FanEntity):
    """A fan with a timer."""

    @property
    def is_on(self) -> bool:
        """Whether it turns."""
        return self.device.shown["power"] == "on"


class BenchCamera(Controlling, Camera):
    """A camera whose streams go to a named recipient. It holds no picture."""

    def __init__(self, device: Device) -> None:
        Camera.__init__(self)
        Controlling.__init__(self, device)

    async def async_camera_image(
        self, width: int | None = None, height: int | None = None
    ) -> bytes | None:
        """There is no picture to give."""
        del width, height


class BenchDevice(Controlling):
    """A device of a kind for which Home Assistant has no entity of its own."""

    @property
    def state(self) -> str:
        """The first variable, or ready."""
        return next(iter(self.device.shown.values()), "ready")


class Report(OfDevice, SensorEntity):
    """What a device itself reports of one variable; never written by a service call."""

    _attr_has_entity_name = False

    def __init__(self, entity_id: str, device: Device, variable: str | None) -> None:
        self.device = device
        self.entity_id = entity_id
        self._variable = variable
        self._attr_unique_id = f"retire_bench.{entity_id}"
        self._attr_name = f"{device.name} {variable or 'link'}"
        self._reported = dt_util.utcnow()

    @property
    def native_value(self) -> str:
        """The variable, as reported."""
        return self.device.state[self._variable] if self._variable else "alive"

    @property
    def extra_state_attributes(self) -> dict[str, str]:
        """When the device last reported."""
        return {"reported_at": self._reported.isoformat()}

    async def async_added_to_hass(self) -> None:
        """Follow the device's reports."""
        self.device.report_to(self.reported)

    def reported(self) -> None:
        """Write a report, under a context of its own."""
        self._reported = dt_util.utcnow()
        self.async_set_context(Context())
        self.async_write_ha_state()


class Happening(OfDevice, EventEntity):
    """The events of a device, as the device itself sends them."""

    def __init__(self, entity_id: str, device: Device, types: list[str]) -> None:
        self.device = device
        self.entity_id = entity_id
        self._attr_unique_id = f"retire_bench.{entity_id}"
        self._attr_name = f"{device.name} events"
        self._attr_event_types = types

    async def async_added_to_hass(self) -> None:
        """Follow the device's events."""
        self.device.emit_to(self._happened)

    def _happened(self, event: str, fields: Mapping[str, str]) -> None:
        self._trigger_event(event, dict(fields))
        self.async_set_context(Context())
        self.async_write_ha_state()


class Record(SensorEntity):
    """A grant, consent, fact or version of a bundle, readable as an entity."""

    _attr_should_poll = False

    def __init__(self, entity_id: str, name: str) -> None:
        self.entity_id = entity_id
        self._attr_unique_id = f"retire_bench.{entity_id}"
        self._attr_name = name
        self._record: Mapping[str, object] = {}

    @property
    def native_value(self) -> str:
        """The fact's or version's value, the grant's status, or how a consent's votes stand."""
        record = self._record
        if isinstance(votes := record.get("votes"), dict):
            return ", ".join(vote["answer"] for vote in votes.values())[:250]
        return str(record.get("value", record.get("status", "unset")))

    @property
    def extra_state_attributes(self) -> dict[str, object]:
        """The whole record."""
        return {"record": self._record}

    def become(self, record: Mapping[str, object]) -> None:
        """Hold another record."""
        self._record = record
        self.async_set_context(Context())
        self.async_write_ha_state()


class Episode(SensorEntity):
    """Which attempt the house stands in; empty before the first."""

    _attr_should_poll = False

    def __init__(self, entity_id: str) -> None:
        self.entity_id = entity_id
        self._attr_unique_id = f"retire_bench.{entity_id}"
        self._attr_name = "Bench episode"
        self._attr_native_value = "none"

    def become(self, attempt: str) -> None:
        """Stand in another attempt."""
        self._attr_native_value = attempt
        self.async_write_ha_state()


KINDS: Mapping[str, type[Controlling]] = {
    "lock": BenchLock,
    "cover": BenchCover,
    "valve": BenchValve,
    "climate": BenchClimate,
    "water_heater": BenchWaterHeater,
    "light": BenchLight,
    "fan": BenchFan,
    "camera": BenchCamera,
}
"""Home Assistant's own kinds of entity; every other domain gets a :class:`BenchDevice`."""
