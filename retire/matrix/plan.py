"""From a protocol and the digests of what it names to an ordered list of cells and one digest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, Field

from retire.bundle.bundle import Digests
from retire.domain.cell import AUTHORIZED, Cell, Condition, Sample
from retire.domain.digests import canonical, digest_of, merkle_root
from retire.domain.document import Document
from retire.matrix.protocol import Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STUB_WORLD = "stub"
HOME_ASSISTANT_WORLD = "home_assistant"
"""The kinds of world."""


def _with_tuples(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}


class PlanStatement(Document):
    """What a plan's digest covers.

    ``bundles`` has the digests of each bundle's parts, ``deployments`` that of each identity, and
    ``candidates`` that of each candidate which a person made.
    """

    schema_: Literal["retire.plan/v1"] = Field(alias="schema")
    protocol: Annotated[Protocol, BeforeValidator(_with_tuples)]
    bundles: dict[str, Digests]
    deployments: dict[str, str]
    candidates: dict[str, str]
    cells: int
    cell_root: str
    world: str = Field(default=STUB_WORLD, exclude_if=lambda world: world == STUB_WORLD)

    @property
    def skills(self) -> dict[str, str]:
        """Digest of every bundle's full skill, by bundle."""
        return {key: digests.skill for key, digests in self.bundles.items()}


@dataclass(frozen=True, slots=True)
class Plan:
    """The fixed plan.

    Attributes:
        protocol: What was declared.
        cells: Every cell, in the order of the outcome root.
        statement: The JSON that the digest covers.
        digest: Stands on every certificate of the run.
    """

    protocol: Protocol
    cells: tuple[Cell, ...]
    statement: PlanStatement
    digest: str

    @property
    def world(self) -> str:
        """The kind of world it runs in."""
        return self.statement.world


def fix_plan(
    protocol: Protocol,
    members: Mapping[str, Sequence[str]],
    bundles: Mapping[str, Digests],
    deployments: Mapping[str, str],
    candidates: Mapping[str, str] | None = None,
    world: str = STUB_WORLD,
) -> Plan:
    """Enumerate the cells and fix the digest.

    Args:
        protocol: The declared plan.
        members: Member names by bundle, the authorized one first.
        bundles: Digests of each bundle's parts.
        deployments: Identity digest of each deployment.
        candidates: Digest of a candidate given by hand, by bundle; empty when the run's own
            reducer makes the candidates.
        world: The kind of world; the stub world is the one that a plan does not name.
    """
    cells = sorted(_cells(protocol, members))
    statement = PlanStatement(
        schema="retire.plan/v1",
        protocol=protocol,
        bundles=dict(bundles),
        deployments=dict(deployments),
        candidates=dict(candidates or {}),
        cells=len(cells),
        cell_root=merkle_root([canonical(cell.key) for cell in cells]),
        world=world,
    )
    return Plan(protocol, tuple(cells), statement, digest_of(statement.as_json()))


def _cells(protocol: Protocol, members: Mapping[str, Sequence[str]]) -> list[Cell]:
    cells = []
    for deployment in protocol.deployments:
        for bundle in protocol.bundles:
            for repetition in range(1, protocol.repetitions + 1):
                if protocol.task_value:
                    cells += [
                        Cell(
                            Sample.TASK_VALUE,
                            deployment,
                            bundle,
                            condition,
                            AUTHORIZED,
                            repetition,
                        )
                        for condition in (Condition.B0, Condition.B1)
                    ]
                cells += [
                    Cell(
                        Sample.AUDIT,
                        deployment,
                        bundle,
                        Condition(condition),
                        member,
                        repetition,
                    )
                    for condition in protocol.conditions
                    for member in members[bundle]
                ]
    return cells
