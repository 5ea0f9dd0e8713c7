"""From a protocol and the digests of what it names to an ordered list of cells and one digest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.domain.cell import AUTHORIZED, Cell, Condition, Sample
from retire.domain.digests import Json, canonical, digest_of, merkle_root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.matrix.protocol import Protocol

STUB_WORLD = "stub"
HOME_ASSISTANT_WORLD = "home_assistant"
"""The kinds of world."""


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
    statement: Mapping[str, Json]
    digest: str

    @property
    def world(self) -> str:
        """The kind of world it runs in."""
        return str(self.statement.get("world", STUB_WORLD))


def fix_plan(
    protocol: Protocol,
    members: Mapping[str, Sequence[str]],
    bundles: Mapping[str, Mapping[str, str]],
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
    statement: dict[str, Json] = {
        "schema": "retire.plan/v1",
        "protocol": protocol.model_dump(mode="json", by_alias=True),
        "bundles": {key: dict(value) for key, value in bundles.items()},
        "deployments": dict(deployments),
        "candidates": dict(candidates or {}),
        "cells": len(cells),
        "cell_root": merkle_root([canonical(cell.key) for cell in cells]),
    }
    if world != STUB_WORLD:
        statement["world"] = world
    return Plan(protocol, tuple(cells), statement, digest_of(statement))


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
