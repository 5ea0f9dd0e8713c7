"""From bundle folders to the bench's layout and its house file: two views of the same devices."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from counterfactuals.template import Device, World, load_world
from hardware.homeassistant.house import (
    House,
    HouseDevice,
    HouseError,
    HouseService,
    Variable,
)
from hardware.homeassistant.house import Parameter as Sent
from sink.contract import Contract, Parameter, canonical_decimal, load_contract

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

EPISODE = "sensor.retire_bench_episode"
REPORT_SECONDS = 5.0

_STANDARD: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "lock.unlock": ("lock.unlock", {}),
    "lock.lock": ("lock.lock", {}),
    "cover.open": ("cover.open_cover", {}),
    "cover.close": ("cover.close_cover", {}),
    "light.turn_on": ("light.turn_on", {}),
    "light.dim": ("light.turn_on", {"brightness": "brightness_pct"}),
    "climate.set_temperature": ("climate.set_temperature", {}),
    "climate.turn_off": ("climate.turn_off", {}),
    "valve.close": ("valve.close_valve", {}),
    "water_heater.set_temperature": (
        "water_heater.set_temperature",
        {"mode": "operation_mode"},
    ),
    "water_heater.turn_off": ("water_heater.turn_off", {}),
}
"""Bundle services that Home Assistant has itself: its service, and parameters named otherwise."""

_OWN_KINDS: Mapping[str, Mapping[str, tuple[str | None, frozenset[str] | None]]] = {
    "lock": {"position": (None, frozenset({"locked", "unlocked"}))},
    "cover": {"position": (None, frozenset({"open", "closed"}))},
    "valve": {
        "position": (None, frozenset({"open", "closed"})),
        "minutes": ("minutes", None),
    },
    "climate": {
        "temperature": ("temperature", None),
        "mode": (None, frozenset({"heat", "off"})),
    },
    "water_heater": {"temperature": ("temperature", None), "mode": (None, None)},
    "light": {
        "power": (None, frozenset({"lit", "dark"})),
        "brightness": ("percent", None),
    },
    "fan": {"power": (None, frozenset({"on", "off"})), "minutes": ("minutes", None)},
    "camera": {},
}
"""Home Assistant's own kinds of entity: their variables, the attribute that shows each (None: the
state does), and the words it may have there (None: any)."""

_WORDS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("light", "power"): {"on": "lit", "off": "dark"},
}
"""Home Assistant's words for a device's own, where they differ."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What the layout needs of a bundle."""

    id: str
    world: World
    contract: Contract


def read_bundles(folders: Sequence[Path]) -> list[Bundle]:
    """Load world and contract of each bundle folder.

    Raises:
        sink.strict_yaml.DocumentError: A file cannot be used.
        OSError: A file cannot be read.
    """
    bundles = []
    for folder in folders:
        world, contract = folder / "world.yaml", folder / "contract.yaml"
        loaded = load_contract(contract.read_bytes(), str(contract))
        bundles.append(Bundle(loaded.bundle, load_world(world.read_bytes(), str(world)), loaded))
    return bundles


def house_of(bundles: Sequence[Bundle]) -> House:
    """Return the house in which all bundles live.

    Raises:
        HouseError: Two bundles have a device of the same name: one house cannot hold both.
    """
    devices: dict[str, HouseDevice] = {}
    for bundle in bundles:
        for key, device in bundle.world.devices.items():
            if key in devices:
                raise HouseError(f"two bundles have a device {key}; start them one by one")
            devices[key] = _device(key, device, bundle.contract)
    return House.model_validate(
        {
            "schema": "retire.house/v1",
            "bench": True,
            "temperature_unit": "\N{DEGREE SIGN}C",
            "episode": EPISODE,
            "report_seconds": REPORT_SECONDS,
            "devices": devices,
            "bundle_devices": {item.id: tuple(item.world.devices) for item in bundles},
            "records": {item.id: _records(item) for item in bundles},
        }
    )


def _records(bundle: Bundle) -> dict[str, str]:
    world = bundle.world
    sections: Mapping[str, Mapping[str, object]] = {
        "grants": world.grants,
        "consents": world.consents,
        "facts": world.facts,
        "versions": world.versions,
    }
    prefix = bundle.id.lower()
    return {
        f"{section}/{name}": f"sensor.{prefix}_{section}_{name}"
        for section, items in sections.items()
        for name in items
    }


