"""House, instance and token files, and the configuration that is written from bundles."""

from __future__ import annotations

import argparse
import json
import re
import stat
from datetime import UTC, datetime

import pytest

from counterfactuals.devices import effects_of, initial_state
from hardware.bench.instance import read_instance
from hardware.bench.instance import read_token as read_secret
from hardware.homeassistant.access import access_of, read_token
from hardware.homeassistant.camera import ENTITY, write_bench, write_camera
from hardware.homeassistant.configure import write_configuration
from hardware.homeassistant.house import HouseError, load_house, load_instance
from hardware.homeassistant.layout import Bundle, house_of, layout_of, read_bundles
from hardware.homeassistant.parameters import payload_of
from hardware.homeassistant.show import described as shown
from observer.effect import EventSeen, load_effect
from tests import houses
from tests.unit.homeassistant.small_house import described, small_house

INSTANCE = {
    "schema": "retire.homeassistant/v1",
    "url": "http://127.0.0.1:8123",
    "house": "house.json",
    "tokens": {"world": "w", "sink": "s", "observer": "o"},
}


@pytest.fixture(scope="module")
def bundles(panel):
    return read_bundles(sorted(panel.iterdir()))


@pytest.fixture(scope="module")
def house(bundles):
    return house_of(bundles)


def test_every_device_of_the_panel_has_its_entity_and_its_reports(bundles, house):
    for bundle in bundles:
        for key, device in bundle.world.devices.items():
            placed = house.devices[key]
            assert placed.entity == key
            assert set(placed.services) == set(device.services)
            assert set(placed.variables) == set(device.state)
            assert placed.reports()
            emits = any(rule.emit for rule in device.services.values())
            assert (placed.events is not None) == emits
        assert set(house.bundle_devices[bundle.id]) == set(bundle.world.devices)


def test_every_record_of_a_snapshot_has_an_entity_of_its_own(bundles, house):
    entities = [entity for records in house.records.values() for entity in records.values()]
    assert len(entities) == len(set(entities))
    for bundle in bundles:
        world = bundle.world
        count = sum(map(len, (world.grants, world.consents, world.facts, world.versions)))
        assert len(house.records[bundle.id]) == count


def test_every_canonical_action_can_be_sent_and_every_effect_can_be_read(panel, bundles, house):
    for bundle in bundles:
        action = bundle.contract.action
        device = house.devices[action.target]
        payload_of(device.services[action.service], dict(action.canonical))
        effect = load_effect((panel / bundle.id / "effect.yaml").read_bytes(), "effect.yaml")
        for watched in (effect.intended, effect.protected):
            place = house.devices[watched.target]
            if isinstance(watched, EventSeen):
                assert place.events is not None
            else:
                assert watched.variable in place.variables
        state = initial_state(bundle.world.devices)
        assert effects_of(
            bundle.world.devices,
            state,
            action.service,
            action.target,
            {key: str(value) for key, value in action.canonical.items()},
        )


def test_two_bundles_with_one_device_do_not_fit_into_one_house(panel):
    with pytest.raises(HouseError, match=r"lock\.front_door"):
        house_of(read_bundles([panel / "ACC_L01", panel / "ACC_L01"]))


def test_a_house_survives_its_file(tmp_path, house):
    path = tmp_path / "house.json"
    path.write_text(house.model_dump_json(by_alias=True))
    assert load_house(path) == house


@pytest.mark.parametrize(
    "entity", ["LOCK.front", "lock.front_door\n", "lock.a,lock.b", "all", "lock.*", ""]
)
def test_a_house_names_literal_entities_alone(tmp_path, entity):
    value = described()
    value["devices"]["lock.front_door"]["entity"] = entity
    path = tmp_path / "house.json"
    path.write_text(json.dumps(value))
    with pytest.raises(HouseError, match=r"house\.json"):
        load_house(path)


