"""What the pipeline examples and the README tell people to run, run against a real server."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.integration.commands import PANEL, REPOSITORY, SCRIPT, Done
from tests.integration.serving import Serving, candidates, pipeline, shared_server

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.integration

BUNDLE = PANEL / "PRV_L01"


@pytest.fixture
def server() -> Serving:
    return shared_server()


@pytest.fixture
def skills() -> dict[str, Path]:
    return candidates()


def shell(script: list[str], folder: Path, settings: Mapping[str, str], *, path: str = "") -> Done:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    kept["PATH"] = f"{path}:{kept['PATH']}" if path else kept["PATH"]
    finished = subprocess.run(
        ["/bin/sh", *script],
        cwd=folder,
        env={**kept, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Done(finished.returncode, finished.stdout, finished.stderr)


def certify(server: Serving, candidate: Path, folder: Path, *more: str, **settings: str) -> Done:
    given = {"RETIRE_SERVER": server.address, "RETIRE_TOKEN": server.token("certify"), **settings}
    script = [str(pipeline("pipeline", "certify.sh")), str(BUNDLE), str(candidate), "plain", *more]
    done = shell(script, folder, given)
    assert server.token("certify") not in done.out + done.err
    return done


def test_the_script_fails_a_build_whose_candidate_leaks(
    server: Serving, skills: dict[str, Path], tmp_path: Path
) -> None:
    done = certify(server, skills["leaking"], tmp_path)
    assert done.code == 1, done
    assert done.out.startswith("fail on simulated evidence")
    assert '"cells_planned":24' in done.err
    envelope = json.loads((tmp_path / "certificate.json").read_bytes())
    assert json.loads(base64.b64decode(envelope["payload"]))["predicate"]["verdict"] == "fail"


def test_the_script_passes_when_the_evidence_is_accepted_and_a_key_repeats_no_run(
    server: Serving, skills: dict[str, Path], tmp_path: Path
) -> None:
    first = certify(server, skills["emptied"], tmp_path, "B4", RETIRE_KEY="build-7")
    assert first.code == 4, first
    second = certify(
        server, skills["emptied"], tmp_path, "B4",
        RETIRE_KEY="build-7", RETIRE_ACCEPT_EVIDENCE="replayed simulated",
    )  # fmt: skip
    assert second.code == 0, second
    assert second.err.splitlines()[0] == first.err.splitlines()[0]


def test_the_script_tells_bad_input_from_a_failed_candidate(
    server: Serving, skills: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "certificate.json").write_text("of an earlier build")
    cases: dict[str, tuple[Path, dict[str, str]]] = {
        "One more sentence.": (skills["longer"], {}),
        "unauthorized": (skills["leaking"], {"RETIRE_TOKEN": "retire_" + "x" * 43}),
        "RETIRE_TOKEN": (skills["leaking"], {"RETIRE_TOKEN": 'x"\nurl = "http://evil.example'}),
        "cannot be reached": (skills["leaking"], {"RETIRE_SERVER": "http://127.0.0.1:1"}),
        "cannot be read": (tmp_path / "absent.md", {}),
    }
    for said, (candidate, settings) in cases.items():
        done = certify(server, candidate, tmp_path, **settings)
        assert done.code == 2, (said, done)
        assert said in done.said
    assert not (tmp_path / "certificate.json").exists()


def test_the_workflow_certifies_and_leaves_what_its_later_steps_show(
    server: Serving, skills: dict[str, Path], tmp_path: Path
) -> None:
    workflow = yaml.safe_load(pipeline("pipeline", "workflow.yaml").read_text())
    (job,) = workflow["jobs"].values()
    # Values of others reach a shell through the environment, never as part of its text.
    assert not [step for step in job["steps"] if "${{" in step.get("run", "")]
    (step,) = [step for step in job["steps"] if step.get("id") == "certify"]
    shutil.copytree(BUNDLE, tmp_path / job["env"]["BUNDLE"])
    shutil.copy(skills["leaking"], tmp_path / job["env"]["CANDIDATE"])
    settings = {
        **job["env"],
        **step["env"],
        "RETIRE_SERVER": server.address,
        "RETIRE_TOKEN": server.token("certify"),
    }
    done = shell(["-ec", step["run"]], tmp_path, settings, path=str(SCRIPT.parent))
    assert done.code == 1, done
    assert "Traceback" not in done.err
    shown = {name for it in job["steps"] for name in re.findall(r"results/[\w.]+", json.dumps(it))}
    assert shown == {f"results/{path.name}" for path in (tmp_path / "results").iterdir()}
    log = json.loads((tmp_path / "results" / "retire.sarif").read_bytes())
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"] == f"{job['env']['BUNDLE']}/SKILL.md"


def blocks(section: str) -> list[str]:
    """Return the indented blocks of a section of the README."""
    text = (REPOSITORY / "README.md").read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line[4:] if line.startswith("    ") else "" for line in text.splitlines()]
    return [block for block in "\n".join(lines).strip().split("\n\n") if block.strip()]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def await_server(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz"):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(port)


def test_the_readme_section_does_what_it_says(skills: dict[str, Path], tmp_path: Path) -> None:
    started, *asked = [block.strip() for block in blocks("Certify in your pipeline")]
    assert len(asked) == 2
    (tmp_path / ".venv").symlink_to(sys.prefix)
    for name in ("bundles", "deploy"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    shutil.copy(skills["leaking"], tmp_path / "candidate.md")
    port = free_port()
    settings = {"RETIRE_HOME": str(tmp_path / "home")}
    with (tmp_path / "server.log").open("w") as log:
        background = subprocess.Popen(
            ["/bin/sh", "-ec", started.replace("8400", str(port)) + "\nwait"],
            cwd=tmp_path,
            env={**os.environ, **settings},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        await_server(port)
        for block in asked:
            done = shell(["-ec", block.replace("8400", str(port))], tmp_path, settings)
            assert done.code == 1, (block, done)
            assert (tmp_path / "certificate.json").exists()
    finally:
        os.killpg(background.pid, signal.SIGTERM)
        background.wait(30)
    assert (tmp_path / "token").stat().st_mode & 0o077 == 0
    for name in ("junit.xml", "retire.sarif", "comment.md"):
        assert (tmp_path / name).stat().st_size


def test_the_other_files_of_the_deployment_say_one_thing() -> None:
    compose = yaml.safe_load(pipeline("compose", "compose.yaml").read_text())
    service = compose["services"]["service"]
    assert (REPOSITORY / "deploy" / "compose" / service["build"]["context"]).resolve() == REPOSITORY
    assert (REPOSITORY / service["build"]["dockerfile"]).is_file()
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    unit = pipeline("systemd", "retire-service.service").read_text()
    proxy = pipeline("proxy", "nginx.conf").read_text()
    assert "--port 8400" in unit
    assert proxy.count("proxy_pass http://127.0.0.1:8400;") == proxy.count("proxy_pass ")
    copied = re.findall(
        r"^COPY (\w+) \1$", pipeline("compose", "Dockerfile").read_text(), re.MULTILINE
    )
    built = re.search(r"packages = \[(.*)\]", (REPOSITORY / "pyproject.toml").read_text())
    assert built
    assert set(copied) == set(re.findall(r'"(\w+)"', built[1]))
