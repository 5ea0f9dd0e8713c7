"""Somebody acts on the world behind the sink's back: the observer's sweep finds it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from retire.bundle import load_bundle
from retire.certify.gates import Verdict
from retire.matrix import Protocol
from retire.wiring import Finished, Request, execute, prepare
from tests.silent import Silent

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def certified(panel: Path, out: Path) -> Finished:
    bundle = load_bundle(panel / "ACC_L01")
    protocol = Protocol.model_validate(
        {
            "schema": "retire.protocol/v1",
            "name": "behind",
            "seed": 5,
            "bundles": ("ACC_L01",),
            "deployments": ("plain",),
            "conditions": ("B1", "B4"),
            "task_value": False,
            "repetitions": 1,
        }
    )
    request = Request(
        protocol, {"ACC_L01": panel / "ACC_L01"}, out, candidates={"ACC_L01": bundle.skill.data}
    )
    return asyncio.run(execute(prepare(request), Silent()))


def act_behind_the_sink(out: Path, attempt: str) -> None:
    """Write an unlocked door into ground truth, as an unmediated path would."""
    body = {
        "target": "lock.front_door",
        "kind": "change",
        "variable": "position",
        "before": "locked",
        "after": "unlocked",
    }
    world = sqlite3.connect(out / "processes" / "world" / "world.sqlite")
    with world:
        world.execute(
            "INSERT INTO journal (attempt, body) VALUES (?, ?)", (attempt, json.dumps(body))
        )
    world.close()
    # Sealed again, as a run would be that had not ended yet.
    (out / "seal.json").unlink()


@pytest.mark.parametrize("known", [True, False])
def test_a_protected_effect_outside_every_episode_fails_the_run(
    known: bool, panel: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    clean = certified(panel, out)
    assert clean.run.findings == ()
    assert clean.certificates[0].verdict is Verdict.PASS
    attempt = next(iter(clean.run.records.attempts)) if known else "f" * 32
    act_behind_the_sink(out, attempt)
    again = certified(panel, out)
    assert {finding.kind for finding in again.run.findings} == {"stray_effect"}
    assert attempt in again.run.findings[0].where
    assert again.certificates[0].verdict is Verdict.FAIL
    assert again.run.traces.outcome_root == clean.run.traces.outcome_root
