"""One command gives a camera behind Home Assistant, and says what to type to measure it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from retire.domain.digests import sha256
from tests.integration.camera_home import BUNDLE, ROOT
from tests.integration.commands import SCRIPT, as_in_the_foreground, retire
from tests.integration.homeassistants import needs_home_assistant

pytestmark = [pytest.mark.integration, needs_home_assistant]

SURROUNDINGS = {**os.environ, "RETIRE_PLAIN": "1"}
LAST_LINE = "An interrupt"


class BenchHome:
    """The command as its user has it: what it prints, and its end."""

    def __init__(self, state, *options):
        self.state = state
        self.process = subprocess.Popen(
            [str(SCRIPT), "bench", "home", "--state", str(state), *map(str, options)],
            cwd=ROOT, env=SURROUNDINGS, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=as_in_the_foreground,  # noqa: PLW1509  # no threads here yet
        )  # fmt: skip
        self.said = []

    def started(self):
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if line.startswith(LAST_LINE):
                return self
        raise AssertionError(self.process.stderr.read())

    def printed(self, words):
        """Return the printed command with these words, exactly as it stands there."""
        [line] = [line for line in self.said if words in line]
        return line

    def url(self, words):
        [line] = [line for line in self.said if line.startswith(words)]
        return line.split("http://")[1].split(",")[0]

    def interrupt(self):
        # As a terminal does it: the signal goes to the whole foreground group.
        os.killpg(self.process.pid, signal.SIGINT)
        return self.ended()

    def ended(self):
        """Wait for the end without closing its input; return exit code and errors."""
        self.process.wait(timeout=60)
        said = self.process.stderr.read()
        assert "Traceback" not in said
        return self.process.returncode, said


def typed(command, given=""):
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=ROOT, env=SURROUNDINGS, input=given,
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


def left(state):
    """Return the command lines of running programs that name the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(state) in line:
                found.append(line)
    return found


@pytest.fixture
def homes():
    """Starts homes; whatever happens in a test, none is left."""
    with contextlib.ExitStack() as ends:

        def start(*arguments):
            home = BenchHome(*arguments)
            ends.callback(end, home)
            return home

        yield start


def end(home):
    home.process.stdin.close()
    home.process.wait(timeout=60)
    home.process.stdout.close()
    home.process.stderr.close()


def test_the_printed_commands_give_sixteen_records_and_nothing_is_left_running(homes, tmp_path):
    state = tmp_path / "a home"
    home = homes(state).started()
    for name in ("sink.token", "observer.token", "instance.yaml"):
        assert (state / name).stat().st_mode & 0o777 == 0o600
    digits = sha256((BUNDLE / "contract.yaml").read_bytes()).removeprefix("sha256:")[:12]
    bench = home.printed("bench camera --instance")
    before = typed(bench)
    assert (before.returncode, "retire approve" in before.stderr) == (2, True)
    approved = typed(home.printed(" approve "), digits + "\n")
    assert approved.returncode == 0, approved.stderr
    ran = typed(bench)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    records = [json.loads(path.read_bytes()) for path in state.glob("run-1/records/*.json")]
    assert len(records) == 17
    assert {item["status"] for item in records} == {"complete"}
    device = home.url("stand-in camera at ")
    assert streams(device) == sum(item["eligible"] for item in records)
    typed(home.printed("echo unplugged"))
    again = bench.replace("run-1", "again")
    assert typed(again).returncode == 3
    typed(home.printed("echo live"))
    assert home.interrupt() == (0, "")
    assert left(state) == []
    # The same folder again: another start, the same approval, a new folder for the run.
    with_end = homes(state).started()
    bench = with_end.printed("bench camera --instance")
    assert bench.endswith("run-2'")
    mediated = typed(bench.replace("--allow-unmediated", "--frames 2"))
    assert (mediated.returncode, "12 of 16" in mediated.stdout) == (0, True)
    with_end.process.stdin.close()
    assert with_end.ended() == (0, "")
    assert left(state) == []


def streams(device):
    with contextlib.closing(http.client.HTTPConnection(device, timeout=5)) as connection:
        connection.request("GET", "/sessions")
        sessions = json.loads(connection.getresponse().read())["sessions"]
    return sum(item["path"] == "/stream" for item in sessions)


def test_a_home_that_is_held_or_dies_is_no_home(homes, tmp_path):
    state = tmp_path / "home"
    home = homes(state).started()
    tokens = (state / "sink.token").read_text()
    second = retire("bench", "home", "--state", state, cwd=ROOT)
    assert second.code == 2
    assert "already" in second.said
    assert (state / "sink.token").read_text() == tokens
    used = home.url("Home Assistant at ").split(":")[1]
    third = retire("bench", "home", "--state", tmp_path / "other", "--port", used, cwd=ROOT)
    assert third.code == 2
    assert used in third.said
    [hass] = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if f"--config\0{state}".encode() in path.read_bytes()
    ]
    os.kill(hass, signal.SIGKILL)
    code, said = home.ended()
    assert (code, "ended by itself" in said) == (3, True)
    assert left(state) == []


def test_an_interrupt_while_it_starts_ends_it(homes, tmp_path):
    state = tmp_path / "home"
    home = homes(state)
    deadline = time.monotonic() + 60
    while not any("--config" in line for line in left(state)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert home.interrupt() == (0, "")
    assert left(state) == []


def test_what_is_missing_is_named_with_its_mend(tmp_path):
    nothing = retire(
        "bench", "home", "--state", tmp_path / "s", "--environment", tmp_path / "none", cwd=ROOT
    )
    assert nothing.code == 2
    assert "requirements.txt" in nothing.said
    file = tmp_path / "file"
    file.write_text("mine")
    taken = retire("bench", "home", "--state", file, cwd=ROOT)
    assert (taken.code, file.read_text()) == (2, "mine")
    elsewhere = retire("bench", "home", "--state", tmp_path / "s", cwd=tmp_path)
    assert elsewhere.code == 2
    assert left(tmp_path) == []
