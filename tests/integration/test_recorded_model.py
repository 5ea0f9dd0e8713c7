"""The recorded run of a real model, repeated whole: the recorded certificates come out again."""

from __future__ import annotations

import base64
import json
import shutil
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from retire.certify.certificate import LIVE_TYPE, Certificate
from retire.certify.envelope import sign_certificate
from retire.domain.document import as_document
from retire.runner.folder import write_document
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


@pytest.mark.parametrize("identity", [None, {"provider": "local", "weights": "sha256:0"}, {}])
def test_a_replay_cannot_be_signed_as_live(identity: dict[str, str] | None, tmp_path: Path) -> None:
    """Whoever signs: who was asked stands in the plan, by digest."""
    out = tmp_path / "forged"
    shutil.copytree(replayed()[0], out)
    path = out / "certificates" / "smollm2-B4.json"
    said = statement(path)
    said["predicateType"] = LIVE_TYPE
    said["predicate"]["evidence"] = "live_model"
    said["predicate"]["first_lines"] = said["predicate"]["first_lines"][1:]
    if identity is not None:
        said["predicate"]["unit"]["deployment"]["identity"] = identity
    certificate = as_document(Certificate, said)
    write_document(path, sign_certificate(certificate, Ed25519PrivateKey.generate()))
    verified = retire("verify", path)
    assert verified.code == 1, verified.said
    assert "BROKEN" in verified.out