@pytest.mark.parametrize("service", ["homeassistant.turn_on", "light.turn_on", "unlock"])
def test_a_service_is_of_the_entitys_own_domain(tmp_path, service):
    value = described()
    value["devices"]["lock.front_door"]["services"]["lock.unlock"]["service"] = service
    path = tmp_path / "house.json"
    path.write_text(json.dumps(value))
    with pytest.raises(HouseError):
        load_house(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"bench": "yes"},
        {"bench": None},
        {"report_seconds": 0},
        {"unknown": 1},
        {"schema": "retire.house/v2"},
        {"devices": {"a": {}}},
    ],
)
def test_a_house_of_another_form_is_refused_with_its_place(tmp_path, changes):
    path = tmp_path / "house.json"
    path.write_text(json.dumps(described(**changes)))
    with pytest.raises(HouseError, match=re.escape(str(path))):
        load_house(path)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"null"])
def test_a_file_that_is_no_house_is_refused(tmp_path, data):
    path = tmp_path / "house.json"
    path.write_bytes(data)
    with pytest.raises(HouseError):
        load_house(path)
    with pytest.raises(HouseError):
        load_house(tmp_path / "none.json")


def test_paths_of_an_instance_are_taken_from_its_own_folder(tmp_path):
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(INSTANCE))
    found = load_instance(path)
    assert found.house == str(tmp_path / "house.json")
    assert found.tokens.sink == str(tmp_path / "s")


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "ftp://x"},
        {"url": "http://x/path"},
        {"url": "http://x y"},
        {"tokens": {"world": "w"}},
        {"token": "secret"},
        {"settle_milliseconds": -1},
        {"settle_milliseconds": "100"},
    ],
)
def test_an_instance_of_another_form_is_refused_without_its_values(tmp_path, changes):
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(INSTANCE | changes))
    with pytest.raises(HouseError) as caught:
        load_instance(path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_token_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "token"
    path.write_text("secret-token\n")
    path.chmod(mode)
    with pytest.raises(HouseError) as caught:
        read_token(path)
    assert "0600" in str(caught.value)
    assert "secret-token" not in str(caught.value)
    path.chmod(0o600)
    assert read_token(path) == "secret-token"


@pytest.mark.parametrize("data", [b"", b" \n", b"\xff\xfe"])
def test_a_token_file_without_a_token_is_refused(tmp_path, data):
    path = tmp_path / "token"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(HouseError):
        read_token(path)


def test_an_address_without_token_and_house_is_refused():
    given = argparse.Namespace(home_assistant="http://x", token_file=None, house=None)
    with pytest.raises(HouseError, match="--token-file"):
        access_of(given)


def test_a_token_is_not_shown(tmp_path):
    token, house = tmp_path / "token", tmp_path / "house.json"
    token.write_text("secret-token")
    token.chmod(0o600)
    house.write_text(json.dumps(described()))
    given = argparse.Namespace(home_assistant="http://x", token_file=token, house=house)
    access = access_of(given)
    assert access.token == "secret-token"
    assert "secret-token" not in repr(access)


def test_a_configuration_has_a_user_and_a_private_token_for_each_program(
    tmp_path, repository, bundles, house
):
    integration = repository / "deploy" / "homeassistant" / "custom_components" / "retire_bench"
    layout = layout_of(bundles, house)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    written = write_configuration(tmp_path / "s", integration, layout, 8123, now)
    again = write_configuration(tmp_path / "s", integration, layout, 8123, now)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    auth = json.loads((written.folder / ".storage" / "auth").read_text())["data"]
    groups = {user["name"]: user["group_ids"] for user in auth["users"]}
    assert groups == {
        "world": ["system-admin"],
        "sink": ["system-users"],
        "observer": ["system-read-only"],
    }
    tokens = [path.read_text() for path in again.tokens.values()]
    assert len(set(tokens)) == 3
    for path in (*again.tokens.values(), written.folder / ".storage" / "auth"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = (written.folder / "configuration.yaml").read_text()
    assert "server_host: 127.0.0.1" in text
    assert not any(token in text for token in tokens)
    assert json.loads((written.folder / "layout.json").read_text()) == layout


def test_a_home_with_a_camera_has_no_administrator_and_a_bench_that_can_be_read(tmp_path):
    now = datetime(2026, 1, 1, tzinfo=UTC)
    written = write_camera(tmp_path / "s", "http://127.0.0.1:8090", 8123, now)
    instance = write_bench(
        tmp_path / "s", "http://127.0.0.1:8123", "http://127.0.0.1:8090", written
    )
    auth = json.loads((written.folder / ".storage" / "auth").read_text())["data"]
    groups = {user["name"]: user["group_ids"] for user in auth["users"]}
    assert groups == {"sink": ["system-users"], "observer": ["system-read-only"]}
    bench = read_instance(instance)
    assert (bench.bench, bench.entity, bench.device) == (True, ENTITY, "http://127.0.0.1:8090")
    assert read_secret(bench.sink_token) == written.tokens["sink"].read_text()
    assert read_secret(bench.observer_token) == written.tokens["observer"].read_text()
    assert "retire_bench" not in (written.folder / "configuration.yaml").read_text()


def test_what_a_house_shows_is_told_in_words():
    house = small_house()
    found = shown(house, {})
    assert found["attempt"] == "missing"
    assert found["devices"]["lock.front_door"]["state"] == "missing"
    assert found["records"]["DOOR"] == {"facts/alarm": "missing"}


def test_the_pins_of_the_requirements_are_whole(repository):
    lines = (repository / "deploy" / "homeassistant" / "requirements.txt").read_text().split()
    assert len(lines) > 70
    assert all(line.count("==") == 1 for line in lines)
    assert "homeassistant==2024.3.3" in lines


def test_the_panel_uses_home_assistants_own_entities_and_services_where_there_are_any(house):
    def services(key):
        return {item.service for item in house.devices[key].services.values()}

    assert services("lock.front_door") == {"lock.unlock", "lock.lock"}
    assert services("cover.garage_door") == {"cover.open_cover", "cover.close_cover"}
    assert services("climate.living_room") == {"climate.set_temperature", "climate.turn_off"}
    assert services("water_heater.main_tank") == {
        "water_heater.set_temperature",
        "water_heater.turn_off",
    }
    assert services("light.night_light") == {"light.turn_on"}
    assert services("valve.greenhouse") == {"valve.bench_open", "valve.close_valve"}
    assert services("locker.lobby") == {"locker.unlock", "locker.lock"}
    assert services("doorbell.porch") == {"doorbell.clip_share", "doorbell.chime"}


def test_a_device_that_fits_no_entity_of_home_assistants_own_gets_one_of_the_benchs():
    bundle = Bundle("DEN_HEAT", houses.world(), houses.contract())
    house = house_of([bundle])
    placed = house.devices["climate.den"]
    assert placed.services["climate.set"].service == "climate.bench_set"
    assert placed.variables["temperature"].attribute == "temperature"
    assert placed.services["climate.set"].parameters["ramp"].kind == "boolean"
    layout = layout_of([bundle], house)["devices"]["climate.den"]
    assert not layout["native"]
    assert layout["own_services"]["bench_set"]["rule"] == "climate.set"


@pytest.mark.parametrize("taken", ["lock.back", "lock.front_door"])
def test_a_name_with_two_meanings_is_refused(taken):
    """One device is called like the entity of another, or two have one entity."""
    devices = described()["devices"]
    devices["lock.back"] = devices["lock.front_door"] | {"entity": "lock.front_door"}
    devices["lock.front_door"] = devices["lock.front_door"] | {"entity": taken}
    with pytest.raises(ValueError, match=r"lock\.(back|front_door)"):
        small_house(devices=devices)


def test_only_a_bench_may_send_a_service_under_another_name():
    devices = described()["devices"]
    devices["lock.front_door"]["services"]["lock.lock"] = {"service": "lock.unlock"}
    assert small_house(devices=devices).bench
    with pytest.raises(ValueError, match="only a bench"):
        small_house(devices=devices, bench=False)
    assert not small_house(bench=False).bench


@pytest.mark.parametrize("key", ["entity_id", "device_id", "area_id", "floor_id", "label_id"])
def test_no_parameter_says_where_a_call_goes(key):
    devices = described()["devices"]
    rule = {"service": "lock.unlock", "parameters": {"to": {"key": key, "kind": "text"}}}
    devices["lock.front_door"]["services"]["lock.unlock"] = rule
    with pytest.raises(ValueError, match=key):
        small_house(devices=devices)
