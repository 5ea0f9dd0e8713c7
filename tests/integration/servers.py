"""Servers in processes of their own that tests kill, stop and start again, and talk to.

As a program (``python -m tests.integration.servers CONFIG``) it is ``retire serve`` with what that
command does not offer: a short lease, deployments that take their time, and calls that never end.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import httpx

from retire.deployments.simulated.deployment import SimulatedDeployment
from retire.matrix import Protocol
from retire.service import keeper, shelf, submitting
from retire.service.assembly import assemble, ready_database
from retire.service.server import serve
from retire.service.settings import KeeperSettings, ServiceSettings
from retire.service.tokens import new_secret
from retire.store.registry import Registry
from retire.wiring import Request, execute, prepare
from tests.integration.commands import PANEL, REPOSITORY, SCRIPT
from tests.silent import Silent

OVER = ("complete", "incomplete", "failed", "cancelled")
USUAL = {
    "bundle": "PRV_L01",
    "deployment": "plain",
    "placement": "B4",
    "repetitions": 1,
    "seed": 1,
}


def make_token(database: str, scopes: str = "admin", name: str = "t-test") -> str:
    """Store a token; returns its secret."""
    secret, digest = new_secret()
    engine = ready_database(database)
    Registry(engine).add_token(name, digest, scopes, "2026-01-01T00:00:00Z")
    engine.dispose()
    return secret


def emptied(bundle: str) -> bytes:
    """A bundle's skill without any clause."""
    text = (PANEL / bundle / "SKILL.md").read_text()
    return text[: text.index("\n---\n") + 5].encode()


class Server:
    """A server in a process of its own; whatever it started ends with it."""

    def __init__(
        self,
        data: Path,
        database: str,
        token: str,
        *,
        script: bool = False,
        before: list[str] | None = None,
        **config: Any,
    ) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the server
        if script:
            command = [str(SCRIPT), "serve", "--data", str(data), "--database", database]
            command += ["--bundles", str(PANEL), "--port", "0"]
            for name, value in config.items():
                command += [f"--{name.replace('_', '-')}", str(value)]
        else:
            given = {"data": str(data), "database": database, **config}
            command = [sys.executable, "-m", "tests.integration.servers", json.dumps(given)]
        self.process = subprocess.Popen(
            [*(before or []), *command],
            cwd=REPOSITORY,
            env={**os.environ, "RETIRE_HOME": str(data / "home"), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
        )
        self._headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client()

    def __enter__(self) -> Self:
        self.ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        said = self.said()
        self.log.close()
        assert "Traceback" not in said, said
        assert "never retrieved" not in said, said

    def ready(self) -> None:
        """Wait until it listens."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert "listening on " in line, line + self.said()
        self.client.close()
        self.client = httpx.Client(
            base_url=line.split("listening on ")[1].strip(), headers=self._headers, timeout=60
        )

    def said(self) -> str:
        """The server's log."""
        self.log.seek(0)
        return self.log.read().decode()

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self.client.close()
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self) -> int:
        """SIGTERM, and wait; returns the exit code."""
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def submit(self, headers: dict[str, str] | None = None, **given: Any) -> dict[str, Any]:
        """Start a certification of the emptied skill; returns the run."""
        fields = {**USUAL, **given}
        candidate = fields.pop("candidate", emptied(str(fields["bundle"])))
        reply = self.client.post(
            "/certify",
            data={name: str(value) for name, value in fields.items()},
            files={"candidate": ("SKILL.md", candidate)},
            headers=headers or {},
        )
        assert reply.status_code in {200, 202}, reply.text
        told: dict[str, Any] = reply.json()
        return told

    def run(self, run: str) -> dict[str, Any]:
        """Read a run."""
        reply = self.client.get(f"/runs/{run}")
        assert reply.status_code == 200, reply.text
        told: dict[str, Any] = reply.json()
        return told

    def until(self, run: str, *states: str, cells: int = 0, seconds: float = 120) -> dict[str, Any]:
        """Read a run until it is in one of these states with so many cells."""
        end = time.monotonic() + seconds
        while True:
            told = self.run(run)
            if told["state"] in states and told["cells_done"] >= cells:
                return told
            assert told["state"] not in OVER, told
            assert time.monotonic() < end, (told, self.said())
            time.sleep(0.1)

    def outcome(self, run: str) -> dict[str, Any]:
        """What a run gave, once it has ended."""
        told = self.until(run, *OVER)
        assert told["state"] == "complete", (told, self.said())
        return judged(self.client.get(f"/certificates/{told['certificate']}").json())


def judged(envelope: dict[str, Any]) -> dict[str, Any]:
    """What must not depend on how a certificate came to be."""
    predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    assert predicate["findings"] == []
    names = ("verdict", "outcome_root", "gates", "counts", "support", "completeness", "plan")
    return {name: predicate[name] for name in names if name in predicate}


def alone(folder: Path, **given: Any) -> dict[str, Any]:
    """Certify without a service; returns what a run of the service must give, too."""
    fields = {**USUAL, **given}
    bundle = str(fields["bundle"])
    protocol = Protocol.model_validate(
        {
            "schema": "retire.protocol/v1",
            "name": "certify",
            "seed": fields["seed"],
            "bundles": (bundle,),
            "deployments": (fields["deployment"],),
            "conditions": ("B1", fields["placement"]),
            "task_value": False,
            "repetitions": fields["repetitions"],
            "margin_points": fields.get("margin", 10),
        }
    )
    request = Request(protocol, {bundle: PANEL / bundle}, folder, 16, {bundle: emptied(bundle)})

    with asyncio.Runner() as runner:
        finished = runner.run(execute(prepare(request), Silent()))
    (certificate,) = finished.certificates
    payload = base64.b64encode(json.dumps(certificate.as_json()).encode()).decode()
    return judged({"payload": payload})


def slow(milliseconds: float) -> None:
    """Let every deployment of this process take so long."""
    propose = SimulatedDeployment.propose

    async def slowly(self: SimulatedDeployment, *arguments: Any) -> Any:
        await asyncio.sleep(milliseconds / 1000)
        return await propose(self, *arguments)

    SimulatedDeployment.propose = slowly  # type: ignore[method-assign]


def stuck(where: str) -> None:
    """Let what is taken in never go beyond a place."""

    def forever(*_: Any) -> Any:
        time.sleep(1000)

    async def forever_apart(*_: Any) -> Any:
        await asyncio.sleep(1000)

    match where:
        case "submission":
            keeper.prepare_stored = forever
        case "upload":
            submitting.lint_upload = forever_apart
        case "bundle":
            shelf._place = forever


def main(config: dict[str, Any]) -> None:
    """Serve until told to stop."""
    data = Path(config["data"])
    slow(config.get("answer_milliseconds", 0))
    stuck(config.get("stuck_at", ""))
    keeping = KeeperSettings(
        data=data,
        bundles=PANEL,
        home=data / "home",
        runs_at_once=config.get("runs_at_once", 2),
        concurrency=config.get("concurrency", 16),
        lease_seconds=config.get("lease_seconds", 1),
    )
    app = assemble(
        ready_database(config["database"]),
        keeping,
        ServiceSettings(burst=10**6, rate_per_second=10**6),
    )
    serve(app, "127.0.0.1", 0, lambda url: print(f"listening on {url}", flush=True))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
