"""An interrupt at the terminal stops a run in order, and the same command goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.integration.commands import PANEL, PROTOCOL, SCRIPT, as_in_the_foreground, retire

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_an_interrupted_matrix_says_so_leaves_nothing_running_and_resumes(tmp_path: Path) -> None:
    out = tmp_path / "run"
    protocol = tmp_path / "long.yaml"
    # Long enough that it cannot end before it is interrupted.
    protocol.write_text(PROTOCOL.replace("repetitions: 1", "repetitions: 40"))
    command = ["matrix", "--protocol", protocol, "--bundles", PANEL, "--out", out]
    process = subprocess.Popen(
        [str(SCRIPT), *map(str, command)],
        env={**os.environ, "RETIRE_HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=as_in_the_foreground,  # noqa: PLW1509  # no threads here yet
    )
    deadline = time.monotonic() + 60
    while not (out / "processes" / "world" / "world.sqlite").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # As a terminal does it: the signal goes to the whole foreground group.
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stored" in said
    assert "Traceback" not in said
    again = retire(*command, "--no-figures", home=tmp_path / "home")
    assert again.code == 0, again.err
    assert (out / "summary.json").exists()
