"""What a deployment is to the runner: one question, one completed answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from retire.domain.evidence import Evidence
from sink.strict_yaml import StrictModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.domain.digests import Json
    from retire.prompts import ToolSchema
    from sink.proposal import RawAnswer

Identity: TypeAlias = "Mapping[str, Json]"
"""Everything that fixes a deployment's answers; its digest stands in the plan."""

EVIDENCE_OF_PROVIDER = {
    "simulated": Evidence.SIMULATED,
    "replay": Evidence.REPLAYED,
    "openai": Evidence.LIVE_MODEL,
    "local": Evidence.LIVE_MODEL,
}
"""The kind of evidence that each provider's answers are; an identity names its provider."""


class DeploymentFault(Exception):
    """No completed answer could be had; the cell is incomplete, never a refusal."""


@dataclass(frozen=True, slots=True)
class Call:
    """Which call of a plan this is.

    Attributes:
        seed: The sampling seed; equal across members and conditions.
        sample: ``task_value``, ``audit`` or ``development``.
        repetition: Counted from 1.
        place: The key of the cell or development task. Recordings are filed under it; it is
            never sent to a model.
    """

    seed: int
    sample: str
    repetition: int
    place: str


class Served(StrictModel):
    """What a server reported of itself and of one turn; recorded, never part of an outcome.

    Attributes:
        model: The model id that the server says it used.
        fingerprint: The server's own version of its configuration, if it gives one.
        prompt_tokens: Tokens read, as counted by the server; None where it does not count.
        completion_tokens: Tokens written, likewise.
        milliseconds: Wall time of the try that was answered.
        tries: How many requests it took.
        reasoning: Reasoning fields as text; kept apart and never parsed for actions.
    """

    model: str = ""
    fingerprint: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    milliseconds: int = 0
    tries: int = 1
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """A completed turn; ``served`` is None where no server was asked."""

    answer: RawAnswer
    served: Served | None = None


class Deployment(Protocol):
    """A fixed model configuration: provider, model id, sampling parameters."""

    @property
    def name(self) -> str:
        """The configured name."""

    @property
    def identity(self) -> Identity:
        """Everything that fixes the configuration."""

    @property
    def evidence(self) -> Evidence:
        """The kind of evidence its answers are."""

    @property
    def concurrency(self) -> int | None:
        """How many calls it takes at once; None where that does not matter."""

    async def open(self) -> None:
        """Make ready, once before the first call; raises DeploymentFault where it cannot be."""

    async def close(self) -> None:
        """Let go of whatever ``open`` took."""

    async def propose(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema], call: Call
    ) -> Completion:
        """Ask once; raises DeploymentFault where no completed answer could be had."""
