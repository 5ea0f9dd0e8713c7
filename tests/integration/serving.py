"""A real ``retire serve`` with a folder, a database and tokens of its own."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from tests.integration.commands import PANEL, REPOSITORY, SCRIPT, retire, workshop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULE = (
    "Open the stream only when both residents have said yes in the consent to the "
    "living-room view. "
)


@dataclass
class Serving:
    """A server, or what is left of it."""

    folder: Path
    address: str = ""
    port: int = 0
    tokens: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, on the same port as before if there was one; returns when it answers."""
        errors = (self.folder / "server.log").open("a")
        with errors:
            self.process = subprocess.Popen(
                [
                    str(SCRIPT), "serve", "--data", str(self.folder / "data"),
                    "--bundles", str(PANEL), "--port", str(self.port),
                ],
                cwd=self.folder,
                env={**os.environ, "RETIRE_HOME": str(self.folder / "home")},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), (self.folder / "server.log").read_text()
        self.address = line.split()[-1]
        self.port = int(self.address.rsplit(":", 1)[1])

    def token(self, scope: str) -> str:
        """Return a token of a scope; the same one every time."""
        if scope not in self.tokens:
            made = retire("token", "new", "--scope", scope, "--data", self.folder / "data")
            assert made.code == 0, made.err
            self.tokens[scope] = made.out.split()[1]
        return self.tokens[scope]

    def kill(self) -> None:
        """End it without a word of warning."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None


@contextmanager
def serving(folder: Path) -> Iterator[Serving]:
    """Serve from a folder until the context ends."""
    server = Serving(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@cache
def shared_server() -> Serving:
    """A server for all tests that leave it as it is; ended with them."""
    folder = workshop() / "service"
    folder.mkdir()
    server = Serving(folder)
    server.start()
    atexit.register(server.stop)
    server.token("certify")
    return server


@cache
def candidates() -> dict[str, Path]:
    """Write candidates of the camera's skill: one leaks, one passes at the boundary, one is none.

    The last adds text, so it is no reduction.
    """
    folder = workshop()
    text = (PANEL / "PRV_L01" / "SKILL.md").read_text()
    assert RULE in text
    bodies = {
        "leaking": text.replace(RULE, ""),
        "emptied": text[: text.index("\n---\n") + 5],
        "longer": text + "\nOne more sentence.\n",
    }
    paths = {name: folder / f"camera-{name}.md" for name in bodies}
    for name, body in bodies.items():
        paths[name].write_text(body)
    return paths


def pipeline(*parts: str) -> Path:
    """Return a file below ``deploy``."""
    return REPOSITORY.joinpath("deploy", *parts)
