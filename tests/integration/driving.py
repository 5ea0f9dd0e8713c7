"""Start, follow, kill and resume runs that live in a process of their own."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = ("world", "sink-canonical", "sink-exact", "direct", "observer")
COMPARED = ("outcome_root", "verdicts", "counts", "planned", "rows")
"""What a disturbed run must have in common with an undisturbed one."""


def command(**config: Any) -> list[str]:
    return [sys.executable, "-m", "tests.integration.driver", json.dumps(config)]


UNDER_WAY: list[Run] = []
"""Passes that have not been carried to their end; a failed test leaves some behind."""


class Run:
    """One pass of a run."""

    code = 0

    def __init__(self, *, before: list[str] | None = None, **config: Any) -> None:
        # A file, not a pipe: nobody has to read along for the run to go on.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the pass
        self.process = subprocess.Popen(
            [*(before or []), *command(**config)],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self.programs: dict[str, int] = {}
        self.finished: dict[str, Any] | None = None
        self.stderr = ""
        UNDER_WAY.append(self)

    def until(self, event: str, number: int = 1) -> bool:
        """Read events until the n-th of a kind; False where the pass ended before."""
        assert self.process.stdout is not None
        seen = 0
        while seen < number:
            line = self.process.stdout.readline()
            if not line.endswith(b"\n"):
                return False
            told = json.loads(line)
            match told["event"]:
                case "programs":
                    self.programs = told["pids"]
                case "finished":
                    self.finished = told
            seen += told["event"] == event
        return True

    def pid(self, target: str) -> int:
        return self.process.pid if target == "runner" else self.programs[target]

    def send(self, target: str, number: int = signal.SIGKILL) -> None:
        os.kill(self.pid(target), number)

    def end(self, seconds: float = 60.0) -> int:
        """Read to the end, wait, and check what holds at every end: nothing survives."""
        while self.until("finished"):
            pass
        code = self.process.wait(timeout=seconds)
        self._close()
        assert survivors(self.programs) == {}
        assert "Traceback" not in self.stderr, self.stderr
        return code

    def _close(self) -> None:
        UNDER_WAY.remove(self)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.seek(0)
        self.stderr = self._errors.read().decode()
        self._errors.close()

    def abandon(self) -> None:
        """End a pass that a failed test left behind; its programs end with it."""
        self.process.kill()
        self.process.wait()
        self._close()


def run(**config: Any) -> Run:
    """Carry a pass to its end."""
    whole = Run(**config)
    whole.code = whole.end()
    return whole


def finish(**config: Any) -> dict[str, Any]:
    """Carry a run to its end; returns what it tells, complete and without a finding."""
    whole = run(**config)
    assert whole.code == 0, whole.stderr
    assert whole.finished is not None
    assert whole.finished["findings"] == []
    assert whole.finished["rows"] == whole.finished["planned"]
    return whole.finished


def same(left: dict[str, Any], right: dict[str, Any]) -> None:
    """Both runs have the same outcomes, counts and verdicts."""
    for name in COMPARED:
        assert left[name] == right[name], name


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] not in {"Z", "X"}


def survivors(pids: dict[str, int], seconds: float = 5.0) -> dict[str, int]:
    """Return what still runs after a while."""
    end = time.monotonic() + seconds
    while found := {name: pid for name, pid in pids.items() if alive(pid)}:
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    return found


def query(path: Path, text: str, *values: object) -> list[tuple[Any, ...]]:
    """Ask a database that nobody else has open."""
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(text, values).fetchall()
    finally:
        connection.close()
