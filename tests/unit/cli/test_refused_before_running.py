"""Inputs that are refused in words before anything runs, because they would be misunderstood."""

from __future__ import annotations

from pathlib import Path

import pytest

from retire.bundle import read_files
from retire.cli.certify import certify
from retire.domain.errors import InputError
from retire.matrix import Protocol
from retire.wiring import Request, prepare

PANEL = Path(__file__).parents[3] / "bundles" / "panel"


def written(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def twins(tmp_path: Path, tasks: bytes = b"") -> Request:
    """A bundle, and another of the same world and tasks; ``tasks`` is added to the other's."""
    files = read_files(PANEL / "PRV_L05")
    renamed = {name: data.replace(b"PRV_L05", b"PRV_X05") for name, data in files.items()}
    same = {"world.yaml": files["world.yaml"], "tasks.yaml": files["tasks.yaml"] + tasks}
    folders = {
        "PRV_L05": PANEL / "PRV_L05",
        "PRV_X05": written(tmp_path / "PRV_X05", {**renamed, **same}),
    }
    protocol = Protocol(
        schema="retire.protocol/v1", name="twins", seed=1, bundles=tuple(folders),
        deployments=("plain",), conditions=("B1", "B2"),
    )  # fmt: skip
    return Request(protocol, folders, tmp_path / "out")


def test_two_bundles_of_one_world_and_tasks_are_not_run_together(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PRV_L05") as caught:
        prepare(twins(tmp_path))
    assert caught.value.where.endswith("PRV_X05")
    assert not (tmp_path / "out").exists()


def test_a_comment_tells_them_apart(tmp_path: Path) -> None:
    assert prepare(twins(tmp_path, b"# of the other house\n")).plan.cells


def test_an_option_of_a_server_is_refused_without_one() -> None:
    bundle = PANEL / "PRV_L05"
    with pytest.raises(InputError) as caught:
        certify(bundle, candidate=bundle / "SKILL.md", deployment="plain", insecure_http=True)
    assert caught.value.where == "--insecure-http"
    assert "--server" in caught.value.mend
