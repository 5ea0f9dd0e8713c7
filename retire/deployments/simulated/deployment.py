"""The simulated deployments behind the runner's protocol."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from retire.deployments.port import Completion
from retire.deployments.simulated.reader import propose
from retire.domain.evidence import Evidence
from retire.prompts import tools_json
from sink.proposal import RawAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.deployments.port import Call, Identity
    from retire.deployments.simulated.profiles import Profile
    from retire.prompts import ToolSchema


@dataclass(frozen=True, slots=True)
class SimulatedDeployment:
    """One profile of the deterministic reader, asked like any model."""

    name: str
    profile: Profile

    @property
    def identity(self) -> Identity:
        """The reader and its profile; every probability in thousandths."""
        return {"provider": "simulated", "model": self.name, "profile": asdict(self.profile)}

    @property
    def evidence(self) -> Evidence:
        """Simulated: fixtures that exercise the method, not a model."""
        return Evidence.SIMULATED

    @property
    def concurrency(self) -> int | None:
        """It does not matter: an answer takes no time of anybody else's."""
        return None

    async def open(self) -> None:
        """Need nothing."""

    async def close(self) -> None:
        """Hold nothing."""

    async def propose(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema], call: Call
    ) -> Completion:
        """Answer at once."""
        text = propose(messages, tools_json(tools), call.seed, self.profile)
        return Completion(RawAnswer(mode="json", text=text, finish_reason="stop"))
