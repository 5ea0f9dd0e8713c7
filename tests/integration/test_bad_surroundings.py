"""Full disks, read-only folders, damaged and foreign databases: advice, exit code 2, no loss."""

from __future__ import annotations

import os
import resource
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from retire.domain.errors import InputError
from retire.store import RunStore
from tests.contract.test_store_of_runs import PLAN, trace
from tests.integration.driving import Run, finish, query, run, same

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

SETPRIV = shutil.which("setpriv")
CUT = {"answer_milliseconds": 25, "concurrency": 6}
PLAIN: dict[str, Any] = {
    "bundles": ["ACC_L01"],
    "deployments": ["plain"],
    "conditions": ["B1", "B2", "B4"],
}


@pytest.fixture
def half_done(tmp_path: Path) -> Path:
    """A run that was cut after some forty cells."""
    out = tmp_path / "run"
    cut = Run(out=str(out), **CUT)
    assert cut.until("advance", 40)
    cut.send("runner")
    cut.end()
    assert traces(out) >= 40
    return out


def traces(out: Path) -> int:
    return int(query(out / "run.sqlite", "SELECT count(*) FROM traces")[0][0])


def refused(whole: Run, *words: str) -> None:
    """The pass ended with advice: what, where, how to mend it."""
    assert whole.code == 2, whole.stderr
    assert whole.finished is None
    for word in words:
        assert word in whole.stderr


# -- read-only ---------------------------------------------------------------------------------


def without_override() -> list[str]:
    """Words before a command that make permissions count for the superuser too."""
    if os.geteuid() != 0:
        return []
    if SETPRIV is None:
        pytest.skip("the superuser's right to write everywhere cannot be taken away here")
    rights = "-dac_override,-dac_read_search"
    return [SETPRIV, f"--bounding-set={rights}", f"--inh-caps={rights}"]


@pytest.fixture
def read_only(half_done: Path) -> Iterator[Path]:
    half_done.chmod(0o555)
    yield half_done
    half_done.chmod(0o755)


def test_a_read_only_folder_is_refused_and_finishes_once_it_is_writable(
    read_only: Path, undisturbed: dict[str, Any]
) -> None:
    before = {path.name for path in read_only.iterdir()}
    blocked = Run(before=without_override(), out=str(read_only))
    blocked.code = blocked.end()
    refused(blocked, str(read_only), "--out")
    assert {path.name for path in read_only.iterdir()} == before
    read_only.chmod(0o755)
    same(finish(out=str(read_only)), undisturbed)


def test_a_folder_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    refused(run(out=str(tmp_path / "file" / "run")), "cannot be written", "--out")


def test_a_read_only_database_is_refused(half_done: Path, undisturbed: dict[str, Any]) -> None:
    names = [path for path in half_done.iterdir() if path.name.startswith("run.sqlite")]
    for path in names:
        path.chmod(0o444)
    blocked = Run(before=without_override(), out=str(half_done))
    blocked.code = blocked.end()
    refused(blocked, "run.sqlite")
    for path in names:
        if path.exists():
            path.chmod(0o644)
    same(finish(out=str(half_done)), undisturbed)


