"""What the pages say of a deployment follows the operator's configuration, not the embedded one."""

from __future__ import annotations

from functools import partial

import pytest
from typer.testing import CliRunner

from retire.cli.main import app
from retire.deployments import EMBEDDED
from retire.deployments.simulated.deployment import SimulatedDeployment
from retire.deployments.simulated.profiles import PROFILES
from retire.service.reviewing.library import FolderRuns
from tests.made_folders import certified_folder


@pytest.fixture
def folder(tmp_path):
    return certified_folder(tmp_path / "run", tmp_path / "home", bundles=("PRV_L05",))


def stale(folder, catalog):
    return FolderRuns(folder, catalog).opened("run").verification("plain-B2").stale


def test_a_deployment_that_is_configured_differently_now_ages_its_certificate(folder):
    other = next(name for name in PROFILES if name != "plain")
    changed = partial(SimulatedDeployment, "plain", PROFILES[other])
    assert stale(folder, EMBEDDED) == ()
    assert len(stale(folder, EMBEDDED.extended({"plain": changed}))) == 1


def test_a_deployments_file_that_is_not_there_is_refused(folder, tmp_path):
    missing = str(tmp_path / "none.yaml")
    result = CliRunner().invoke(app, ["view", str(folder), "--deployments", missing])
    assert result.exit_code != 0
    assert "none.yaml" in str(result.exception or result.output)
