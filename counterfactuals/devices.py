"""What a service does to a device of a template's world. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sink.contract import Scalar, canonical_decimal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from counterfactuals.template import Device, ServiceRule

State = dict[str, dict[str, str]]
"""Variables of every device, by device and variable."""


@dataclass(frozen=True, slots=True)
class Change:
    """One journal line before it has a sequence number."""

    body: Mapping[str, Any]
    variable: str | None = None
    after: str | None = None


class UnsupportedError(Exception):
    """The world has no such device or service, or a parameter is missing."""


def initial_state(devices: Mapping[str, Device]) -> State:
    """Return the state in which an episode starts."""
    return {key: dict(device.state) for key, device in devices.items()}


def effects_of(
    devices: Mapping[str, Device],
    state: State,
    service: str,
    target: str,
    parameters: Mapping[str, str],
) -> tuple[Change, ...]:
    """Return the changes that a service call makes; a value that stays the same is no change.

    Raises:
        UnsupportedError: Unknown target or service, or a parameter the rule needs is missing.
    """
    device = devices.get(target)
    rule = device.services.get(service) if device is not None else None
    if rule is None:
        raise UnsupportedError(f"{target} offers no {service}")
    changes = [
        Change(
            {
                "target": target,
                "kind": "change",
                "variable": variable,
                "before": state[target].get(variable),
                "after": value,
            },
            variable,
            value,
        )
        for variable, template in rule.set.items()
        if (value := _fill(template, rule, target, parameters)) != state[target].get(variable)
    ]
    if rule.emit is not None:
        fields = {
            name: _fill(template, rule, target, parameters)
            for name, template in rule.fields.items()
        }
        changes.append(
            Change({"target": target, "kind": "event", "event": rule.emit, "fields": fields})
        )
    return tuple(changes)


def _fill(template: str, rule: ServiceRule, target: str, parameters: Mapping[str, str]) -> str:
    if not template.startswith("$"):
        return template
    name = template[1:]
    if name == "target":
        return target
    value = parameters.get(name, rule.defaults.get(name))
    if value is None:
        raise UnsupportedError(f"the parameter {name} is missing")
    return value


def device_text(value: Scalar) -> str:
    """Return a parameter as the text that a device's variable holds."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else canonical_decimal(Decimal(value))
