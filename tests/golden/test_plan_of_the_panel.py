"""The primary matrix: 2,592 cells, in this order, with these seeds."""

from __future__ import annotations

import hashlib
from itertools import product
from pathlib import Path

import pytest

from retire.bundle.loading import find_bundles, load_bundle
from retire.domain.cell import Cell, Condition, Mediation, Sample, call_seed_of, episode_of
from retire.domain.digests import merkle_root
from retire.matrix import fix_plan, load_protocol

pytestmark = pytest.mark.golden

BUNDLES = Path(__file__).parents[2] / "bundles"
MEMBERS = ("authorized", "invalid_authority", "invalid_principal", "invalid_state")
KEYS_SHA256 = "ad35bc2d1b7cc48fced330a261b0c1e33f93fd28c77e0ca69ea0b25ed5ac79a0"


@pytest.fixture(scope="module")
def protocol():
    return load_protocol((BUNDLES / "protocols" / "panel.yaml").read_bytes(), "panel.yaml")


@pytest.fixture(scope="module")
def plan(protocol):
    bundles = [load_bundle(path) for path in find_bundles([BUNDLES / "panel"])]
    members = {bundle.id: tuple(member.name for member in bundle.members) for bundle in bundles}
    digests = {bundle.id: bundle.digests for bundle in bundles}
    return fix_plan(protocol, members, digests, dict.fromkeys(protocol.deployments, ""))


def test_the_keys_are_those_that_a_loop_gives(protocol, plan):
    repetitions = ("1", "2", "3")
    names = (protocol.deployments, protocol.bundles)
    audit = product(["audit"], *names, ["B1", "B2", "B3", "B4"], MEMBERS, repetitions)
    value = product(["task_value"], *names, ["B0", "B1"], MEMBERS[:1], repetitions)
    expected = sorted([*audit, *value])
    assert [cell.key for cell in plan.cells] == ["/".join(parts) for parts in expected]
    assert len(plan.cells) == len(set(plan.cells)) == 2592


def test_the_order_of_the_keys_never_moves(plan):
    joined = "\n".join(cell.key for cell in plan.cells)
    assert hashlib.sha256(joined.encode()).hexdigest() == KEYS_SHA256


def test_the_samples_are_288_and_2304(plan):
    samples = [cell.sample for cell in plan.cells]
    assert samples.count(Sample.TASK_VALUE) == 288
    assert samples.count(Sample.AUDIT) == 2304


def test_the_digest_covers_the_keys_in_their_order(plan):
    quoted = [f'"{cell.key}"'.encode() for cell in plan.cells]
    assert plan.statement.cell_root == merkle_root(quoted)
    assert plan.statement.cells == 2592


def test_the_follow_up_has_1152_cells(protocol, plan):
    follow_up = protocol.model_copy(update={"conditions": ("B1", "B5", "B6"), "task_value": False})
    members = dict.fromkeys(protocol.bundles, MEMBERS)
    cells = fix_plan(follow_up, members, {}, {}).cells
    assert sum(cell.condition in {Condition.B5, Condition.B6} for cell in cells) == 1152


def test_each_condition_has_its_door():
    doors = {condition.value: condition.mediation for condition in Condition}
    assert doors == {
        **dict.fromkeys(("B0", "B1", "B2", "B3"), Mediation.DIRECT),
        **dict.fromkeys(("B4", "B5"), Mediation.CANONICAL),
        "B6": Mediation.EXACT,
    }


def test_an_episode_is_made_of_four_inputs_and_the_seed_of_it():
    text = '{"plan_seed":7,"repetition":2,"request":"Öffne die Tür.","sample":"audit"}'
    episode = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    assert episode_of(7, "Öffne die Tür.", "audit", 2) == episode
    first_four = hashlib.sha256(f'["{episode}","seed"]'.encode()).digest()[:4]
    assert call_seed_of(episode) == int.from_bytes(first_four, "big") // 2
    assert 0 <= call_seed_of(episode) < 2**31


def test_a_cells_place_is_that_of_its_fields():
    one = Cell(Sample.AUDIT, "d", "b", Condition.B1, "authorized", 2)
    ten = Cell(Sample.AUDIT, "d", "b", Condition.B1, "authorized", 10)
    assert one < ten
    assert one.key == "audit/d/b/B1/authorized/2"
    assert one.authorized
    assert not Cell(Sample.AUDIT, "d", "b", Condition.B1, "invalid_state", 1).authorized
