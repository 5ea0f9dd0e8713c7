"""A sink that dies between the durable intent and the outcome never sends that act again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from retire.bundle import load_bundle
from sink.record import ChainState, Head, check_chain
from tests.integration.driving import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

ATTEMPT, OTHER = "cd" * 16, "ef" * 16


@pytest.fixture
def config(tmp_path: Path, panel: Path) -> dict[str, Any]:
    bundle = load_bundle(panel / "ACC_L01")
    text = json.dumps({"tool": "lock_unlock", "arguments": {"target": "lock.front_door"}})
    return {
        "bundle": str(panel / "ACC_L01"),
        "record": str(tmp_path / "record.jsonl"),
        "sent": str(tmp_path / "sent"),
        "message": {
            "op": "propose",
            "attempt": ATTEMPT,
            "contract": bundle.digests.contract,
            "episode": "sha256:" + "2" * 64,
            "snapshot": bundle.member("authorized").snapshot_digest,
            "answer": json.dumps({"mode": "json", "text": text, "finish_reason": "stop"}),
        },
    }


def ask(config: dict[str, Any], dies: str, attempt: str = ATTEMPT) -> dict[str, Any] | None:
    given = {**config, "dies": dies, "message": {**config["message"], "attempt": attempt}}
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.dying_sink", json.dumps(given)],
        cwd=REPOSITORY,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize(("dies", "sent"), [("before", 0), ("after", 1)])
def test_it_is_in_doubt_and_never_sent_again(
    config: dict[str, Any], tmp_path: Path, dies: str, sent: int
) -> None:
    assert ask(config, dies) is None
    for _ in range(2):
        again = ask(config, "never")
        assert again is not None
        assert (again["decision"], again["reason"]) == ("deny", "grant_replayed")
        assert again["act"] is None
    lines = tmp_path / "sent"
    assert (lines.read_text().count("\n") if lines.exists() else 0) == sent
    # Another attempt has a nonce and a grant of its own.
    fresh = ask(config, "never", OTHER)
    assert fresh is not None
    assert fresh["decision"] == "allow"
    assert fresh["act"]["status"] == "done"

    report = check_chain((tmp_path / "record.jsonl").read_bytes(), None)
    assert report.state is ChainState.NOT_ANCHORED
    bodies = [entry.body for entry in report.entries]
    intents = [body for body in bodies if body.get("decision") == "allow"]
    outcomes = [body for body in bodies if body["kind"] == "outcome"]
    assert [body["attempt"] for body in intents] == [ATTEMPT, OTHER]
    assert [body["attempt"] for body in outcomes] == [OTHER]
    assert len({body["nonce"] for body in bodies if body["kind"] == "decision"}) == 4


def test_a_torn_last_line_is_recovered_on_record(config: dict[str, Any], tmp_path: Path) -> None:
    """A sink that is killed inside a write goes on; the torn bytes stay as evidence."""
    assert ask(config, "never") is not None
    record = tmp_path / "record.jsonl"
    whole = record.read_bytes()
    record.write_bytes(whole[:-20])
    again = ask(config, "never")
    assert again is not None
    assert (again["decision"], again["reason"]) == ("deny", "grant_replayed")
    report = check_chain(record.read_bytes(), None)
    assert report.state is ChainState.NOT_ANCHORED
    assert [entry.body["kind"] for entry in report.entries] == ["decision", "recovery", "decision"]
    head = Head("sink/canonical", report.entries[-1].seq, report.entries[-1].hash, "", "", "")
    assert check_chain(record.read_bytes(), head).state is ChainState.INTACT
    torn = [path for path in tmp_path.iterdir() if "torn" in path.name]
    assert len(torn) == 1
    assert whole.endswith(torn[0].read_bytes() + whole[-20:])
