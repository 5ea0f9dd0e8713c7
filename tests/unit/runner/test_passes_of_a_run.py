"""What a run keeps of its passes, and how a run that a launcher serves goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from retire.domain.errors import IncompleteError, InputError
from retire.runner.folder import RunFolder
from retire.runner.launching import launched_programs, refuse_launched, remove_launched
from retire.runner.passes import keep_pass, kept_passes

if TYPE_CHECKING:
    from pathlib import Path

STATE = "0123456789abcdef" * 2


def test_a_pass_is_kept_once(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert kept_passes(folder) == []
    for users in ({"runner": 1}, {"runner": 1}, {"runner": 2}, {"runner": 1}):
        keep_pass(folder, users, resumed=False)
    assert kept_passes(folder) == [{"runner": 1}, {"runner": 2}]


def test_attempts_of_which_nothing_was_kept_count_as_a_pass(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    keep_pass(folder, {"runner": 1}, resumed=True)
    keep_pass(folder, {"runner": 1}, resumed=True)
    assert kept_passes(folder) == [{}, {"runner": 1}]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"passes": [1]}', '{"passes": [{"runner": "1"}]}']
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    folder = RunFolder(tmp_path)
    folder.passes.write_text(text)
    with pytest.raises(InputError) as told:
        keep_pass(folder, {"runner": 1}, resumed=False)
    assert told.value.where == str(folder.passes)
    assert folder.passes.read_text() == text


def test_a_run_that_a_launcher_serves_does_not_go_on_without(tmp_path: Path) -> None:
    processes = tmp_path / "processes"
    refuse_launched(processes)
    processes.symlink_to(tmp_path / STATE)
    with pytest.raises(InputError, match="launcher"):
        refuse_launched(processes)


async def test_a_run_begun_without_a_launcher_does_not_go_on_with_one(tmp_path: Path) -> None:
    (tmp_path / "processes").mkdir()
    with pytest.raises(InputError, match="begun without a launcher"):
        async with launched_programs(tmp_path / "none", tmp_path / "processes", []):
            pass


async def test_a_link_that_no_run_makes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "processes").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="no link"):
        async with launched_programs(tmp_path / "none", tmp_path / "processes", []):
            pass


def test_there_is_nothing_to_remove_without_a_launcher(tmp_path: Path) -> None:
    (tmp_path / "processes").mkdir()
    remove_launched(None, tmp_path / "processes")
    remove_launched(tmp_path / "none", tmp_path / "other")


def test_what_cannot_be_removed_is_told(tmp_path: Path) -> None:
    (tmp_path / "processes").symlink_to(tmp_path / STATE)
    for launcher in (None, tmp_path / "none"):
        with pytest.raises(IncompleteError, match="removes none"):
            remove_launched(launcher, tmp_path / "processes")


def test_what_is_kept_is_json_with_a_schema(tmp_path: Path) -> None:
    keep_pass(RunFolder(tmp_path), {"runner": 1}, resumed=False)
    kept = json.loads((tmp_path / "passes.json").read_text())
    assert kept["schema"] == "retire.passes/v1"
