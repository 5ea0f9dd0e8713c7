"""What the sink needs from the world it guards: the frozen episode, and one act."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sink.decision import Action


@dataclass(frozen=True, slots=True)
class Frozen:
    """An episode as the world froze it; the sink takes facts from here and nowhere else."""

    snapshot: bytes
    snapshot_digest: str
    episode: str
    contract_digest: str
    revision: int
    age_seconds: float = 0.0
    """How long ago it was frozen, on the world's own clock, when this was asked."""


class ActStatus(StrEnum):
    """What the adapter says of an act; never evidence of an effect."""

    DONE = "done"
    REFUSED = "refused"
    """The world changed since the freeze, or knows no such action; nothing was done."""
    IN_DOUBT = "in_doubt"
    """No answer; the act may or may not have happened and is never sent again."""


@dataclass(frozen=True, slots=True)
class ActResult:
    """The adapter's answer."""

    status: ActStatus
    detail: str = ""


class Actuator(Protocol):
    """The one thing in the sink's process that can act."""

    async def frozen(self, attempt: str) -> Frozen:
        """Return the frozen episode of an attempt; raises LookupError where there is none."""

    async def act(self, attempt: str, revision: int, action: Action) -> ActResult:
        """Send the action if the world is still at ``revision``."""
