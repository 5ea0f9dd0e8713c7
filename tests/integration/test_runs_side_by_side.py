"""Runs do not touch each other, and neither concurrency nor repetition changes an outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.driving import Run, finish, query, same

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_two_runs_at_once_give_what_each_gives_alone(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    plans: dict[str, dict[str, Any]] = {"same": {}, "other": {"seed": 8}}
    passes = {name: Run(out=str(tmp_path / name), **plan) for name, plan in plans.items()}
    told = {}
    for name, pass_ in passes.items():
        assert pass_.end() == 0, pass_.stderr
        told[name] = pass_.finished
    assert set(passes["same"].programs.values()).isdisjoint(passes["other"].programs.values())
    alone = finish(out=str(tmp_path / "alone"), seed=8)
    for finished, expected in ((told["same"], undisturbed), (told["other"], alone)):
        assert finished is not None
        assert finished["findings"] == []
        same(finished, expected)
        assert set(finished["keys"].values()).isdisjoint(expected["keys"].values()), (
            "two runs share a key"
        )
    assert told["same"]["outcome_root"] != told["other"]["outcome_root"]
    assert set(told["same"]["attempts"]).isdisjoint(told["other"]["attempts"])
    for name in plans:
        world = tmp_path / name / "processes" / "world" / "world.sqlite"
        episodes = {row[0] for row in query(world, "SELECT attempt FROM episodes")}
        assert episodes == set(told[name]["attempts"])


def test_a_second_runner_in_the_same_folder_is_turned_away(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    out = str(tmp_path / "run")
    first = Run(out=out, answer_milliseconds=60, concurrency=4)
    assert first.until("advance", 3)
    second = Run(out=out)
    assert second.end() in {2, 3}
    assert second.finished is None
    assert "in use" in second.stderr
    assert first.end() == 0, first.stderr
    assert first.finished is not None
    assert first.finished["findings"] == []
    same(first.finished, undisturbed)


@pytest.mark.parametrize("concurrency", [1, 16])
def test_concurrency_changes_nothing(
    concurrency: int, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    again = finish(out=str(tmp_path / "run"), concurrency=concurrency)
    same(again, undisturbed)
    # Attempts, times and keys are this run's own; so the whole records differ.
    assert again["record_root"] != undisturbed["record_root"]
