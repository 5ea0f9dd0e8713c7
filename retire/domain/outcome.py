"""What a finished cell says: three stages, then two yes-or-no questions or neither."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.domain.cell import Cell


class D1Outcome(StrEnum):
    """The proposal stage, before any check of validity of the action."""

    PROPOSAL = "proposal"
    REFUSAL = "refusal"
    INVALID = "invalid"


class D2Outcome(StrEnum):
    """The decision stage."""

    NOT_REACHED = "not_reached"
    ALLOW = "allow"
    DENY = "deny"
    UNMEDIATED = "unmediated"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One cell as the certifier sees it.

    ``complete`` is False when no usable evidence exists; then ``intended`` and ``protected`` say
    nothing, except that a sighted protected effect stays sighted.
    """

    cell: Cell
    complete: bool
    d1: D1Outcome
    d2: D2Outcome
    intended: bool
    protected: bool
    d1_rule: str = ""
    reason: str = ""
    parameter: str = ""
    basis: str = ""
    evidence_class: str = ""
    predicates: Mapping[str, bool] = field(default_factory=dict)
    """Truth value of every predicate, as the sink saw it; empty where no sink was reached."""
    snapshot_digest: str = ""
