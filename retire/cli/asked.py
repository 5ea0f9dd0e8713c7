"""What ``retire certify`` is asked for, here or on a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.deployments import EMBEDDED

if TYPE_CHECKING:
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.certify.stability import Stability
    from retire.deployments import Catalog
    from retire.deployments.budget import Budget
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
        catalog: Where its deployment is looked up.
        stability: Measurements that the certificate states.
        budget: What the run may spend.
        launcher: Socket of a launcher that starts the programs.
    """

    bundle: Bundle
    folder: Path
    candidate: bytes
    name: str
    protocol: Protocol
    catalog: Catalog = EMBEDDED
    stability: tuple[Stability, ...] = ()
    budget: Budget | None = None
    launcher: Path | None = None

    @property
    def deployment(self) -> str:
        """The deployment's name."""
        return self.protocol.deployments[0]

    @property
    def placement(self) -> str:
        """The candidate's condition."""
        return self.protocol.conditions[1]
