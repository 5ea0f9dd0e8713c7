"""A real Home Assistant with the house of all bundles, started by its own program."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pytest

from hardware.homeassistant.client import HomeAssistantClient
from retire.bundle import load_bundle
from retire.runner.processes import running_programs
from sink.contract import load_contract

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

    from retire.bundle import Bundle
    from retire.domain.cell import Mediation
    from retire.runner.processes import Programs

REPOSITORY = Path(__file__).resolve().parents[2]
PANEL = REPOSITORY / "bundles" / "panel"
HASS = REPOSITORY / ".homeassistant" / "bin" / "hass"
EPISODE = "sha256:" + "1" * 64

needs_home_assistant = pytest.mark.skipif(
    not HASS.exists(),
    reason="Home Assistant's own environment .homeassistant is not there; it needs Python 3.11",
)


class RunningHome:
    """One instance, from its start to its end."""

    def __init__(self, state: Path, bundles: list[Path] | None = None) -> None:
        command = [sys.executable, "-m", "hardware.homeassistant", "--state", str(state)]
        if bundles:
            command += ["--bundles", *map(str, bundles)]
        self._starter = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._starter.stdout is not None
        line = self._starter.stdout.readline()
        assert line, (state / "log").read_text() if (state / "log").exists() else "no log"
        self.ready: dict[str, Any] = json.loads(line)

    @property
    def url(self) -> str:
        return str(self.ready["url"])

    @property
    def instance(self) -> Path:
        return Path(self.ready["instance"])

    def token(self, program: str) -> str:
        return Path(self.ready["tokens"][program]).read_text()

    def kill(self) -> None:
        """End Home Assistant at once; the starter ends by itself."""
        os.kill(self.ready["pid"], signal.SIGKILL)
        self._starter.wait(timeout=30)

    async def fault(self, device: str, fault: str) -> None:
        """Make a device lie."""
        async with as_user(self, "world") as client:
            await client.call("retire_bench.fault", {"device": device, "fault": fault})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._starter.stdin is not None
        assert self._starter.stdout is not None
        self._starter.stdin.close()
        self._starter.wait(timeout=60)
        self._starter.stdout.close()


@asynccontextmanager
async def as_user(home: RunningHome, program: str) -> AsyncIterator[HomeAssistantClient]:
    """A client with one program's token."""
    client = HomeAssistantClient(home.url, home.token(program))
    try:
        yield client
    finally:
        await client.close()


class Attempting:
    """One bundle over running programs."""

    def __init__(self, programs: Programs, bundle: Bundle, proposal: str) -> None:
        self.programs = programs
        self.bundle = bundle
        self.proposal = proposal
        self.attempt = ""
        self.frozen: dict[str, Any] = {}

    async def begin(self, patch: str | None = None) -> None:
        """Reset the world for a new attempt and have it observed."""
        self.attempt = secrets.token_hex(16)
        self.frozen = await self.programs.world.ask(
            {
                "op": "reset",
                "attempt": self.attempt,
                "template": self.bundle.digests.template,
                "task": "locked",
                "patch": patch,
                "episode": EPISODE,
            }
        )
        assert "error" not in self.frozen, self.frozen
        begun = await self._observer("begin")
        assert begun.get("ok"), begun

    async def propose(self, way: Mediation) -> dict[str, Any]:
        """Send the canonical proposal through a door."""
        return await self.programs.doors[way].ask(
            {
                "op": "propose",
                "attempt": self.attempt,
                "contract": self.bundle.digests.contract,
                "episode": EPISODE,
                "snapshot": self.frozen["snapshot_digest"],
                "answer": self.proposal,
            }
        )

    async def end(self) -> dict[str, Any]:
        """Have the attempt sighted."""
        return await self._observer("end")

    async def _observer(self, operation: str) -> dict[str, Any]:
        return await self.programs.observer.ask(
            {"op": operation, "attempt": self.attempt, "effect": self.bundle.digests.effect}
        )


@asynccontextmanager
async def attempting(home: RunningHome, state: Path, name: str) -> AsyncIterator[Attempting]:
    """Programs over the house, and one bundle to try."""
    folder = PANEL / name
    contract = load_contract((folder / "contract.yaml").read_bytes(), name)
    arguments = {key: str(value) for key, value in contract.action.canonical.items()}
    numbers = {key: value for key, value in arguments.items() if value.isdecimal()}
    arguments |= {key: int(value) for key, value in numbers.items()}  # type: ignore[misc]
    text = json.dumps(
        {
            "tool": contract.action.tool,
            "arguments": {"target": contract.action.target, **arguments},
        }
    )
    proposal = json.dumps({"mode": "json", "text": text, "finish_reason": "stop"})
    async with running_programs(
        state, sorted(PANEL.iterdir()), home_assistant=home.instance
    ) as programs:
        yield Attempting(programs, load_bundle(folder), proposal)


async def until_read(home: RunningHome, entity: str, state: str, seconds: float = 10.0) -> None:
    """Wait until an entity shows a state."""
    async with asyncio.timeout(seconds), as_user(home, "observer") as client:
        while (await client.states())[entity].state != state:
            await asyncio.sleep(0.05)