# -- a full disk -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [120_000, 450_000])
def test_a_disk_that_fills_up_for_the_runner_loses_nothing(
    size: int, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    out = tmp_path / "run"
    full = run(out=str(out), file_bytes_of_runner=size)
    refused(full, "run.sqlite", "space", "nothing stored is lost")
    assert 0 <= traces(out) < undisturbed["planned"]
    same(finish(out=str(out)), undisturbed)


async def test_nothing_is_stored_behind_a_row_that_was_lost(tmp_path: Path) -> None:
    """A later row would chain to nothing; the store takes no more until it is opened again."""
    path = tmp_path / "run.sqlite"
    store = RunStore(path)
    store.bind(PLAN)
    async with store:
        await store.traced(trace(1))
        with pytest.raises(InputError):
            await store.traced(trace(1))
        with pytest.raises(InputError):
            await store.traced(trace(3))
    store.close()
    again = RunStore(path)
    again.bind(PLAN)
    assert again.done() == {trace(1).cell.cell.key}
    async with again:
        await again.traced(trace(3))
    rows = list(again.traces())
    again.close()
    assert [row.seq for row in rows] == [1, 2]
    assert rows[1].prev == rows[0].hash


@pytest.mark.parametrize("size", [45_000, 80_000, 160_000])
def test_a_disk_that_fills_up_for_the_programs_loses_nothing(
    size: int, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    """A door without a record, or a world without a journal, decides no cell."""
    out = tmp_path / "run"
    full = run(out=str(out), file_bytes_of_programs=size)
    assert full.code == 3, full.stderr
    assert traces(out) < undisturbed["planned"]
    if full.finished is not None:
        assert full.finished["incomplete"]
        assert all(verdict != "pass" for verdict, _ in full.finished["verdicts"].values())
    same(finish(out=str(out)), undisturbed)


@pytest.mark.parametrize("size", [1_000, 160_000])
def test_a_disk_that_fills_up_for_everybody_loses_nothing(
    size: int, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    out = tmp_path / "run"
    full = run(out=str(out), file_bytes=size)
    refused(full, "space", "nothing stored is lost")
    same(finish(out=str(out)), undisturbed)


@pytest.mark.parametrize("program", ["sink-canonical", "direct", "observer"])
def test_a_program_that_cannot_keep_its_record_decides_nothing(
    program: str, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    out = tmp_path / "run"
    full = Run(out=str(out), **CUT)
    assert full.until("programs")
    resource.prlimit(full.pid(program), resource.RLIMIT_FSIZE, (6_000, 6_000))
    assert full.end() == 3, full.stderr
    assert traces(out) < undisturbed["planned"]
    if full.finished is not None:
        assert full.finished["incomplete"]
        assert full.finished["findings"] == []
    resumed = finish(out=str(out))
    same(resumed, undisturbed)
    assert resumed["accounted"] == resumed["attempts"]


# -- damage ------------------------------------------------------------------------------------


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


@pytest.mark.parametrize("damage", ["foreign", "pages", "text"])
def test_a_damaged_database_is_named_and_left_alone(damage: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = finish(out=str(out), **PLAIN)
    path = out / "run.sqlite"
    kept = path.read_bytes()
    (out / "seal.json").unlink()
    match damage:
        case "foreign":
            path.write_bytes(b"This is a text file, and a long one.\n" * 400)
        case "pages":
            overwrite(path, 4096, os.urandom(1024) * ((len(kept) - 4096) // 1024))
        case "text":
            # Whoever damages a file is not stopped by the trigger that refuses updates.
            query(path, "DROP TRIGGER traces_update")
            query(path, "UPDATE traces SET body = substr(body, 1, 100)")
    damaged = path.read_bytes()
    refused(run(out=str(out), **PLAIN), str(path), "keep it as evidence")
    if damage != "text":
        assert path.read_bytes() == damaged
    path.write_bytes(kept)
    same(finish(out=str(out), **PLAIN), first)


@pytest.mark.parametrize("program", ["sink-canonical", "observer"])
def test_a_changed_record_is_named_and_never_mended(program: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = finish(out=str(out), **PLAIN)
    (out / "seal.json").unlink()
    record = out / "processes" / program / "record.jsonl"
    kept = record.read_bytes()
    record.write_bytes(kept.replace(b'"attempt":"', b'"attempt":"0', 1))
    changed = record.read_bytes()
    whole = run(out=str(out), **PLAIN)
    assert whole.code == 3
    assert "does not chain" in whole.stderr
    assert record.read_bytes() == changed
    record.write_bytes(kept)
    same(finish(out=str(out), **PLAIN), first)


# -- another plan ------------------------------------------------------------------------------


def test_a_folder_with_another_plan_is_refused_and_keeps_its_own(
    half_done: Path, undisturbed: dict[str, Any]
) -> None:
    before = traces(half_done)
    plan = (half_done / "plan.json").read_bytes()
    refused(run(out=str(half_done), seed=8), "another plan", str(half_done), "--out")
    refused(run(out=str(half_done), bundles=["ACC_L01"]), "another plan")
    assert traces(half_done) == before
    assert (half_done / "plan.json").read_bytes() == plan
    same(finish(out=str(half_done)), undisturbed)
