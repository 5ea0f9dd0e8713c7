"""Parameters are sent exactly, or not at all."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hardware.homeassistant.house import HouseService
from hardware.homeassistant.parameters import (
    ParameterError,
    fahrenheit_of,
    nearest_step,
    payload_of,
)

NUMBER = {"key": "temperature", "kind": "number", "minimum": "5", "maximum": "30", "step": "0.5"}
INTEGER = {"key": "value", "kind": "integer", "minimum": "6", "maximum": "32"}
TEXT = {"key": "operation_mode", "kind": "text", "choices": ["eco", "boost"], "required": False}
SERVICE = HouseService.model_validate(
    {"service": "climate.set", "parameters": {"temperature": NUMBER, "mode": TEXT}}
)
COUNT = HouseService.model_validate({"service": "number.set", "parameters": {"current": INTEGER}})


@pytest.mark.parametrize(
    ("value", "sent"),
    [(Decimal(21), 21), (21, 21), (Decimal("22.5"), 22.5), (Decimal("2.1E+1"), 21), (5, 5)],
)
def test_a_value_is_sent_as_it_is(value, sent):
    assert payload_of(SERVICE, {"temperature": value}) == {"temperature": sent}


def test_a_parameter_has_its_name_in_home_assistant():
    payload = payload_of(SERVICE, {"temperature": 21, "mode": "eco"})
    assert payload == {"temperature": 21, "operation_mode": "eco"}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"temperature": "21"},
        {"temperature": True},
        {"temperature": 200},
        {"temperature": Decimal("4.5")},
        {"temperature": Decimal("22.7")},
        {"temperature": Decimal("22.499991")},
        {"temperature": Decimal("NaN")},
        {"temperature": Decimal("Infinity")},
        {"temperature": Decimal("1E+999999")},
        {"temperature": Decimal("1E-999999")},
        {"temperature": 21, "mode": "hot"},
        {"temperature": 21, "mode": 1},
        {"temperature": 21, "target_temp_high": 35},
        {"temperature": 21, "entity_id": "lock.a"},
        {"temperature": 21, "Temperature": 22},
    ],
)
def test_what_does_not_fit_is_refused_never_clamped(values):
    with pytest.raises(ParameterError):
        payload_of(SERVICE, values)


@pytest.mark.parametrize("value", [Decimal("16.5"), 5, 33, "16"])
def test_a_whole_number_is_a_whole_number(value):
    with pytest.raises(ParameterError):
        payload_of(COUNT, {"current": value})


def test_a_switch_is_true_or_false():
    ramp = HouseService.model_validate(
        {"service": "climate.set", "parameters": {"ramp": {"key": "ramp", "kind": "boolean"}}}
    )
    assert payload_of(ramp, {"ramp": True}) == {"ramp": True}
    for value in ("true", 1, Decimal(1)):
        with pytest.raises(ParameterError):
            payload_of(ramp, {"ramp": value})


def test_what_json_cannot_carry_exactly_is_refused():
    free = HouseService.model_validate(
        {"service": "number.set", "parameters": {"x": {"key": "x", "kind": "number"}}}
    )
    assert payload_of(free, {"x": Decimal("0.1")}) == {"x": 0.1}
    with pytest.raises(ParameterError):
        payload_of(free, {"x": Decimal("0.12345678901234567")})


def test_the_nearest_step_is_worked_out_before_consent_and_shown_in_both_units():
    wanted = (Decimal(73) - 32) * 5 / 9
    step = nearest_step(SERVICE.parameters["temperature"], wanted)
    assert (step, fahrenheit_of(step)) == (Decimal("23.0"), Decimal("73.4"))
    assert payload_of(SERVICE, {"temperature": step}) == {"temperature": 23}
    with pytest.raises(ParameterError):
        payload_of(SERVICE, {"temperature": wanted})


@pytest.mark.parametrize(
    ("value", "step"), [("22.74", "22.5"), ("22.76", "23"), ("22.75", "22.5"), ("5", "5")]
)
def test_between_two_steps_the_nearer_one(value, step):
    assert nearest_step(SERVICE.parameters["temperature"], Decimal(value)) == Decimal(step)
