"""What services do to devices, and how a world is frozen."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from counterfactuals.devices import UnsupportedError, device_text, effects_of, initial_state
from counterfactuals.template import (
    Patch,
    TemplateError,
    differing_paths,
    patches_of,
    pointer_parts,
    request_of,
    snapshot_bytes,
)
from sink.strict_yaml import DocumentError
from tests import houses


def effects(service, target, parameters, state=None):
    devices = houses.world().devices
    state = state or initial_state(devices)
    return [dict(item.body) for item in effects_of(devices, state, service, target, parameters)]


def test_a_service_changes_a_variable():
    assert effects("climate.set", "climate.den", {"temperature": "26.5"}) == [
        {
            "target": "climate.den",
            "kind": "change",
            "variable": "temperature",
            "before": "20",
            "after": "26.5",
        }
    ]


def test_a_value_that_stays_the_same_is_no_change():
    assert effects("climate.set", "climate.den", {"temperature": "20"}) == []


def test_an_event_names_its_target():
    assert effects("fan.on", "fan.bath", {}) == [
        {"target": "fan.bath", "kind": "event", "event": "started", "fields": {"where": "fan.bath"}}
    ]


@pytest.mark.parametrize(
    ("service", "target", "parameters"),
    [
        ("climate.set", "climate.attic", {"temperature": "20"}),
        ("climate.off", "climate.den", {}),
        ("fan.on", "climate.den", {}),
        ("climate.set", "climate.den", {}),
        ("climate.set", "climate.den", {"Temperature": "20"}),
    ],
)
def test_a_ghost_or_a_missing_parameter_does_nothing(service, target, parameters):
    with pytest.raises(UnsupportedError):
        effects(service, target, parameters)


def test_a_device_fills_its_own_defaults():
    data = houses.world_data()
    rule = data["devices"]["climate.den"]["services"]["climate.set"]
    rule["defaults"] = {"temperature": "21"}
    devices = houses.world(data).devices
    [change] = effects_of(devices, initial_state(devices), "climate.set", "climate.den", {})
    assert change.after == "21"


def test_each_episode_has_a_state_of_its_own():
    devices = houses.world().devices
    one, other = initial_state(devices), initial_state(devices)
    one["climate.den"]["temperature"] = "30"
    assert other["climate.den"]["temperature"] == "20"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (21, "21"),
        (Decimal("2.10E+1"), "21"),
        (Decimal("26.50"), "26.5"),
        ("0042", "0042"),
    ],
)
def test_a_parameter_as_a_device_holds_it(value, text):
    assert device_text(value) == text


def test_a_snapshot_is_serialised_in_one_way_and_tells_no_truth_value():
    data = houses.world_data()
    shuffled = json.loads(json.dumps(data, sort_keys=True))
    assert snapshot_bytes(houses.world(data), ()) == snapshot_bytes(houses.world(shuffled), ())
    value = json.loads(snapshot_bytes(houses.world(), ()))
    assert value["as_of"] == houses.NOW
    assert set(value) == {"schema", "as_of", "grants", "consents", "facts", "versions"}
    assert b"true" not in snapshot_bytes(houses.world(), ())


@pytest.mark.parametrize(
    "path",
    ["", "/", "as_of", "/schema", "/devices/climate.den/state/temperature", "/facts", "/facts/"],
)
def test_only_places_of_the_snapshot_can_be_patched(path):
    data = houses.tasks_data()
    data["locked"]["counterfactuals"][0]["path"] = path
    with pytest.raises(DocumentError):
        houses.tasks(data)


@pytest.mark.parametrize("value", [1, True, None, {"a": "b"}, ["x"]])
def test_a_patch_puts_text(value):
    data = houses.tasks_data()
    data["locked"]["counterfactuals"][0]["value"] = value
    with pytest.raises(DocumentError):
        houses.tasks(data)


def test_only_a_declared_path_can_be_asked_for():
    tasks = houses.tasks()
    assert patches_of(tasks, "locked", None) == ()
    [patch] = patches_of(tasks, "locked", "/facts/window/value")
    assert patch == Patch(path="/facts/window/value", value="open")
    for task, path in (
        ("locked", "/facts/window/name"),
        ("locked", ""),
        ("first", "/facts/window/value"),
        ("nowhere", None),
    ):
        with pytest.raises(TemplateError):
            patches_of(tasks, task, path)
    with pytest.raises(TemplateError):
        request_of(tasks, "nowhere")
    assert request_of(tasks, "locked") == houses.TASKS["locked"]["request"]


@pytest.mark.parametrize("name", ["locked", "first"])
def test_task_ids_stand_once(name):
    data = houses.tasks_data()
    data["development"].append({"id": name, "request": "Again."})
    with pytest.raises(DocumentError):
        houses.tasks(data)


def test_pointers_are_unescaped_as_the_rfc_says():
    assert pointer_parts("/a~1b/m~0n/~01") == ("a/b", "m~n", "~1")
    left, right = b'{"a/b":{"m~n":"1","x":1}}', b'{"a/b":{"m~n":"2","x":true}}'
    assert differing_paths(left, right) == ("/a~1b/m~0n", "/a~1b/x")
    assert differing_paths(b'{"a":1}', b'{"b":1}') == ("/a", "/b")
    assert differing_paths(left, left) == ()
