"""The programs themselves, over a stand-in: what they refuse to start with, and what they hold."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from retire.domain.errors import IncompleteError
from retire.runner.processes import running_programs
from tests.integration.driving import PROGRAMS
from tests.unit.homeassistant.lying_home import TOKEN, LyingHome
from tests.unit.homeassistant.small_house import described, furnish

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration


@pytest.fixture
def home() -> Iterator[LyingHome]:
    home = LyingHome().start()
    furnish(home)
    yield home
    home.stop()


def write_instance(folder: Path, home: LyingHome, **changes: Any) -> Path:
    """Write an instance over the stand-in; the three programs have one token each in a file."""
    (folder / "house.json").write_text(json.dumps(described(**changes)))
    for name in ("world", "sink", "observer"):
        path = folder / f"{name}.token"
        path.write_text(TOKEN)
        path.chmod(0o600)
    instance = folder / "instance.json"
    instance.write_text(
        json.dumps(
            {
                "schema": "retire.homeassistant/v1",
                "url": home.url,
                "house": "house.json",
                "tokens": {name: f"{name}.token" for name in ("world", "sink", "observer")},
            }
        )
    )
    return instance


def started(module: list[str], folder: Path, home: LyingHome) -> subprocess.CompletedProcess[str]:
    """Start one program by hand, with ends of a face and a life that is over at once."""
    with ExitStack() as ends:
        ours, theirs = (ends.enter_context(end) for end in socket.socketpair())
        read, write = os.pipe()
        ends.callback(os.close, read)
        os.close(write)
        command = [sys.executable, "-m", *module, "--state", str(folder / "state")]
        command += ["--socket", str(folder / "socket"), "--life", str(read)]
        command += ["--act-face", str(theirs.fileno()), "--bundles"]
        command += ["bundles/panel/ACC_L01", "--home-assistant", home.url]
        command += ["--token-file", str(folder / "sink.token"), "--house"]
        command += [str(folder / "house.json")]
        done = subprocess.run(
            command,
            pass_fds=[theirs.fileno(), read],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        del ours
        return done


SINK = ["sink", "--binding", "canonical"]
DIRECT = ["hardware.direct"]


@pytest.mark.parametrize("module", [SINK, DIRECT])
def test_a_house_that_is_no_bench_is_not_acted_on_without_more(
    tmp_path: Path, home: LyingHome, module: list[str]
) -> None:
    write_instance(tmp_path, home, bench=False)
    done = started(module, tmp_path, home)
    assert done.returncode == 2
    assert "bench" in done.stderr
    assert "Traceback" not in done.stderr
    assert home.calls == []


@pytest.mark.parametrize("module", [SINK, DIRECT])
def test_a_bench_starts(tmp_path: Path, home: LyingHome, module: list[str]) -> None:
    write_instance(tmp_path, home)
    done = started(module, tmp_path, home)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", [SINK, DIRECT])
def test_a_refused_token_is_told_once_and_never_shown(
    tmp_path: Path, home: LyingHome, module: list[str]
) -> None:
    write_instance(tmp_path, home)
    home.refuses = True
    done = started(module, tmp_path, home)
    assert done.returncode == 2
    assert "refused" in done.stderr
    assert TOKEN not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", [SINK, DIRECT])
def test_an_open_token_file_is_refused(tmp_path: Path, home: LyingHome, module: list[str]) -> None:
    write_instance(tmp_path, home)
    (tmp_path / "sink.token").chmod(0o644)
    done = started(module, tmp_path, home)
    assert done.returncode == 2
    assert "0600" in done.stderr


async def test_a_missing_instance_is_told_by_the_launcher(
    tmp_path: Path, panel: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "none.json"
    with pytest.raises(IncompleteError):
        async with running_programs(
            tmp_path / "state", [panel / "ACC_L01"], home_assistant=missing
        ):
            pass
    told = capfd.readouterr().err
    assert str(missing) in told
    assert "Traceback" not in told


async def test_each_program_is_given_its_own_token_file_and_the_runner_none(
    tmp_path: Path, panel: Path, home: LyingHome
) -> None:
    instance = write_instance(tmp_path, home)
    async with running_programs(
        tmp_path / "state", [panel / "ACC_L01"], home_assistant=instance
    ) as programs:
        held = {
            name: Path(f"/proc/{programs.pids[name]}/cmdline").read_text().split("\0")
            for name in PROGRAMS
        }
        files = {
            name: Path(words[words.index("--token-file") + 1]).name for name, words in held.items()
        }
        assert files == {
            "world": "world.token",
            "sink-canonical": "sink.token",
            "sink-exact": "sink.token",
            "direct": "sink.token",
            "observer": "observer.token",
        }
        for name in PROGRAMS:
            assert TOKEN not in " ".join(held[name])
            environment = Path(f"/proc/{programs.pids[name]}/environ").read_bytes()
            assert TOKEN.encode() not in environment


async def test_a_house_that_hangs_is_an_error_in_bounded_time(
    tmp_path: Path, panel: Path, home: LyingHome
) -> None:
    instance = write_instance(tmp_path, home)
    async with running_programs(
        tmp_path / "state", [panel / "ACC_L01"], home_assistant=instance
    ) as programs:
        home.deaf = True
        began = time.monotonic()
        told = await programs.observer.ask({"op": "sweep"})
        assert "error" in told
        assert time.monotonic() - began < 20
