"""What ``retire certify`` is asked for, here or on a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.matrix import Protocol


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be certified.

    Attributes:
        bundle: The bundle.
        folder: Where it lies.
        candidate: Bytes of the candidate ``SKILL.md``.
        name: What messages call the candidate, usually its path.
        protocol: The declared plan: one bundle, one deployment, B1 and the placement.
    """

    bundle: Bundle
    folder: Path
    candidate: bytes
    name: str
    protocol: Protocol

    @property
    def deployment(self) -> str:
        """The deployment's name."""
        return self.protocol.deployments[0]

    @property
    def placement(self) -> str:
        """The candidate's condition."""
        return self.protocol.conditions[1]
