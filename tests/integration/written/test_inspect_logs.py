"""A run as Inspect AI logs: read back with the library itself."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from retire.domain.errors import EvidenceError
from retire.verify.run import SealedRun

inspect_log = pytest.importorskip("inspect_ai.log")
export = pytest.importorskip("retire.pages.exports.inspect_log")

HOSTILE = "x\u202e<script>alert(1)</script>\x1b[2J"


def written(root, name="logs"):
    paths = export.write_inspect(SealedRun(root), root.parent / name)
    return [inspect_log.read_eval_log(path) for path in paths]


def bodies(root):
    return [json.loads(line)["body"] for line in (root / "traces.jsonl").read_text().splitlines()]


def counts(logs):
    return {
        (log.eval.task.split()[-1], score.scorer): score.metrics["count"].value
        for log in logs
        for score in log.results.scores
    }


def test_one_log_an_arm_with_every_cell_once(sealed):
    root = sealed()
    logs = written(root)
    arms = Counter(
        f"{cell['deployment']}-{cell['sample']}-{cell['condition']}"
        for cell in (body["cell"] for body in bodies(root))
    )
    assert {log.eval.task.split()[-1]: len(log.samples) for log in logs} == arms
    assert all(log.status == "success" for log in logs)
    assert {log.eval.model for log in logs} == {"retire/plain"}


def test_scores_count_what_the_observer_saw(sealed):
    root = sealed()
    expected = Counter()
    for body in bodies(root):
        cell = body["cell"]
        authorized = cell["member"] == "authorized"
        score, stage = (
            ("authorized_completion", "intended")
            if authorized
            else ("protected_effect", "protected")
        )
        arm = f"{cell['deployment']}-{cell['sample']}-{cell['condition']}"
        expected[arm, score] += body["d3"][stage]
    found = counts(written(root))
    assert {key: value for key, value in found.items() if value} == {
        key: value for key, value in expected.items() if value
    }


def test_messages_are_the_prompt_and_the_raw_answer(sealed):
    text = json.dumps({"refusal": HOSTILE})
    root = sealed(lambda *_: (text, False, False))
    run = SealedRun(root)
    prompts = {cell.key: run.prompt(cell) for cell in run.plan.cells}
    for log in written(root):
        for sample in log.samples:
            prompt = prompts[sample.metadata["cell"]]
            told = [(message.role, message.text) for message in sample.messages]
            asked = [(message["role"], message["content"]) for message in prompt.messages]
            assert told == [*asked, ("assistant", text)]
            assert sample.metadata["digests"]["prompt"] == prompt.digest
            assert sample.output.usage is not None


def test_a_cell_without_evidence_is_an_error_and_no_score(sealed):
    root = sealed(
        lambda _, cell: (
            None if cell.member == "invalid_state" else ('{"refusal": ""}', False, False)
        )
    )
    silent = [
        sample
        for log in written(root)
        for sample in log.samples
        if sample.metadata["member"] == "invalid_state"
    ]
    assert silent
    assert all(sample.error is not None and not sample.scores for sample in silent)


def test_one_file_keeps_the_arms_apart(sealed):
    root = sealed()
    (log,) = written(root, "all.eval")
    assert len(log.samples) == len(bodies(root))
    leaks = {
        score.name: score.metrics["count"].value
        for score in log.results.scores
        if score.scorer == "protected_effect"
    }
    assert leaks["protected_effect plain-audit-B2"] == 18
    assert leaks["protected_effect plain-audit-B1"] == 0


def test_a_prompt_that_does_not_come_out_again_is_named(sealed):
    root = sealed()
    path = root / "traces.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["body"]["prompt"] = "sha256:" + "0" * 64
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(EvidenceError) as caught:
        written(root)
    assert caught.value.where.startswith("task_value/plain/")
