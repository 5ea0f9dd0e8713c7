"""``retire export`` and ``retire report`` as a user has them, over a run that really happened."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.integration.commands import files_below, retire, small_matrix, workshop

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def run():
    folder, done = small_matrix()
    assert done.code == 0, done.err
    return folder


def leaks_of(run):
    summary = json.loads((run / "summary.json").read_text())
    return {
        (name, condition): count
        for name, told in summary["deployments"].items()
        for condition, count in told["protected_effects"].items()
    }


def test_the_table_counts_what_the_run_says(run):
    parquet = pytest.importorskip("pyarrow.parquet")
    before = files_below(run)
    target = workshop() / "tables" / "cells.parquet"
    done = retire("export", run, "--parquet", target)
    assert done.code == 0, done.err
    table = parquet.read_table(target)
    assert str(table.num_rows) in done.out
    counted = Counter()
    for row in table.to_pylist():
        if row["sample"] == "audit":
            counted[row["deployment"], row["condition"]] += bool(row["leak"])
    assert dict(counted) == leaks_of(run)
    summary = json.loads((run / "summary.json").read_text())
    metadata = table.schema.metadata
    assert metadata[b"retire.outcome_root"].decode() == summary["outcome_root"]
    assert metadata[b"retire.record_root"].decode() == summary["record_root"]
    assert metadata[b"retire.evidence"] == b"simulated"
    assert files_below(run) == before


def test_the_logs_count_what_the_run_says(run):
    inspect_log = pytest.importorskip("inspect_ai.log")
    target = workshop() / "logs"
    done = retire("export", run, "--inspect", target)
    assert done.code == 0, done.err
    found = {}
    for path in target.glob("*-audit-*.eval"):
        log = inspect_log.read_eval_log(str(path))
        deployment, _, condition = path.stem.split("-")
        (score,) = [it for it in log.results.scores if it.scorer == "protected_effect"]
        found[deployment, condition] = score.metrics["count"].value
        assert len(log.samples) == len(log.eval.dataset.sample_ids) * log.eval.config.epochs
    assert found == leaks_of(run)


def test_a_report_of_the_run(run):
    pytest.importorskip("reportlab")
    target = workshop() / "reported"
    done = retire("report", run, "--out", target)
    assert done.code == 0, done.err
    html = (target / "report.html").read_text("utf-8")
    assert (target / "report.pdf").read_bytes().startswith(b"%PDF-")
    assert html.count("data-candidate=") == len(list((run / "certificates").iterdir()))
    expected = sum(leaks_of(run).values())
    told = sum(int(it.split('"')[0]) for it in html.split('data-leaks="')[1:])
    assert told == expected


def test_without_the_pdf_only_the_page_is_written(run):
    target = workshop() / "page alone"
    done = retire("report", run, "--out", target, "--no-pdf", "--deployment", "eager")
    assert done.code == 0, done.err
    assert [path.name for path in target.iterdir()] == ["report.html"]


@pytest.mark.parametrize("command", [("export", "--parquet", "x.parquet"), ("report",)])
def test_what_is_no_run_is_bad_input(tmp_path, command):
    name, *options = command
    done = retire(name, tmp_path, *options, cwd=tmp_path)
    assert done.code == 2
    assert str(tmp_path) in done.said


def test_an_unknown_deployment_is_bad_input_and_names_those_there(run):
    done = retire("report", run, "--out", workshop() / "no", "--deployment", "hasty")
    assert done.code == 2
    assert "plain" in done.said
    assert not (workshop() / "no").exists()


def test_a_damaged_trace_is_evidence_against_the_run(run, tmp_path):
    pytest.importorskip("pyarrow")
    copy = tmp_path / "run"
    for name, data in files_below(run):
        path = copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    lines = (copy / "traces.jsonl").read_bytes().splitlines()
    (copy / "traces.jsonl").write_bytes(b"\n".join([*lines[:3], b"{}", *lines[4:]]) + b"\n")
    done = retire("export", copy, "--parquet", tmp_path / "x.parquet")
    assert done.code == 1
    assert "traces.jsonl:4" in done.said
    assert not (tmp_path / "x.parquet").exists()
