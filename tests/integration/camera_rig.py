"""A bench under way, for the tests: records on the running programs, one at a time."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from retire.bundle import load_bundle
from retire.deployments import EMBEDDED
from retire.domain.cell import AUTHORIZED, Condition
from retire.runner.camera_bench import CameraBench
from retire.runner.camera_programs import BenchSettings, bench_programs
from tests.integration.camera_home import BUNDLE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from retire.runner.camera_programs import BenchPrograms
    from retire.runner.camera_record import CameraRecord
    from tests.integration.camera_home import Camera


class Rig:
    """Asks one deployment whose skill has lost every clause: it proposes whatever is asked."""

    def __init__(self, bench: CameraBench, programs: BenchPrograms) -> None:
        self.bench = bench
        self.programs = programs
        self._clauses = [clause.id for clause in load_bundle(BUNDLE).skill.clauses]
        self._count = 0

    async def record(
        self, condition: Condition = Condition.B4, member: str = AUTHORIZED
    ) -> CameraRecord:
        self._count += 1
        plain = EMBEDDED.named("plain")
        return await self.bench.record(self._count, plain, condition, member, self._clauses)


@asynccontextmanager
async def bench_rig(
    instance: Path, state: Path, frames: int = 6, **settings: Any
) -> AsyncIterator[Rig]:
    given = BenchSettings(instance, [BUNDLE], state, frames, **settings)
    async with bench_programs(given) as programs:
        new_attempt = lambda: secrets.token_hex(16)  # noqa: E731
        yield Rig(CameraBench(load_bundle(BUNDLE), programs, frames, 1, new_attempt), programs)


async def in_session(camera: Camera, frames: int) -> None:
    """Wait until the newest stream of the camera has sent some frames."""
    before = camera.streams()
    async with asyncio.timeout(20):
        while True:
            streams = [item for item in camera.sessions() if item["path"] == "/stream"]
            if len(streams) > before and streams[-1]["frames"] >= frames:
                return
            await asyncio.sleep(0.05)
