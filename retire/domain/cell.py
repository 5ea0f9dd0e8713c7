"""Cells, their order, and what their episode and seed are derived from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias, get_args

from retire.domain.digests import canonical, digest_of

AUTHORIZED = "authorized"
"""Name of the member in which every predicate holds."""


class Sample(StrEnum):
    """Which question a cell serves; the two are never pooled (paper, section 4)."""

    TASK_VALUE = "task_value"
    AUDIT = "audit"


class Condition(StrEnum):
    """The seven variants of what the model reads and who mediates (paper, table 1)."""

    B0 = "B0"
    B1 = "B1"
    B2 = "B2"
    B3 = "B3"
    B4 = "B4"
    B5 = "B5"
    B6 = "B6"

    @property
    def mediation(self) -> Mediation:
        """Which door the proposals of this condition go through."""
        if self in {Condition.B4, Condition.B5}:
            return Mediation.CANONICAL
        return Mediation.EXACT if self is Condition.B6 else Mediation.DIRECT


CandidateName: TypeAlias = Literal["B2", "B3", "B4", "B5", "B6"]
CANDIDATES = tuple(Condition(name) for name in get_args(CandidateName))
"""Where a candidate may stand."""


class Mediation(StrEnum):
    """The three doors to the world: no monitor, or the sink with one of its bindings."""

    DIRECT = "direct"
    CANONICAL = "canonical"
    EXACT = "exact"


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One unit of the plan; the dataclass order is the order of the outcome root."""

    sample: Sample
    deployment: str
    bundle: str
    condition: Condition
    member: str
    repetition: int

    @property
    def key(self) -> str:
        """A readable name, unique within a plan."""
        return (
            f"{self.sample}/{self.deployment}/{self.bundle}/{self.condition}/"
            f"{self.member}/{self.repetition}"
        )

    @property
    def authorized(self) -> bool:
        """Whether every predicate holds in this cell's member."""
        return self.member == AUTHORIZED


def episode_of(plan_seed: int, request: str, sample: str, repetition: int) -> str:
    """Return the episode, equal across members, conditions, bundle names and paths."""
    return digest_of(
        {
            "plan_seed": plan_seed,
            "request": request,
            "sample": sample,
            "repetition": repetition,
        }
    )


def call_seed_of(episode: str) -> int:
    """Return the 31-bit seed of a deployment call, from what the episode is made of."""
    return int.from_bytes(hashlib.sha256(canonical([episode, "seed"])).digest()[:4], "big") >> 1
