"""A sink that is told its world is a real one, with the world behind it, without a launcher."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, Self

from retire.bundle import load_bundle
from tests.integration.commands import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

ATTEMPT = "ab" * 16
EPISODE = "sha256:" + "1" * 64


def unlocking(tool: str = "lock_unlock") -> str:
    """A model's answer that proposes to unlock the front door."""
    text = json.dumps({"tool": tool, "arguments": {"target": "lock.front_door"}})
    return json.dumps({"mode": "json", "text": text, "finish_reason": "stop"})


def ask(path: Path, message: dict[str, Any]) -> dict[str, Any]:
    """Send one message to a program's socket and return its answer."""
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(20)
        end.connect(str(path))
        data = json.dumps({**message, "id": 1}).encode()
        end.sendall(len(data).to_bytes(4, "big") + data)
        with end.makefile("rb") as file:
            length = int.from_bytes(file.read(4), "big")
            told: dict[str, Any] = json.loads(file.read(length))
            return told


def sink_command(python: str, folder: Path, bundles: list[Path], face: int, life: int) -> list[str]:
    """The command of a sink, without what it is told of its world."""
    return [
        python, "-m", "sink", "--binding", "canonical", "--state", str(folder / "sink"),
        "--socket", str(folder / "sink" / "socket"), "--act-face", str(face),
        "--life", str(life), "--bundles", *map(str, bundles),
    ]  # fmt: skip


class RealHouse:
    """World and sink as two programs; the sink belongs to a user of its own where one is given."""

    def __init__(
        self,
        folder: Path,
        approvals: Path,
        bundles: list[Path],
        python: str = sys.executable,
        user: dict[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self._approvals = approvals
        self._bundles = bundles
        self._python = python
        self._user = user or {}
        self._ends = ExitStack()

    def __enter__(self) -> Self:
        (self.folder / "world").mkdir(exist_ok=True)
        for name in ("world", "sink"):
            (self.folder / name / "socket").unlink(missing_ok=True)
        one, two = socket.socketpair()
        life, self._life = os.pipe()
        with one, two:
            world = [
                sys.executable, "-m", "hardware.world", "--state", str(self.folder / "world"),
                "--socket", str(self.folder / "world" / "socket"), "--life", str(life),
                "--act-face", str(one.fileno()), "--bundles", *map(str, self._bundles),
            ]  # fmt: skip
            sink = sink_command(self._python, self.folder, self._bundles, two.fileno(), life)
            sink += ["--real-world", "--approvals", str(self._approvals)]
            self._start(world, [one.fileno(), life], {})
            self.sink = self._start(sink, [two.fileno(), life], self._user)
        os.close(life)
        try:
            self._await_sockets()
        except AssertionError:
            self.__exit__(None, None, None)
            raise
        return self

    def _await_sockets(self) -> None:
        deadline = time.monotonic() + 30
        while not all((self.folder / name / "socket").exists() for name in ("world", "sink")):
            assert self.sink.poll() is None, "the sink ended"
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _start(
        self, command: list[str], descriptors: list[int], user: dict[str, Any]
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, pass_fds=descriptors, **user
        )
        self._ends.callback(process.wait, 20)
        return process

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._life)
        self._ends.close()

    def freeze(self, bundle: Path, attempt: str = ATTEMPT) -> dict[str, Any]:
        """Freeze an authorized episode; returns the message with which it is proposed to unlock."""
        loaded = load_bundle(bundle)
        told = ask(
            self.folder / "world" / "socket",
            {
                "op": "reset", "attempt": attempt, "template": loaded.digests.template,
                "task": "locked", "patch": None, "episode": EPISODE,
            },
        )  # fmt: skip
        return {
            "op": "propose",
            "attempt": attempt,
            "contract": loaded.digests.contract,
            "episode": EPISODE,
            "snapshot": told["snapshot_digest"],
            "answer": unlocking(),
        }

    def propose(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message to the sink."""
        return ask(self.folder / "sink" / "socket", message)

    def journal(self) -> list[tuple[Any, ...]]:
        """What happened in the world."""
        with closing(sqlite3.connect(self.folder / "world" / "world.sqlite")) as database:
            return database.execute("SELECT * FROM journal").fetchall()
