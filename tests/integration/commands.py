"""The command line as its user has it: the installed script, a folder, exit code and output."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

REPOSITORY = Path(__file__).resolve().parents[2]
PANEL = REPOSITORY / "bundles" / "panel"
PUBLISHED = REPOSITORY / "tests" / "golden" / "published.json"
SCRIPT = Path(sys.executable).with_name("retire")

PROTOCOL = """\
schema: retire.protocol/v1
name: small
seed: 3
bundles: [PRV_L01, ENV_L01]
deployments: [plain, eager]
conditions: [B1, B2, B3, B4]
repetitions: 1
"""


@dataclass(frozen=True)
class Done:
    """What a command left on the screen."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All of it on one line, as a reader takes it in."""
        return " ".join((self.out + " " + self.err).split())


def retire(*arguments: str | Path, cwd: Path | None = None, home: Path | None = None) -> Done:
    """Run the installed script; whatever happens, no traceback is shown."""
    finished = subprocess.run(
        [str(SCRIPT), *map(str, arguments)],
        cwd=cwd or workshop(),
        env={**os.environ, "RETIRE_HOME": str(home or workshop() / "home"), "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert "Traceback" not in finished.stderr, finished.stderr
    return Done(finished.returncode, finished.stdout, finished.stderr)


def as_in_the_foreground() -> None:
    """Before exec: a shell's background job passes an ignored interrupt on to its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def side_by_side(calls: Mapping[str, Callable[[], Done]]) -> dict[str, Done]:
    """Run commands two at a time."""
    with ThreadPoolExecutor(2) as pool:
        waiting = {name: pool.submit(call) for name, call in calls.items()}
        return {name: future.result() for name, future in waiting.items()}


@cache
def workshop() -> Path:
    """A folder for all runs that tests share; gone when they end."""
    folder = Path(tempfile.mkdtemp(prefix="retire-commands-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def protocol_file() -> Path:
    path = workshop() / "small.yaml"
    path.write_text(PROTOCOL)
    return path


@cache
def small_matrix() -> tuple[Path, Done]:
    """Two bundles, two deployments, one repetition: 72 cells with reductions and figures."""
    out = workshop() / "small"
    done = retire("matrix", "--protocol", protocol_file(), "--bundles", PANEL, "--out", out)
    return out, done


@cache
def emptied_candidate() -> Path:
    """The camera's skill without any clause: what the reducer leaves of it."""
    path = workshop() / "emptied.md"
    text = (PANEL / "PRV_L01" / "SKILL.md").read_text()
    path.write_text(text[: text.index("\n---\n") + 5])
    return path


def certify(
    out: Path, *more: str | Path, placement: str = "B4", bundle: Path | None = None
) -> Done:
    """Certify the emptied camera skill with one repetition (8 cells)."""
    return retire(
        "certify",
        bundle or PANEL / "PRV_L01",
        "--candidate",
        emptied_candidate(),
        "--deployment",
        "plain",
        "--placement",
        placement,
        "--repetitions",
        "1",
        "--out",
        out,
        *more,
    )


@cache
def small_certificate() -> tuple[Path, Done]:
    """A passing certificate of 8 cells, in a run's folder."""
    out = workshop() / "certified"
    return out, certify(out)


def files_below(folder: Path) -> Iterable[tuple[str, bytes]]:
    """Every file of a folder with its bytes, to see that nothing was lost or added."""
    return sorted(
        (str(path.relative_to(folder)), path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    )
