"""Parameters of an action as the payload of a service call: exact, checked, never clamped. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from hardware.homeassistant.house import decimal_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardware.homeassistant.house import HouseService, Parameter

Value = bool | int | Decimal | str

_DIGITS = 15
"""A number with an exponent beyond this is refused before anything is computed with it."""


class ParameterError(ValueError):
    """A parameter cannot be sent; the message names it."""


def payload_of(service: HouseService, values: Mapping[str, Value]) -> dict[str, int | float | str]:
    """Return the payload of a call, without the entity.

    Raises:
        ParameterError: A parameter is unknown, missing, of another type, outside its bounds,
            between two steps, or not exactly what a JSON number can carry.
    """
    unknown = sorted(set(values) - set(service.parameters))
    if unknown:
        raise ParameterError(f"the service takes no {unknown[0]}")
    missing = sorted(
        key for key, item in service.parameters.items() if item.required and key not in values
    )
    if missing:
        raise ParameterError(f"the service needs {missing[0]}")
    return {
        service.parameters[key].key: _sent(key, service.parameters[key], value)
        for key, value in values.items()
    }


def _sent(key: str, parameter: Parameter, value: Value) -> int | float | str:
    if parameter.kind == "text":
        if not isinstance(value, str):
            raise ParameterError(f"{key} is no text")
        if parameter.choices and value not in parameter.choices:
            raise ParameterError(f"{key} is none of {', '.join(parameter.choices)}")
        return value
    if parameter.kind == "boolean":
        if not isinstance(value, bool):
            raise ParameterError(f"{key} is neither true nor false")
        return value
    if isinstance(value, bool | str):
        raise ParameterError(f"{key} is no number")
    return _number(key, parameter, Decimal(value))


def _number(key: str, parameter: Parameter, value: Decimal) -> int | float:
    lowest, highest = decimal_of(parameter.minimum), decimal_of(parameter.maximum)
    if not value.is_finite() or abs(value.adjusted()) > _DIGITS:
        raise ParameterError(f"{key} is no number of a size that a device takes")
    if (lowest is not None and value < lowest) or (highest is not None and value > highest):
        raise ParameterError(f"{key} lies outside {parameter.minimum} to {parameter.maximum}")
    step = Decimal(1) if parameter.kind == "integer" else decimal_of(parameter.step)
    if step is not None and (value - (lowest or 0)) % step:
        raise ParameterError(f"{key} lies between two steps of {step}")
    if value == value.to_integral_value():
        return int(value)
    sent = float(value)
    if Decimal(repr(sent)) != value:
        raise ParameterError(f"{key} has more digits than can be sent exactly")
    return sent


def nearest_step(parameter: Parameter, value: Decimal) -> Decimal:
    """Return the nearest value that the device can take; what a consent has to show.

    Exactly between two steps the lower one is taken. Nothing is rounded when it is sent.
    """
    step = decimal_of(parameter.step) or Decimal(1)
    lowest = decimal_of(parameter.minimum) or Decimal(0)
    below = lowest + (value - lowest) // step * step
    return below if value - below <= step / 2 else below + step


def fahrenheit_of(celsius: Decimal) -> Decimal:
    """Return degrees Celsius as degrees Fahrenheit, exactly."""
    return celsius * 9 / 5 + 32
