"""What a server that was killed had half made is gone after the next start, and nothing else."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from retire.bundle import read_files
from retire.cli.remote import packed
from retire.service.debris import MARK, sweep_runs, sweep_uploads, under_way
from tests.databases import fresh_database
from tests.integration.commands import PANEL
from tests.integration.servers import Server, emptied, make_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.integration

FIELDS = {"deployment": "plain", "placement": "B4", "repetitions": "1"}


def bundle_archive() -> tuple[str, bytes]:
    """The thirteenth bundle: the door's under another id, which no operator registered."""
    files = {
        name: data.replace(b"ACC_L01", b"ACC_X01")
        for name, data in read_files(PANEL / "ACC_L01").items()
    }
    return ("bundle.tar.gz", packed(files))


def call(server: Server, stuck_at: str) -> None:
    """Make the call that never ends."""
    candidate = ("SKILL.md", emptied("ACC_L01"))
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "submission": ("/certify", {"data": {**FIELDS, "bundle": "ACC_L01"}}),
        "upload": ("/certify", {"data": FIELDS, "files": {"archive": bundle_archive()}}),
        "bundle": ("/bundles", {"files": {"archive": bundle_archive()}}),
    }
    path, given = calls[stuck_at]
    if path == "/certify":
        given["files"] = {**given.get("files", {}), "candidate": candidate}
    with suppress(httpx.HTTPError):
        server.client.post(path, **given)


def debris(data: Path) -> list[Path]:
    """Folders that belong to nothing."""
    marked = [path.parent for path in data.glob(f"runs/*/{MARK}")]
    return [*marked, *data.glob("arriving/*"), *data.glob("uploads/retire-upload-*")]


def until(holds: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("stuck_at", ["submission", "upload", "bundle"])
def test_a_killed_server_s_half_made_folders_are_gone_after_the_next_start(
    tmp_path: Path, stuck_at: str
) -> None:
    data = tmp_path / "data"
    database = fresh_database("sqlite", tmp_path)
    token = make_token(database)
    with Server(data, database, token) as server:
        kept = server.submit()["id"]
        outcome = server.outcome(kept)
    with Server(data, database, token, stuck_at=stuck_at) as server:
        calling = threading.Thread(target=call, args=(server, stuck_at))
        calling.start()
        until(lambda: debris(data))
        # A run that was stored a moment before its mark was taken off.
        (data / "runs" / kept / MARK).touch()
        server.kill()
        calling.join(30)
    assert len(debris(data)) > 1
    with Server(data, database, token) as server:
        until(lambda: not debris(data))
        assert server.outcome(kept) == outcome
        assert [run["id"] for run in server.client.get("/runs").json()["runs"]] == [kept]
        envelope = server.client.get(f"/certificates/{kept}").json()
        assert server.client.post("/verify", json=envelope).json()["intact"] is True
        # What was cut can be done again.
        registered = server.client.post("/bundles", files={"archive": bundle_archive()})
        assert registered.status_code == 201
        again = server.submit(bundle="ACC_L01")["id"]
        assert server.outcome(again)


def test_with_another_database_no_run_s_folder_is_taken_for_debris(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "seal.json").write_text("{}")
    assert sweep_runs(tmp_path, lambda _: False)
    assert (folder / "seal.json").exists()


def test_what_another_server_is_just_making_is_left_alone(tmp_path: Path) -> None:
    marked = tmp_path / "runs" / "one"
    upload = tmp_path / "uploads" / "retire-upload-1"
    for folder in (marked, upload):
        folder.mkdir(parents=True)
    (marked / MARK).touch()
    with under_way(tmp_path), under_way(tmp_path / "uploads"):
        assert not sweep_runs(tmp_path, lambda _: False)
        assert not sweep_uploads(tmp_path / "uploads")
        assert marked.exists()
        assert upload.exists()
    assert sweep_runs(tmp_path, lambda _: False)
    assert sweep_uploads(tmp_path / "uploads")
    assert not marked.exists()
    assert not upload.exists()


def test_an_admin_purges_a_run_by_a_call(tmp_path: Path) -> None:
    data = tmp_path / "data"
    database = fresh_database("sqlite", tmp_path)
    admin = make_token(database)
    owner = make_token(database, "certify", "t-owner")
    with Server(data, database, owner) as server:
        run = server.submit()["id"]
        server.outcome(run)
        assert server.client.post(f"/runs/{run}/purge").status_code == 403
        headers = {"Authorization": f"Bearer {admin}"}
        for _ in range(2):
            answer = server.client.post(f"/runs/{run}/purge", headers=headers)
            assert answer.status_code == 200, answer.text
            assert answer.json()["state"] == "complete"
        assert not (data / "runs" / run).exists()
        traces = server.client.get(f"/runs/{run}/traces").json()["traces"]
        assert traces
        assert all(trace["body"]["answer"] is None for trace in traces)
        said = server.said()
        assert said.count('"action": "run.purge"') == 3
        assert '"token": "t-test"' in said
