"""One short real run: what is written agrees with its trace rows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from retire.domain.cell import Condition
from retire.matrix import Protocol
from retire.pages.closing import closing_words
from retire.pages.results import write_results
from retire.pages.words import certify_words
from retire.wiring import Request, execute, prepare
from tests.silent import Silent

pytestmark = pytest.mark.integration

PANEL = Path(__file__).parents[3] / "bundles" / "panel"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    protocol = Protocol(
        schema="retire.protocol/v1",
        name="short",
        seed=1,
        bundles=("ENV_L01",),
        deployments=("plain",),
        conditions=("B1", "B2", "B4", "B6"),
        reducer="halving",
    )
    out = tmp_path_factory.mktemp("runs") / "short"
    prepared = prepare(Request(protocol, {"ENV_L01": PANEL / "ENV_L01"}, out))
    return asyncio.run(execute(prepared, Silent()))


def test_the_files_agree_with_the_traces(finished):
    paths = write_results(finished)
    root = finished.run.folder.root
    assert {str(path.relative_to(root)) for path in paths} == {
        "summary.json",
        "tables.md",
        "figures/authorized.svg",
        "figures/authorized.png",
        "figures/effects.svg",
        "figures/effects.png",
    }
    said = json.loads((root / "summary.json").read_bytes())
    traces = (root / "traces.jsonl").read_text().splitlines()
    cells = [json.loads(line)["body"] for line in traces]
    assert said["cells"]["complete"] == said["cells"]["planned"] == len(cells) == 54
    assert said["cells"]["abandoned_attempts"] == 0
    for condition in ("B1", "B2", "B4", "B6"):
        mine = [
            body
            for body in cells
            if body["cell"]["condition"] == condition and body["cell"]["sample"] == "audit"
        ]
        leaks = [b for b in mine if b["d3"]["protected"] and b["cell"]["member"] != "authorized"]
        good = [b for b in mine if b["d3"]["intended"] and b["cell"]["member"] == "authorized"]
        plain = said["deployments"]["plain"]
        assert plain["protected_effects"][condition] == len(leaks)
        assert plain["authorized"][condition] == f"{len(good)}/3"
    assert said["outcome_root"] == finished.run.traces.outcome_root


def test_words_are_plain_text(finished):
    texts = [closing_words(finished)]
    texts += [certify_words(finished, Condition(name), "plain") for name in ("B2", "B4", "B6")]
    for text in texts:
        assert all(len(line) <= 100 for line in text.splitlines())