def _device(key: str, device: Device, contract: Contract) -> HouseDevice:
    domain, _, own = key.partition(".")
    sent = _parameters(contract)
    native = is_native(domain, device)
    variables = {
        name: Variable(
            attribute=_OWN_KINDS[domain][name][0] if native else name,
            words=dict(_WORDS.get((domain, name), {})) if native else {},
            report=f"sensor.{domain}_{own}_{name}",
        )
        for name in device.state
    }
    return HouseDevice(
        entity=key,
        services={
            name: _service(domain, name, sent.get(name, {}), native=native)
            for name in device.services
        },
        variables=variables,
        link=None if variables else f"sensor.{domain}_{own}_link",
        events=f"event.{domain}_{own}" if _event_types(device) else None,
    )


def is_native(domain: str, device: Device) -> bool:
    """Whether a device fits Home Assistant's own kind of entity of its domain.

    Otherwise it is shown by an entity of the bench's own, under the same id.
    """
    known = _OWN_KINDS.get(domain)
    if known is None or not set(device.state) <= set(known):
        return False
    needed = {name for name, place in known.items() if place[0] is None}
    if domain == "light":
        return len(device.state) == 1
    if not needed <= set(device.state):
        return False
    rules = [rule.set for rule in device.services.values()]
    return all(
        words is None or value.startswith("$") or value in words
        for values in (device.state, *rules)
        for name, value in values.items()
        for words in (known[name][1],)
    )


def _parameters(contract: Contract) -> dict[str, Mapping[str, Parameter]]:
    tools = (contract.action, *contract.other_tools)
    return {tool.service: tool.parameters for tool in tools}


def _service(
    domain: str, name: str, parameters: Mapping[str, Parameter], *, native: bool
) -> HouseService:
    names: Mapping[str, str] = {}
    if native and name in _STANDARD:
        service, names = _STANDARD[name]
    else:
        service = _own_name(domain, name)
    return HouseService(
        service=service,
        parameters={key: _sent(names.get(key, key), item) for key, item in parameters.items()},
    )


def _own_name(domain: str, service: str) -> str:
    """Return the bench's own service, in the entity's own domain.

    In a domain of Home Assistant's it gets a name that Home Assistant itself does not use.
    """
    other, _, name = service.partition(".")
    own = name if other == domain else f"{other}_{name}"
    return f"{domain}.bench_{own}" if domain in _OWN_KINDS else f"{domain}.{own}"


def _sent(key: str, parameter: Parameter) -> Sent:
    kind = "text" if parameter.type == "string" else parameter.type
    step = None
    if kind == "number":
        step = canonical_decimal(Decimal(1).scaleb(-parameter.decimals))
    return Sent.model_validate(
        {
            "key": key,
            "kind": kind,
            "required": parameter.required,
            "minimum": _bound(parameter.minimum),
            "maximum": _bound(parameter.maximum),
            "step": step,
            "unit": parameter.unit,
            "choices": tuple(str(item) for item in parameter.enum or ()),
        }
    )


def _bound(value: int | Decimal | None) -> str | None:
    return None if value is None else canonical_decimal(Decimal(value))


def _event_types(device: Device) -> list[str]:
    return sorted({rule.emit for rule in device.services.values() if rule.emit is not None})


def layout_of(bundles: Sequence[Bundle], house: House) -> dict[str, object]:
    """Return what the custom integration needs to build the house."""
    worlds = {key: device for item in bundles for key, device in item.world.devices.items()}
    return {
        "episode": house.episode,
        "records": {
            entity: f"{bundle} {place}"
            for bundle, records in house.records.items()
            for place, entity in records.items()
        },
        "devices": {
            key: _layout_device(worlds[key], device) for key, device in house.devices.items()
        },
    }


def _layout_device(device: Device, placed: HouseDevice) -> dict[str, object]:
    reports = {name: item.report for name, item in placed.variables.items()}
    return {
        "name": device.name,
        "state": dict(device.state),
        "rules": {
            name: rule.model_dump(exclude_none=True) for name, rule in device.services.items()
        },
        "reports": reports or {"": placed.link},
        "events": placed.events,
        "event_types": _event_types(device),
        "native": is_native(placed.entity.partition(".")[0], device),
        "own_services": {
            placed.services[name].service.partition(".")[2]: {
                "rule": name,
                "fields": {
                    item.key: item.required for item in placed.services[name].parameters.values()
                },
            }
            for name in device.services
            if _own_name(placed.entity.partition(".")[0], name) == placed.services[name].service
        },
    }
