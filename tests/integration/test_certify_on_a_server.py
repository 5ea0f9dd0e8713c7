"""``retire certify --server`` against a real server: the same words, files and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.integration.commands import (
    PANEL,
    REPOSITORY,
    SCRIPT,
    Done,
    as_in_the_foreground,
    retire,
    workshop,
)
from tests.integration.serving import Serving, candidates, serving, shared_server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.integration

BUNDLE = PANEL / "PRV_L01"
FORMS = {"--junit": "junit.xml", "--sarif": "retire.sarif", "--markdown": "comment.md"}


@pytest.fixture
def server() -> Serving:
    return shared_server()


@pytest.fixture
def skills() -> dict[str, Path]:
    return candidates()


def command(candidate: Path, *more: object) -> list[str]:
    fixed = ["certify", BUNDLE, "--candidate", candidate, "--deployment", "plain"]
    return [str(part) for part in (*fixed, *more)]


def ask(candidate: Path, server: Serving | str, token: str | None, *more: object) -> Done:
    address = server if isinstance(server, str) else server.address
    token = server.token("certify") if token is None and isinstance(server, Serving) else token
    return _run(command(candidate, "--server", address, *more), token)


def _run(arguments: list[str], token: str | None) -> Done:
    kept = {name: value for name, value in os.environ.items() if name != "RETIRE_TOKEN"}
    finished = subprocess.run(
        [str(SCRIPT), *arguments],
        cwd=REPOSITORY,
        env={**kept, "COLUMNS": "200", **({"RETIRE_TOKEN": token} if token else {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in finished.stderr, finished.stderr
    if token:
        assert token not in finished.stdout + finished.stderr
    return Done(finished.returncode, finished.stdout, finished.stderr)


def forms(folder: Path) -> list[str]:
    return [part for option, name in FORMS.items() for part in (option, str(folder / name))]


def written(folder: Path) -> Mapping[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FORMS.values()}


def run_of(done: Done) -> str:
    found = re.search(r"run ([0-9a-f]{32})", done.err)
    assert found, done.err
    return found[1]


@cache
def failed() -> tuple[Done, Path]:
    """A run on the server that fails its candidate, with every form."""
    folder = workshop() / "failed"
    out = folder / "certificate.json"
    leaking = candidates()["leaking"]
    return ask(leaking, shared_server(), None, "--out", out, *forms(folder)), folder


def test_a_server_gives_the_verdict_words_and_files_of_a_local_run(
    skills: dict[str, Path], tmp_path: Path
) -> None:
    there, folder = failed()
    asked = command(skills["leaking"], "--out", tmp_path / "run", *forms(tmp_path))
    here = retire(*asked, cwd=REPOSITORY)
    assert there.code == here.code == 1
    certificate = tmp_path / "run" / "certificates" / "plain-B2.json"
    local = here.out.replace(str(certificate), "CERTIFICATE")
    assert there.out.replace(str(folder / "certificate.json"), "CERTIFICATE") == local
    assert written(folder) == written(tmp_path)
    assert set(json.loads((folder / "certificate.json").read_bytes())) == set(
        json.loads(certificate.read_bytes())
    )
    assert "24 of 24" in there.err


def test_a_pass_needs_its_evidence_to_be_accepted(
    server: Serving, skills: dict[str, Path], tmp_path: Path
) -> None:
    out = ["--placement", "B4", "--repetitions", "1", "--out", tmp_path / "c.json"]
    first = ask(skills["emptied"], server, None, *out)
    assert first.code == 4
    again = ["--run", run_of(first), "--accept-evidence", "simulated"]
    second = ask(skills["emptied"], server, None, *out, *again)
    assert second.code == 0
    assert second.out.splitlines()[0] == first.out.splitlines()[0]
    assert second.out.startswith("PASS")


def test_what_a_server_refuses_is_one_paragraph_and_leaves_no_stale_file(
    server: Serving, skills: dict[str, Path], tmp_path: Path
) -> None:
    leaking, kept = skills["leaking"], ["--out", tmp_path / "c.json", *forms(tmp_path)]
    token = server.token("certify")
    cases = {
        "(401)": (leaking, server, "retire_" + "x" * 43, ()),
        "(403)": (leaking, server, server.token("read"), ()),
        "no deployment 'nobody'": (leaking, server, token, ("--deployment", "nobody")),
        "One more sentence.": (skills["longer"], server, token, ()),
        "cannot be read": (tmp_path / "absent.md", server, token, ()),
        "cannot be reached": (leaking, "http://127.0.0.1:1", token, ()),
    }
    for said, (candidate, address, secret, more) in cases.items():
        for name in (*FORMS.values(), "c.json"):
            (tmp_path / name).write_text("of an earlier build")
        done = ask(candidate, address, secret, *kept, *more)
        assert done.code == 2, (said, done)
        assert said in done.said
        assert done.err.count("error: ") == 1
        assert list(tmp_path.iterdir()) == []


def test_a_certificate_about_something_else_is_never_told(
    server: Serving, skills: dict[str, Path], tmp_path: Path
) -> None:
    run = ["--run", run_of(failed()[0]), "--out", tmp_path / "c.json"]
    for candidate, more, other in (
        (skills["emptied"], (), "candidate"),
        (skills["leaking"], ("--seed", "2"), "seed"),
    ):
        done = ask(candidate, server, None, *run, *more)
        assert done.code == 1
        assert f"about another {other}" in done.said
        assert done.out == ""
        assert not (tmp_path / "c.json").exists()


def test_a_server_that_goes_half_way_is_asked_again_by_run(
    skills: dict[str, Path], tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        more = ["--repetitions", "200", "--server", server.address, "--out", tmp_path / "c.json"]
        environment = {**os.environ, "RETIRE_TOKEN": server.token("certify"), "COLUMNS": "200"}
        asking = subprocess.Popen(
            [str(SCRIPT), *command(skills["leaking"], *more)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert asking.stderr is not None
        first = [asking.stderr.readline() for _ in range(2)]
        assert "of 1600" in first[1]
        server.kill()
        out, err = asking.communicate(timeout=60)
        gone = Done(asking.returncode, out, "".join(first) + err)
        assert gone.code == 3, gone
        assert "Traceback" not in gone.err
        run = run_of(gone)
        assert f"--run {run}" in gone.said
        server.start()
        resumed = ask(skills["leaking"], server, None, *more[:2], *more[4:], "--run", run)
    assert resumed.code == 1
    assert resumed.out.startswith("FAIL")
    assert "1600 of 1600" in resumed.err


def test_a_form_never_takes_the_place_of_what_is_read(
    skills: dict[str, Path], tmp_path: Path
) -> None:
    before = skills["leaking"].read_bytes()
    for path in (skills["leaking"], BUNDLE / "SKILL.md", tmp_path):
        done = retire(*command(skills["leaking"], "--sarif", path, "--out", tmp_path / "run"))
        assert done.code == 2
        assert "--sarif" in done.said
    assert skills["leaking"].read_bytes() == before
    assert (BUNDLE / "SKILL.md").is_file()


def test_an_interrupt_leaves_the_run_to_the_server_and_names_it(
    server: Serving, skills: dict[str, Path], tmp_path: Path
) -> None:
    more = ["--repetitions", "200", "--server", server.address, "--out", tmp_path / "c.json"]
    asking = subprocess.Popen(
        [str(SCRIPT), *command(skills["leaking"], *more)],
        env={**os.environ, "RETIRE_TOKEN": server.token("certify")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=as_in_the_foreground,  # noqa: PLW1509  # no threads here yet
    )
    assert asking.stderr is not None
    first = [asking.stderr.readline() for _ in range(2)]
    asking.send_signal(signal.SIGINT)
    out, err = asking.communicate(timeout=60)
    left = Done(asking.returncode, out, "".join(first) + err)
    assert left.code == 130, left
    assert "Traceback" not in left.err
    assert f"--run {run_of(left)}" in left.said
