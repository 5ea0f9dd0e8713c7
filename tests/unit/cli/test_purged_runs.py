"""A purged run is said to be purged, by every command that reads runs."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from retire.cli.main import app
from retire.domain.errors import InputError
from retire.service.queries import purge_run
from retire.service.reviewing.library import FolderRuns
from retire.store.database import migrate, open_database
from tests.made_folders import certified_folder

NOW = "2026-01-02T03:04:05Z"


@pytest.fixture(params=["gone", "begun"])
def purged(tmp_path, request):
    """Where a run was; "begun": a purge that could not remove everything yet."""
    root = certified_folder(tmp_path / "runs" / "r", tmp_path / "home", bundles=("PRV_L05",))
    kept = (root / "plan.json").read_bytes()
    engine = open_database(f"sqlite:///{tmp_path / 'service.sqlite'}")
    migrate(engine)
    purge_run(engine, root, "r", NOW)
    engine.dispose()
    assert not root.exists()
    if request.param == "begun":
        root.mkdir()
        (root / "plan.json").write_bytes(kept)
    return root


@pytest.mark.parametrize(
    "command",
    [
        ("verify", "{run}"),
        ("verify", "{run}/certificates/plain-B2.json"),
        ("export", "{run}", "--parquet", "{run}.parquet"),
        ("export", "{run}", "--inspect", "{run}.eval"),
        ("report", "{run}"),
        ("view", "{run}", "--port", "0"),
        ("keys", "--run", "{run}"),
    ],
)
def test_a_command_says_that_the_run_was_purged_and_when(command, purged, tmp_path, monkeypatch):
    monkeypatch.setenv("RETIRE_HOME", str(tmp_path / "home"))
    result = CliRunner().invoke(app, [word.format(run=purged) for word in command])
    assert isinstance(result.exception, InputError), result.output
    assert "purged" in result.exception.what
    assert NOW in result.exception.what
    assert result.exception.where == str(purged)


async def test_the_list_of_runs_names_it_and_its_page_refuses(purged):
    runs = FolderRuns(purged.parent)
    assert list(runs.folders()) == ["r"]
    (row,) = await runs.runs(None, "", 10)
    assert (row.state, row.going_on) == ("purged", False)
    with pytest.raises(InputError, match="purged"):
        runs.opened("r")


def test_a_second_purge_keeps_the_first_instant(purged, tmp_path):
    engine = open_database(f"sqlite:///{tmp_path / 'service.sqlite'}")
    purge_run(engine, purged, "r", "2027-01-01T00:00:00Z")
    engine.dispose()
    assert not purged.exists()
    with pytest.raises(InputError, match=NOW):
        FolderRuns(purged.parent).opened("r")
