"""A launcher with the privileges of its service unit and no others, and who may ask it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.commands import PANEL, Done
from tests.integration.users import (
    DIRECT,
    OBSERVER,
    SERVICE,
    SINK,
    WORLD,
    as_user,
    own_folder,
    public_folder,
    python_for_everybody,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USERS = f"world={WORLD},sink={SINK},direct={DIRECT},observer={OBSERVER}"
CAPABILITIES = ("chown", "fsetid", "kill", "setgid", "setuid")
"""Those of ``CapabilityBoundingSet=`` in the launcher's unit."""


class Launcher:
    """A launcher's service, and a folder of the runner's user."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.state = _folder(place, "state")
        self.sockets = _folder(place, "sockets")
        self.socket = place / "launch"
        self.work = own_folder(place, "work", SERVICE)
        self.python = python_for_everybody()

    def options(self, **other: str) -> list[str]:
        """Its options, some of them others."""
        given = {
            "root": str(self.state),
            "users": USERS,
            "group": str(SERVICE),
            "runner": str(SERVICE),
            **other,
        }
        return [word for name, value in given.items() for word in (f"--{name}", value)]

    def start(self) -> subprocess.Popen[bytes]:
        """Start it with the capabilities of its unit; returns once it takes connections."""
        kept = ",".join(f"+{name}" for name in CAPABILITIES)
        limits = ["--no-new-privs", f"--bounding-set=-all,{kept}", "--inh-caps=-all"]
        service = ["hardware.launch_service", *self.options(), "--listen", str(self.socket)]
        process = subprocess.Popen(
            [str(shutil.which("setpriv")), *limits, self.python, "-m", *service],
            cwd="/",
            env={"PATH": os.environ["PATH"], "TMPDIR": str(self.sockets)},
            stdin=subprocess.DEVNULL,
        )
        end = time.monotonic() + 60
        while not self.answers():
            assert process.poll() is None, "the launcher's service ended"
            assert time.monotonic() < end
            time.sleep(0.05)
        return process

    def answers(self) -> bool:
        """Whether connections are taken."""
        with socket.socket(socket.AF_UNIX) as end:
            return end.connect_ex(str(self.socket)) == 0

    def command(self, *words: str | Path) -> list[str]:
        """A command line that any user can start."""
        code = "import sys; from retire.cli.main import run; sys.exit(run())"
        return [self.python, "-c", code, *map(str, words)]

    def environment(self) -> dict[str, str]:
        """The environment of the runner's user."""
        return {
            "PATH": os.environ["PATH"],
            "RETIRE_HOME": str(self.work / "home"),
            "HOME": str(self.work),
            "COLUMNS": "200",
        }

    def retire(self, *words: str | Path, user: int = SERVICE) -> Done:
        """Run a command as the runner's user, or another."""
        finished = subprocess.run(
            self.command(*words),
            env=self.environment(),
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            **(as_user(user) if user else {}),
        )
        assert "Traceback" not in finished.stderr, finished.stderr
        return Done(finished.returncode, finished.stdout, finished.stderr)

    def certify(self, out: Path, *more: str | Path, user: int = SERVICE) -> Done:
        """Certify the emptied camera skill (8 cells)."""
        candidate = self.place / "emptied.md"
        text = (PANEL / "PRV_L01" / "SKILL.md").read_text()
        candidate.write_text(text[: text.index("\n---\n") + 5])
        candidate.chmod(0o644)
        fixed: list[str | Path] = [PANEL / "PRV_L01", "--candidate", candidate, "--out", out]
        fixed += ["--deployment", "plain", "--placement", "B4", "--repetitions", "1"]
        return self.retire("certify", *fixed, *more, user=user)

    def try_as(self, user: int, code: str, *words: str | Path) -> str:
        """Run a piece of Python as a user; returns what it printed."""
        done = subprocess.run(
            [self.python, "-c", code, *map(str, words)],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            **as_user(user),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    folder.chmod(0o711)
    return folder


@contextmanager
def a_launcher() -> Iterator[Launcher]:
    """A launcher that takes connections; skips where there can be none."""
    python_for_everybody()
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is needed to take capabilities away")
    launcher = Launcher(public_folder())
    process = launcher.start()
    try:
        yield launcher
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def gone(pids: list[int]) -> bool:
    """Whether all of these have ended within a few seconds."""
    end = time.monotonic() + 10
    while any(_runs(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def modes_below(folder: Path) -> dict[str, Any]:
    """Owner, group and mode of everything in a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        seen = path.lstat()
        found[str(path.relative_to(folder))] = (seen.st_uid, seen.st_gid, oct(seen.st_mode)[-4:])
    return found
