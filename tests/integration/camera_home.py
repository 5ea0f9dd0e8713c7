"""A real Home Assistant with the stand-in camera in it, and what a bench needs to use it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from retire.domain.digests import sha256
from sink.approvals import Approval, no_approvals, render_approvals

ROOT = Path(__file__).resolve().parents[2]
HASS = ROOT / ".homeassistant" / "bin" / "hass"
ENTITY = "camera.bench_cam"
BUNDLE = ROOT / "bundles" / "panel" / "PRV_L01"
LIFE = 315_360_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _token(refresh_id: str, key: str) -> str:
    now = int(time.time())
    claims = {"iss": refresh_id, "iat": now, "exp": now + LIFE}
    text = _b64(b'{"alg":"HS256","typ":"JWT"}') + "." + _b64(json.dumps(claims).encode())
    return text + "." + _b64(hmac.new(key.encode(), text.encode(), hashlib.sha256).digest())


def write_configuration(folder: Path, port: int, camera: str) -> dict[str, str]:
    """Write a configuration with one camera and two users; returns a token by user."""
    storage = folder / ".storage"
    storage.mkdir(parents=True)
    users, refresh, tokens = [], [], {}
    for name, group in (("sink", "system-users"), ("observer", "system-read-only")):
        user, identity, key = uuid.uuid4().hex, uuid.uuid4().hex, secrets.token_hex(64)
        users.append(
            {
                "id": user, "group_ids": [group], "is_owner": False, "is_active": True,
                "name": name, "system_generated": False, "local_only": False,
            }
        )  # fmt: skip
        refresh.append(
            {
                "id": identity, "user_id": user, "client_id": None, "client_name": name,
                "client_icon": None, "token_type": "long_lived_access_token",
                "created_at": datetime.now(UTC).isoformat(), "access_token_expiration": float(LIFE),
                "token": secrets.token_hex(64), "jwt_key": key, "last_used_at": None,
                "last_used_ip": None, "expire_at": None, "credential_id": None,
                "version": "2024.3.3",
            }
        )  # fmt: skip
        tokens[name] = _token(identity, key)
    groups = [{"id": item, "name": item} for item in ("system-admin", "system-users")]
    groups.append({"id": "system-read-only", "name": "system-read-only"})
    options = {
        "authentication": "basic", "mjpeg_url": f"{camera}/stream",
        "still_image_url": f"{camera}/still", "username": "", "password": "", "verify_ssl": True,
    }  # fmt: skip
    entry = {
        "entry_id": uuid.uuid4().hex, "version": 1, "minor_version": 1, "domain": "mjpeg",
        "title": "Bench Cam", "data": {}, "options": options, "pref_disable_new_entities": False,
        "pref_disable_polling": False, "source": "user", "unique_id": None, "disabled_by": None,
    }  # fmt: skip
    stored = {
        "auth": {"users": users, "groups": groups, "credentials": [], "refresh_tokens": refresh},
        "onboarding": {"done": ["user", "core_config", "integration", "analytics"]},
        "core.config_entries": {"entries": [entry]},
    }
    for key, data in stored.items():
        version = 4 if key == "onboarding" else 1
        content = {"version": version, "minor_version": 1, "key": key, "data": data}
        (storage / key).write_text(json.dumps(content))
    (folder / "configuration.yaml").write_text(
        "homeassistant:\n  name: bench\n  latitude: 52.0\n  longitude: 5.0\n  elevation: 0\n"
        "  unit_system: metric\n  time_zone: UTC\n  currency: EUR\n  country: NL\n"
        f"http:\n  server_host: 127.0.0.1\n  server_port: {port}\n"
        "logger:\n  default: warning\napi:\nwebsocket_api:\n"
    )
    return tokens


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
    """Home Assistant as a process, with a bench's files."""

    folder: Path
    camera: Camera
    port: int = field(default_factory=free_port)
    process: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        configuration = self.folder / "configuration"
        if not configuration.exists():
            for name, token in write_configuration(
                configuration, self.port, self.camera.url
            ).items():
                write_secret(self.folder / f"{name}.token", token)
        self.process = subprocess.Popen(
            [str(HASS), "-c", str(configuration), "--skip-pip"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 120
        while not self._running():
            assert time.monotonic() < deadline, "Home Assistant did not start"
            assert self.process.poll() is None, "Home Assistant ended while starting"
            time.sleep(0.2)

    def _running(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        token = (self.folder / "observer.token").read_text()
        with contextlib.closing(connection), contextlib.suppress(OSError, ValueError):
            connection.request("GET", "/api/config", headers={"Authorization": f"Bearer {token}"})
            return json.loads(connection.getresponse().read()).get("state") == "RUNNING"
        return False

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self.kill()


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
