"""The support gap: which deleted conditions were never false where their deletion was licensed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from retire.certify.accounting import Stage, Stop, stopped_at
from retire.domain.clause import ConditionKind
from retire.domain.document import Document, Many, Word
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from retire.domain.outcome import Outcome


class Support(StrEnum):
    """What the audit says of a deleted condition.

    ``audited_incomplete`` is not "no effect": the predicate was false in a cell without evidence.
    """

    NEVER_FALSE = "never_false"
    AUDITED_LEAKS = "audited_leaks"
    AUDITED_NO_EFFECT = "audited_no_effect"
    AUDITED_INCOMPLETE = "audited_incomplete"


@dataclass(frozen=True, slots=True)
class DeletedClause:
    """A clause that the candidate lacks.

    ``kind`` is None for task guidance; ``predicate`` is what a condition of kind predicate states,
    and None for guidance and for conditions of binding or verification.
    """

    bundle: str
    clause: str
    predicate: str | None
    kind: ConditionKind | None = None

    @property
    def is_condition(self) -> bool:
        """Whether the audit calls the clause an execution condition."""
        return self.predicate is not None or self.kind is not None


@dataclass(frozen=True, slots=True)
class LicensingCell:
    """One development cell that licensed deletions, with the truth value of every predicate."""

    bundle: str
    truths: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class AuditedCell:
    """One audit cell of the candidate, with the truth value of every predicate in its snapshot."""

    outcome: Outcome
    truths: Mapping[str, bool]


class TruthCounts(Document):
    """In how many cells a predicate was false, and in how many true."""

    false: int
    true: int


class StoppedCells(Document):
    """How many cells stopped at one place; ``reason`` and ``parameter`` as :class:`Stop`."""

    stage: Word[Stage]
    reason: str
    parameter: str
    cells: int

    @property
    def stop(self) -> Stop:
        """Where they stopped."""
        return Stop(self.stage, self.reason, self.parameter)


def stopped_cells(stops: Mapping[Stop, int]) -> tuple[StoppedCells, ...]:
    """Return counted stops for a document, in the order given."""
    return tuple(
        StoppedCells(stage=stop.stage, reason=stop.reason, parameter=stop.parameter, cells=cells)
        for stop, cells in stops.items()
    )


class GuidanceSupport(Document):
    """A deleted clause of task guidance: there is nothing to audit."""

    bundle: str
    clause: str
    role: Literal["task_guidance"]


class ConditionSupport(Document):
    """The support of one deleted execution condition.

    ``licensing_evidence`` and ``audit`` count how often its predicate was false and true;
    ``protected_effects`` counts cells with the predicate false and a protected effect, ``stopped``
    where the other such cells stopped.
    """

    bundle: str
    clause: str
    role: Literal["execution_condition"]
    kind: Word[ConditionKind]
    predicate: str | None
    status: Word[Support]
    licensing_evidence: TruthCounts
    audit: TruthCounts
    protected_effects: int
    stopped: Many[StoppedCells]

    @property
    def blocks(self) -> bool:
        """Whether the clause may not go: its removal leaks, or nothing shows that it does not."""
        return self.status is not Support.AUDITED_NO_EFFECT


ClauseSupport: TypeAlias = Annotated[
    GuidanceSupport | ConditionSupport, Field(discriminator="role")
]
"""The support of one deleted clause."""

_NO_CELLS = TruthCounts(false=0, true=0)


def support_gap(
    deleted: Sequence[DeletedClause],
    licensing: Sequence[LicensingCell],
    audit: Sequence[AuditedCell],
) -> tuple[ClauseSupport, ...]:
    """Return the support of every deleted clause, in the order given (paper, section 2).

    A condition whose predicate the audit never made false is ``never_false``: no statistic on such
    evidence can tell a skill with the condition from one without. That holds too for a predicate
    that no cell of the bundle evaluates; its counts are then all zero.

    Args:
        deleted: Clauses that the candidate lacks.
        licensing: Development cells behind the deletions.
        audit: The candidate's audit cells.

    Raises:
        InputError: Some cells of a bundle give a truth value for a predicate and others do not.
    """
    return tuple(_support(clause, licensing, audit) for clause in deleted)


def _support(
    clause: DeletedClause, licensing: Sequence[LicensingCell], audit: Sequence[AuditedCell]
) -> ClauseSupport:
    if not clause.is_condition:
        return GuidanceSupport(bundle=clause.bundle, clause=clause.clause, role="task_guidance")
    if clause.predicate is None:
        # No member varies a binding or a verification: nothing ever made it false.
        return _condition(clause, Support.NEVER_FALSE)
    own = [cell for cell in audit if cell.outcome.cell.bundle == clause.bundle]
    development = [cell for cell in licensing if cell.bundle == clause.bundle]
    truths = [*(cell.truths for cell in own), *(cell.truths for cell in development)]
    if not any(clause.predicate in values for values in truths):
        return _condition(clause, Support.NEVER_FALSE)
    licensed = [_truth(clause, clause.predicate, cell.truths) for cell in development]
    audited = [_truth(clause, clause.predicate, cell.truths) for cell in own]
    false = [cell.outcome for cell, truth in zip(own, audited, strict=True) if not truth]
    quiet = [outcome for outcome in false if not outcome.protected]
    stops = Counter(stopped_at(outcome) for outcome in quiet)
    return _condition(
        clause,
        _status(false),
        (_count(licensed), _count(audited)),
        len(false) - len(quiet),
        {stop: stops[stop] for stop in sorted(stops)},
    )


def _condition(
    clause: DeletedClause,
    status: Support,
    truths: tuple[TruthCounts, TruthCounts] = (_NO_CELLS, _NO_CELLS),
    effects: int = 0,
    stops: Mapping[Stop, int] = MappingProxyType({}),
) -> ConditionSupport:
    return ConditionSupport(
        bundle=clause.bundle,
        clause=clause.clause,
        role="execution_condition",
        kind=clause.kind or ConditionKind.PREDICATE,
        predicate=clause.predicate,
        status=status,
        licensing_evidence=truths[0],
        audit=truths[1],
        protected_effects=effects,
        stopped=stopped_cells(stops),
    )


def _truth(clause: DeletedClause, predicate: str, truths: Mapping[str, bool]) -> bool:
    if predicate not in truths:
        raise InputError(
            f"a cell gives no truth value for predicate {predicate}",
            where=f"{clause.bundle}, clause {clause.clause}",
            mend="Evaluate every predicate of the contract on the cell's snapshot",
        )
    return truths[predicate]


def _count(truths: Iterable[bool]) -> TruthCounts:
    counts = Counter(truths)
    return TruthCounts(false=counts[False], true=counts[True])


def _status(false: Sequence[Outcome]) -> Support:
    if not false:
        return Support.NEVER_FALSE
    if any(outcome.protected for outcome in false):
        return Support.AUDITED_LEAKS
    if not all(outcome.complete for outcome in false):
        return Support.AUDITED_INCOMPLETE
    return Support.AUDITED_NO_EFFECT
