"""Which world a run is in."""

from __future__ import annotations

import pytest

from retire.cli.world import instance_of
from retire.domain.errors import InputError


def test_a_world_is_the_stub_or_a_house(tmp_path):
    instance = tmp_path / "instance.json"
    instance.touch()
    assert instance_of("stub") is None
    assert instance_of(f"homeassistant:{instance}") == instance


@pytest.mark.parametrize("world", ["", "homeassistant", "homeassistant:", "house", "STUB"])
def test_another_word_is_no_world(world):
    with pytest.raises(InputError, match="homeassistant:INSTANCE_FILE"):
        instance_of(world)


def test_a_house_without_its_file_is_told(tmp_path):
    with pytest.raises(InputError, match="retire world homeassistant"):
        instance_of(f"homeassistant:{tmp_path / 'none.json'}")
