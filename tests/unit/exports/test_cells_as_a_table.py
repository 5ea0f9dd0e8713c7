"""A run as a Parquet file: every declared cell, its types, and nothing that was not seen."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from retire.domain.errors import EvidenceError, InputError
from retire.domain.trace import outcome_root, record_root
from retire.pages.exports.columns import COLUMNS, arguments_json
from retire.verify.run import SealedRun

parquet = pytest.importorskip("pyarrow.parquet")
export = pytest.importorskip("retire.pages.exports.parquet")

HOSTILE = 'x\u202e<script>alert(1)</script>\x1b[2J "quoted" \U0001f600 \ufffe'
DOCS = Path(__file__).parents[3] / "docs" / "data.md"


def written(root, name="cells.parquet"):
    path = root.parent / name
    rows = export.write_parquet(SealedRun(root), path)
    table = parquet.read_table(path)
    assert table.num_rows == rows
    return table


def test_every_declared_cell_is_one_row_in_cell_order(sealed):
    root = sealed()
    table = written(root)
    run = SealedRun(root)
    assert [row["cell"] for row in table.to_pylist()] == [c.key for c in sorted(run.plan.cells)]
    assert table.column_names == [column.name for column in COLUMNS]


def test_counts_of_the_table_are_those_of_the_traces(sealed):
    root = sealed()
    rows = written(root).to_pylist()
    bodies = [json.loads(line)["body"] for line in (root / "traces.jsonl").read_text().splitlines()]
    for name in ("intended", "protected"):
        assert sum(row[name] for row in rows) == sum(body["d3"][name] for body in bodies)
    leaks = Counter(row["condition"] for row in rows if row["leak"])
    assert set(leaks) == {"B2"}
    assert leaks["B2"] == 2 * 3 * 3
    assert all(row["leak"] is None for row in rows if row["authorized"])
    assert all(row["success"] is None for row in rows if not row["authorized"])


def test_the_file_names_its_run(sealed):
    root = sealed()
    run = SealedRun(root)
    found = {k.decode(): v.decode() for k, v in written(root).schema.metadata.items()}
    assert found["retire.plan_digest"] == run.plan.digest
    assert found["retire.outcome_root"] == run.traces.outcome_root
    assert found["retire.evidence"] == run.evidence
    assert found["retire.cells"] == str(len(run.plan.cells))


def test_a_cell_without_evidence_says_nothing(sealed):
    def says(bundle, cell):
        if cell.member == "invalid_state":
            return None
        return '{"refusal": "no"}', False, False

    root = sealed(says)
    table = written(root)
    silent = [row for row in table.to_pylist() if row["member"] == "invalid_state"]
    assert silent
    for row in silent:
        assert row["complete"] is False
        assert row["intended"] is row["protected"] is row["leak"] is row["decision"] is None
        assert dict(row["truths"])["state"] is False
    metadata = table.schema.metadata
    assert int(metadata[b"retire.cells_without_evidence"]) == len(silent)


def test_words_of_others_come_through_unchanged(sealed):
    root = sealed(lambda *_: (json.dumps({"refusal": HOSTILE}), False, False))
    for row in written(root).to_pylist():
        assert row["proposal_words"] == HOSTILE
        assert json.loads(row["answer_text"]) == {"refusal": HOSTILE}


def test_two_exports_are_the_same_bytes(sealed):
    root = sealed()
    written(root, "one.parquet")
    written(root, "two.parquet")
    assert (root.parent / "one.parquet").read_bytes() == (root.parent / "two.parquet").read_bytes()


def test_marked_scalars_become_json():
    marked = {"a": "'21", "b": "#21", "c": True, "d": '\'say "no"', "e": "#0.1"}
    assert json.loads(arguments_json(marked)) == {
        "a": "21", "b": 21, "c": True, "d": 'say "no"', "e": 0.1,
    }  # fmt: skip
    assert '"e": 0.1' in arguments_json(marked)


def test_a_trace_of_no_declared_cell_is_named(sealed):
    root = sealed()
    lines = (root / "traces.jsonl").read_text().splitlines()
    (root / "traces.jsonl").write_text("\n".join([*lines, lines[0]]) + "\n")
    with pytest.raises(EvidenceError) as caught:
        written(root)
    assert caught.value.where.endswith(f"traces.jsonl:{len(lines) + 1}")


def test_the_roots_speak_of_the_traces_that_were_read_first(sealed):
    root = sealed()
    whole, changed = SealedRun(root).traces, SealedRun(root).traces
    assert whole.outcome_root == outcome_root(row.body for row in whole)
    assert whole.record_root == record_root([row.hash for row in whole])
    lines = (root / "traces.jsonl").read_text().splitlines()
    (root / "traces.jsonl").write_text("\n".join(reversed(lines)) + "\n")
    with pytest.raises(EvidenceError, match="changed while they were read"):
        assert changed.outcome_root


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(InputError) as caught:
        SealedRun(tmp_path)
    assert str(tmp_path) in caught.value.where


def test_the_documentation_names_every_column():
    rows = dict(
        re.findall(r"^\| `(\w+)` \| ([a-z ]+) \|", DOCS.read_text("utf-8"), flags=re.MULTILINE)
    )
    expected = {
        column.name: str(column.kind) + ("" if column.always else " or null") for column in COLUMNS
    }
    assert rows == expected


def test_the_example_of_the_documentation_runs(sealed, monkeypatch, capsys):
    root = sealed()
    written(root)
    monkeypatch.chdir(root.parent)
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), flags=re.DOTALL)
    exec(example, {})  # noqa: S102  # our own documentation
    assert "B2" in capsys.readouterr().out
