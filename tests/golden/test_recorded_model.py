"""The recorded run of a real model, repeated whole: the recorded certificates come out again."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.commands import PANEL, REPOSITORY, Done, retire, workshop

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.golden

RECORDED = REPOSITORY / "bundles" / "recordings" / "smollm2-135m"
CELLS = 72 + 576 + 288
"""RQ1's cells, the audit's, and those of the follow-up under B5 and B6."""


@cache
def replayed() -> tuple[Path, Done]:
    out = workshop() / "replayed"
    protocol = REPOSITORY / "bundles" / "protocols" / "local.yaml"
    options = ("--bundles", PANEL, "--replay", RECORDED / "cassette.jsonl.gz", "--no-figures")
    return out, retire("matrix", "--protocol", protocol, *options, "--out", out)


def statement(path: Path) -> Any:
    return json.loads(base64.b64decode(json.loads(path.read_bytes())["payload"]))


def test_every_cell_is_replayed() -> None:
    out, done = replayed()
    assert done.code == 0, done.said
    assert len((out / "traces.jsonl").read_bytes().splitlines()) == CELLS


def subjects(said: Any) -> list[Any]:
    """All but the plan, which holds who was asked: the model then, its recording now."""
    return [item for item in said["subject"] if item["name"] != "plan"]


@pytest.mark.parametrize("condition", ["B2", "B3", "B4", "B5", "B6"])
def test_a_recorded_certificate_comes_out_again(condition: str) -> None:
    name = f"smollm2-{condition}.json"
    recorded = statement(RECORDED / "certificates" / name)
    again = statement(replayed()[0] / "certificates" / name)
    assert subjects(recorded) == subjects(again)
    said, repeated = recorded["predicate"], again["predicate"]
    for part in (
        "outcome_root",
        "verdict",
        "gates",
        "unmet",
        "findings",
        "beside_the_verdict",
        "support_gap",
    ):
        assert repeated[part] == said[part], part
    assert (said["evidence"], repeated["evidence"]) == ("live_model", "replayed")
    deployment = repeated["unit"]["deployment"]["identity"]
    assert deployment["recorded"] == said["unit"]["deployment"]["identity"]


def test_the_replayed_run_verifies() -> None:
    verified = retire("verify", replayed()[0])
    assert verified.out.count(": intact") == 5
    assert "BROKEN" not in verified.out
