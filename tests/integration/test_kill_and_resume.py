"""SIGKILL at any moment: nothing survives, nothing is lost, and the outcome is the same.

The plan has 2 bundles x 4 deployments x 26 cells (2 of task value, 6 conditions x 4 members), 208
in all; with one repetition every door is in it.
"""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.driving import (
    PROGRAMS,
    Run,
    alive,
    finish,
    query,
    run,
    same,
    survivors,
)

pytestmark = pytest.mark.integration

KILLS = 10
SLOW = {"answer_milliseconds": 25, "concurrency": 6}
"""Some 150 cells a second: slow enough for ten kills before the end."""
SMALL: dict[str, Any] = {
    "bundles": ["ACC_L01"],
    "deployments": ["plain"],
    "conditions": ["B1", "B2"],
    "task_value": False,
    "concurrency": 1,
}
"""Eight cells, one after the other."""
UNLOCK = json.dumps({"tool": "lock_unlock", "arguments": {"target": "lock.front_door"}})
DECLINE = json.dumps({"refusal": "not now"})


def started(pass_: Run) -> Run:
    if not pass_.until("programs"):
        code = pass_.end()
        pytest.fail(f"exit {code}, nothing was started: {pass_.stderr}")
    return pass_


@pytest.mark.parametrize("target", ["runner", "sink-canonical", "direct", "observer", "world"])
def test_ten_kills_leave_no_trace_in_the_outcome(
    target: str, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    draw = random.Random(f"kill {target}")
    out = str(tmp_path / "run")
    for _ in range(KILLS):
        cut = started(Run(out=out, **SLOW))
        assert cut.until("advance", draw.randint(1, 8)), "the run was over before the kill"
        time.sleep(draw.uniform(0, 0.02))
        cut.send(target)
        code = cut.end()
        if target == "runner":
            assert code == -signal.SIGKILL
        else:
            assert code == 3
            assert "run the same command again" in cut.stderr
        assert cut.finished is None
    answered = query(
        tmp_path / "run" / "run.sqlite",
        "SELECT count(DISTINCT cell) FROM attempts WHERE answer IS NOT NULL",
    )[0][0]
    assert 0 < answered < undisturbed["planned"]
    calls = tmp_path / "calls"
    resumed = finish(out=out, calls=str(calls))
    same(resumed, undisturbed)
    # Every attempt that was ever begun is in the record of some row, cut ones included.
    assert resumed["accounted"] == resumed["attempts"]
    assert len(resumed["attempts"]) > resumed["rows"]
    # A completed answer is never asked for again.
    assert len(calls.read_text().splitlines()) == undisturbed["planned"] - answered


@pytest.mark.parametrize("target", ["launcher", "sink-exact"])
def test_any_other_process_may_die_too(
    target: str, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    out = str(tmp_path / "run")
    cut = started(Run(out=out, **SLOW))
    assert cut.until("advance", 5)
    cut.send(target)
    assert cut.end() == 3
    same(finish(out=out), undisturbed)


def test_nothing_survives_a_runner_that_dies_while_programs_start(tmp_path: Path) -> None:
    out = tmp_path / "run"
    cut = Run(out=str(out))
    while not any((out / "processes" / name).exists() for name in PROGRAMS):
        assert cut.process.poll() is None
        time.sleep(0.005)
    children = {f"{pid}": pid for pid in descendants(cut.process.pid)}
    assert children
    cut.send("runner")
    assert cut.end() == -signal.SIGKILL
    assert survivors(children) == {}


def descendants(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *descendants(int(child))]
    return found


def test_a_pass_that_is_cut_while_sealing_is_sealed_again(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    """The seal of an earlier, incomplete pass never stands for rows that came later."""
    out = str(tmp_path / "run")
    incomplete = run(out=out, failing_calls=10)
    assert incomplete.code == 3
    assert incomplete.finished is not None
    assert incomplete.finished["rows"] == undisturbed["planned"] - 10
    assert len(incomplete.finished["incomplete"]) == 10
    assert "the endpoint is down" in incomplete.stderr
    cut = started(Run(out=out, answer_milliseconds=500))
    assert cut.until("sealing")
    cut.send("runner")
    assert cut.end() == -signal.SIGKILL
    resumed = finish(out=out)
    same(resumed, undisturbed)
    assert resumed["accounted"] == resumed["attempts"]


def test_a_finished_run_only_reports(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    first = finish(out=out, **SMALL)
    again = Run(out=out, **SMALL)
    assert again.end() == 0
    assert again.programs == {}
    assert again.finished is not None
    same(again.finished, first)
    assert again.finished["record_root"] == first["record_root"]


# -- a leak in a cut attempt -----------------------------------------------------------------


def cut_after_acts(out: Path, number: int) -> str:
    """Kill the runner right after the n-th act; returns the attempt that acted."""
    cut = started(Run(out=str(out), answers=UNLOCK, kill_after_act=number, **SMALL))
    assert cut.end() == -signal.SIGKILL
    (row,) = query(
        out / "run.sqlite",
        "SELECT attempt FROM attempts WHERE cell NOT IN (SELECT cell FROM traces)",
    )
    return str(row[0])


def rows_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["body"] for line in (out / "traces.jsonl").read_bytes().splitlines()]


def test_a_leak_counts_although_the_resumed_attempt_does_not_leak(tmp_path: Path) -> None:
    out = tmp_path / "run"
    # Four acts of B1, the authorized one of B2, then one on an invalid request.
    attempt = cut_after_acts(out, 6)
    # The resumed attempt is made harmless: as if the answer had been a refusal all along.
    harmless = json.dumps({"mode": "json", "text": DECLINE, "finish_reason": "stop"})
    query(out / "run.sqlite", "UPDATE attempts SET answer = ? WHERE attempt = ?", harmless, attempt)
    resumed = finish(out=str(out), answers=DECLINE, **SMALL)
    (row,) = [row for row in rows_of(out) if row["earlier_attempts"]]
    assert row["earlier_attempts"] == [attempt]
    assert row["cell"]["condition"] == "B2"
    assert row["cell"]["member"] != "authorized"
    assert row["d1"]["outcome"] == "refusal"
    assert row["d2"]["outcome"] == "not_reached"
    assert row["d3"]["protected"] is True
    verdict, gates = resumed["verdicts"]["plain/B2"]
    assert verdict == "fail"
    assert gates["authority"]["protected_effects"] == 1


def test_a_cut_attempt_that_cannot_be_observed_keeps_its_cell_open(tmp_path: Path) -> None:
    out = tmp_path / "run"
    cut_after_acts(out, 2)
    # The sensor fails just while the cut attempt is looked at; everything later is read.
    blind = run(out=str(out), answers=DECLINE, blind_asks=2, **SMALL)
    assert blind.code == 3
    assert blind.finished is not None
    assert blind.finished["rows"] == blind.finished["planned"] - 1
    assert blind.finished["verdicts"]["plain/B2"][0] != "pass"
    finish(out=str(out), answers=DECLINE, **SMALL)
    (row,) = [row for row in rows_of(out) if row["earlier_attempts"]]
    assert row["d3"]["protected"] is True


# -- answers are asked for once --------------------------------------------------------------


def test_an_answer_that_was_stored_is_proposed_and_not_asked_again(tmp_path: Path) -> None:
    out, calls = tmp_path / "run", tmp_path / "calls"
    cut = started(Run(out=str(out), answers=UNLOCK, kill_before_proposal=3, **SMALL))
    assert cut.end() == -signal.SIGKILL
    # A deployment that would answer otherwise now.
    finish(out=str(out), answers=DECLINE, calls=str(calls), **SMALL)
    (row,) = [row for row in rows_of(out) if row["earlier_attempts"]]
    assert row["answer"]["text"] == UNLOCK
    assert row["d1"]["outcome"] == "proposal"
    assert len(calls.read_text().splitlines()) == 5


def test_a_resumed_reduction_asks_nothing_twice(tmp_path: Path) -> None:
    plan: dict[str, Any] = {
        "bundles": ["ACC_L01"],
        "deployments": ["plain"],
        "conditions": ["B1", "B2"],
        "reduces": True,
        "reducer": "one-at-a-time",
        "answer_milliseconds": 5,
    }
    whole = finish(out=str(tmp_path / "whole"), calls=str(tmp_path / "all"), **plan)
    out = tmp_path / "run"
    for number in (10, 31):
        cut = started(
            Run(out=str(out), calls=str(tmp_path / "cut"), kill_before_proposal=number, **plan)
        )
        assert cut.end() == -signal.SIGKILL
    resumed = finish(out=str(out), calls=str(tmp_path / "cut"), **plan)
    same(resumed, whole)
    assert resumed["deleted"] == whole["deleted"]
    asked, expected = ((tmp_path / name).read_text().splitlines() for name in ("cut", "all"))
    assert set(asked) == set(expected)
    unanswered = query(out / "run.sqlite", "SELECT count(*) FROM attempts WHERE answer IS NULL")[0][
        0
    ]
    assert len(asked) <= len(expected) + unanswered


# -- a program that falls silent -------------------------------------------------------------


@pytest.mark.parametrize("target", ["observer", "world"])
def test_a_silent_program_ends_the_pass_and_is_no_evidence(
    target: str, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    out = str(tmp_path / "run")
    stopped = started(Run(out=out, silence_seconds=1.0, **SLOW))
    assert stopped.until("advance", 20)
    stopped.send(target, signal.SIGSTOP)
    assert stopped.end() == 3
    assert "did not answer" in stopped.stderr
    assert stopped.finished is None
    assert not alive(stopped.pid(target))
    same(finish(out=out), undisturbed)


def test_an_observer_that_cannot_read_gives_no_rows(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    out = tmp_path / "run"
    blind = run(out=str(out), hide_ground_truth=True)
    assert blind.code == 3
    assert query(out / "run.sqlite", "SELECT count(*) FROM traces") == [(0,)]
    if blind.finished is not None:
        assert all(verdict != "pass" for verdict, _ in blind.finished["verdicts"].values())
    world = out / "processes" / "world"
    (world / "hidden.sqlite").rename(world / "world.sqlite")
    same(finish(out=str(out)), undisturbed)
