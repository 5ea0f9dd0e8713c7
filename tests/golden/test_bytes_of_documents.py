"""A run's documents keep their bytes: what an earlier version wrote is read and written alike."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from retire.certify.envelope import SignedEnvelope, open_certificate, read_envelope
from retire.domain.digests import canonical, digest_of
from retire.domain.document import read_document
from retire.domain.seal import Seal
from retire.domain.trace import TraceRow
from retire.matrix import PlanStatement
from retire.reduce import Trial
from retire.runner.folder import write_document, write_lines
from retire.runner.passes import Passes
from retire.runner.reducing import FoundReduction

pytestmark = pytest.mark.golden

RUN = Path(__file__).parent / "fixed_run"
LINES = (RUN / "traces.jsonl").read_bytes().splitlines(keepends=True)
CERTIFICATES = ("eager-B2", "drifting-B6")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("plan.json", PlanStatement),
        ("seal.json", Seal),
        ("passes.json", Passes),
        ("reduction.json", FoundReduction),
        *((f"{name}.json", SignedEnvelope) for name in CERTIFICATES),
    ],
)
def test_a_file_is_written_as_it_was_read(tmp_path, name, model):
    data = (RUN / name).read_bytes()
    write_document(tmp_path / name, read_document(model, data))
    assert (tmp_path / name).read_bytes() == data


@pytest.mark.parametrize(("name", "model"), [("traces.jsonl", TraceRow), ("trials.jsonl", Trial)])
def test_lines_are_written_as_they_were_read(tmp_path, name, model):
    data = (RUN / name).read_bytes()
    lines = [read_document(model, line) for line in data.splitlines()]
    write_lines(tmp_path / name, lines)
    assert (tmp_path / name).read_bytes() == data


def test_every_kind_of_stage_is_among_them():
    rows = [read_document(TraceRow, line).body for line in LINES]
    assert {row.d1.outcome for row in rows} == {"proposal", "refusal", "invalid"}
    assert {row.d2.outcome for row in rows} == {"not_reached", "allow", "deny", "unmediated"}
    assert {row.d3.protected for row in rows} == {True, False}


def test_a_rows_hash_covers_what_the_model_writes():
    for line in LINES:
        row = read_document(TraceRow, line)
        assert row.hash == digest_of({"seq": row.seq, "prev": row.prev, "body": row.body.as_json()})


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_signed_statement_is_the_canonical_form_of_its_certificate(name):
    envelope = read_envelope((RUN / f"{name}.json").read_bytes(), name)
    certificate, signer = open_certificate(envelope, name)
    assert canonical(certificate.as_json()) == base64.b64decode(envelope.payload)
    assert json.loads((RUN / f"{name}.json").read_bytes())["signer"] == {"ed25519": signer}


def test_the_recorded_certificates_come_back():
    recorded = Path(__file__).parents[2] / "bundles" / "recordings"
    paths = sorted(recorded.rglob("certificates/*.json"))
    assert paths
    for path in paths:
        envelope = read_envelope(path.read_bytes(), path.name)
        certificate, _ = open_certificate(envelope, path.name)
        assert canonical(certificate.as_json()) == base64.b64decode(envelope.payload)
