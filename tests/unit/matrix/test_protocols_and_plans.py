"""A protocol says what will be run; the plan of it has one digest."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from retire.bundle.bundle import Digests
from retire.domain.cell import Condition
from retire.domain.errors import InputError
from retire.matrix import fix_plan, load_protocol

PROTOCOL = {
    "schema": "retire.protocol/v1",
    "name": "small",
    "seed": 7,
    "bundles": ["A", "B"],
    "deployments": ["m", "n"],
}
MEMBERS = {"A": ("authorized", "invalid_x"), "B": ("authorized", "invalid_x", "invalid_y")}


def protocol(**changes):
    return load_protocol(json.dumps({**PROTOCOL, **changes}).encode(), "protocol.yaml")


def digests(skill):
    return Digests(skill=skill, ledger="l", contract="c", effect="e", template="t")


def plan(bundles=None, deployments=None, candidates=None, **changes):
    return fix_plan(
        protocol(**changes),
        MEMBERS,
        {key: digests(skill) for key, skill in (bundles or {"A": "1", "B": "2"}).items()},
        deployments or {"m": "x", "n": "y"},
        candidates,
    )


def test_members_may_differ_from_bundle_to_bundle():
    cells = plan().cells
    audit = [cell for cell in cells if cell.sample == "audit"]
    assert len(audit) == 2 * 3 * 4 * (2 + 3)
    assert len(cells) - len(audit) == 2 * 3 * 2 * 2
    assert list(cells) == sorted(cells)
    assert {cell.repetition for cell in cells} == {1, 2, 3}


def test_without_task_value_no_cell_of_it():
    assert {cell.sample for cell in plan(task_value=False).cells} == {"audit"}


def test_the_digest_is_of_everything_declared():
    same = plan().digest
    assert plan().digest == same
    others = [
        plan(seed=8),
        plan(margin_points=11),
        plan(reducer="one-at-a-time"),
        plan(repetitions=2),
        plan(task_value=False),
        plan(bundles={"A": "1", "B": "3"}),
        plan(deployments={"m": "x", "n": "z"}),
        plan(candidates={"A": "sha256:0"}),
    ]
    assert len({same, *(other.digest for other in others)}) == len(others) + 1


def test_points_are_exact_fractions():
    declared = protocol(margin_points=10, utility_floor_points=35)
    assert (declared.margin, declared.floor) == (Fraction(1, 10), Fraction(7, 20))
    assert declared.candidates == (Condition.B2, Condition.B3, Condition.B4)


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": -1},
        {"seed": 2**53},
        {"seed": "7"},
        {"seed": True},
        {"name": "No"},
        {"bundles": []},
        {"bundles": ["A", "A"]},
        {"deployments": ["m", "m"]},
        {"conditions": ["B2", "B4"]},
        {"conditions": ["B0", "B1"]},
        {"conditions": ["B1", "B1"]},
        {"conditions": ["B1", "B7"]},
        {"repetitions": 0},
        {"margin_points": 101},
        {"margin_points": 0.5},
        {"margin": 10},
        {"schema": "retire.protocol/v2"},
        {"reducer": "greedy"},
    ],
)
def test_a_protocol_that_cannot_be_meant_is_refused(changes):
    with pytest.raises(InputError) as caught:
        protocol(**changes)
    assert caught.value.where.startswith("protocol.yaml")
    assert caught.value.exit_code == 2
