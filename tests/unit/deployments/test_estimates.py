"""What a plan is said to take is never less than what it takes."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retire.bundle import load_bundle
from retire.deployments.configuration import Price, Sampling
from retire.deployments.estimating import (
    Load,
    Pace,
    duration,
    fewest_trials,
    money,
    most_trials,
    plan_load,
    prompt_tokens,
)
from retire.matrix import Protocol
from retire.matrix.plan import fix_plan
from retire.reduce import Strategy, TrialResult, search

PANEL = Path(__file__).parents[3] / "bundles" / "panel"
BUNDLES = [load_bundle(PANEL / name) for name in ("ACC_L01", "ENV_L01")]


def protocol(**given):
    values = {
        "schema": "retire.protocol/v1",
        "name": "estimated",
        "seed": 1,
        "bundles": tuple(bundle.id for bundle in BUNDLES),
        "deployments": ("one",),
    }
    return Protocol.model_validate(values | given)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"repetitions": 1},
        {"task_value": False},
        {"conditions": ("B1", "B2", "B3", "B4", "B5", "B6")},
    ],
)
def test_cells_are_counted_as_the_plan_lists_them(given):
    declared = protocol(**given)
    members = {bundle.id: [m.name for m in bundle.members] for bundle in BUNDLES}
    plan = fix_plan(
        declared, members, {bundle.id: bundle.digests for bundle in BUNDLES}, {"one": "sha256:x"}
    )
    assert plan_load(declared, BUNDLES).cells.calls == len(plan.cells)


def test_a_run_that_reduces_nothing_has_no_trials():
    for load in (
        plan_load(protocol(), BUNDLES, reduces=False),
        plan_load(protocol(conditions=("B1",)), BUNDLES),
    ):
        assert load.least == load.most == Load()


def test_longer_prompts_are_not_estimated_shorter():
    short = prompt_tokens([{"role": "user", "content": "a"}])
    assert prompt_tokens([{"role": "user", "content": "a" * 300}]) >= short + 99
    assert prompt_tokens([{"role": "user", "content": "\u2603" * 100}]) >= short + 99


@settings(max_examples=200, deadline=None)
@given(
    reducer=st.sampled_from(["one-at-a-time", "halving"]),
    count=st.integers(0, 9),
    accepted=st.randoms(use_true_random=False),
    chance=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
)
def test_no_reduction_takes_more_trials_than_the_bound(reducer, count, accepted, chance):
    clauses = [f"c{number:03}" for number in range(count)]
    asked = {}
    asking = search(Strategy(reducer), clauses, Fraction(1, 10))
    deleted = next(asking)
    while True:
        key = tuple(sorted(deleted))
        completes = not deleted or accepted.random() < chance
        result = asked.setdefault(key, TrialResult(3 if completes else 0, 3))
        try:
            deleted = asking.send(result)
        except StopIteration:
            break
    assert fewest_trials(reducer, count) <= len(asked) <= most_trials(reducer, count)


def test_money_is_the_price_of_what_is_read_and_may_be_written():
    price = Price.model_validate({"input": 2, "output": 10, "currency": "EUR"})
    load = Load(calls=1000, read=1_000_000)
    assert money(load, Sampling(max_tokens=100), price) == 2 + 1


@pytest.mark.parametrize(
    ("pace", "seconds"),
    [
        (Pace(2.0, 10), 20.0),
        (Pace(2.0, 10, requests_per_minute=60), 100.0),
        (Pace(2.0, 10, requests_per_minute=6000), 20.0),
        (Pace(2.0, 10, tokens_per_minute=20_000), 60.0),
    ],
)
def test_time_is_set_by_the_slowest_limit(pace, seconds):
    load = Load(calls=100, read=10_000)
    assert duration(load, Sampling(max_tokens=100), pace) == pytest.approx(seconds)
