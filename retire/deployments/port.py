"""What a deployment is to the runner: one question, one completed answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sink.proposal import RawAnswer


class DeploymentFault(Exception):
    """No completed answer could be had; the cell is incomplete, never a refusal."""


class Deployment(Protocol):
    """A fixed model configuration: provider, model id, sampling parameters."""

    @property
    def name(self) -> str:
        """The configured name."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """Everything that fixes the configuration; its digest stands in the plan."""

    @property
    def evidence(self) -> str:
        """The kind of evidence its answers are: simulated, replayed or live_model."""

    async def propose(
        self, messages: Sequence[Mapping[str, str]], tools: Sequence[Mapping[str, Any]], seed: int
    ) -> RawAnswer:
        """Ask once; raises DeploymentFault where no completed answer could be had."""
