"""A real Home Assistant with the stand-in camera in it, and what a bench needs to use it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from hardware.homeassistant.camera import ENTITY
from retire.domain.digests import sha256
from sink.approvals import Approval, no_approvals, render_approvals

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "bundles" / "panel" / "PRV_L01"


@dataclass
class Camera:
    """The stand-in camera as a process."""

    folder: Path
    options: tuple[str, ...] = ()
    url: str = ""
    process: Any = None

    def start(self, *, port: int = 0) -> None:
        self.control.write_text("live")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hardware.camera", "--port", str(port),
             "--per-second", "20", "--control", str(self.control), *self.options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
        self.url = json.loads(self.process.stdout.readline())["url"]

    @property
    def control(self) -> Path:
        return self.folder / "camera.mode"

    def behave(self, mode: str) -> None:
        part = self.control.with_suffix(".part")
        part.write_text(mode)
        part.rename(self.control)

    def sessions(self) -> list[dict[str, Any]]:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=5)
        with contextlib.closing(connection):
            connection.request("GET", "/sessions")
            return json.loads(connection.getresponse().read())["sessions"]

    def streams(self) -> int:
        return sum(item["path"] == "/stream" for item in self.sessions())

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()


@dataclass
class Home:
    """Home Assistant with that camera, by the program that starts it for `retire bench home`."""

    folder: Path
    camera: Camera
    url: str = ""
    starter: Any = None
    pid: int = 0

    def start(self) -> None:
        self.starter = subprocess.Popen(
            [sys.executable, "-m", "hardware.homeassistant",
             "--state", str(self.folder), "--camera", self.camera.url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT,
        )  # fmt: skip
        line = self.starter.stdout.readline()
        assert line, "Home Assistant did not start"
        ready = json.loads(line)
        self.url, self.pid = ready["url"], ready["pid"]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.starter.wait(timeout=30)

    def stop(self) -> None:
        if self.starter is not None:
            self.starter.stdin.close()
            self.starter.wait(timeout=60)
            self.starter.stdout.close()


def write_secret(path: Path, secret: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(secret)
    path.chmod(0o600)
    return path


def write_bench(folder: Path, home_url: str, device: str | None, **changes: Any) -> Path:
    """Write approvals and an instance file; the token files lie in the folder."""
    folder.chmod(0o700)
    approval = Approval(
        contract=sha256((BUNDLE / "contract.yaml").read_bytes()),
        bindings={"camera.living_room": ENTITY},
        approved_by="operator-1",
        approved_at="2026-04-17T12:00:00Z",
    )
    approvals = folder / "approvals.yaml"
    approvals.write_bytes(render_approvals(no_approvals().with_approval(approval)))
    approvals.chmod(0o600)
    content = {
        "schema": "retire.camera_bench/v1",
        "url": home_url,
        "entity": ENTITY,
        "sink_token": "sink.token",
        "observer_token": "observer.token",
        "approvals": "approvals.yaml",
        "bench": True,
        **({"device": device} if device else {}),
        **changes,
    }
    path = folder / "instance.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def write_consent(folder: Path, **changes: Any) -> Path:
    now = datetime.now(UTC)
    content = {
        "schema": "retire.bench_consent/v1",
        "entity": ENTITY,
        "persons": [{"id": "person.r1", "answer": "yes", "at": instant(now)}],
        "until": instant(now + timedelta(hours=1)),
        **changes,
    }
    path = folder / "consent.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def instant(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
