"""What a report says of deleted clauses: conditions with their support, and guidance. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.domain.clause import Role
from retire.pages.html.gap_view import MEANINGS
from retire.pages.text import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.bundle import Bundle
    from retire.certify.certificate import Certificate
    from retire.certify.support import ConditionSupport
    from retire.domain.clause import Clause
    from retire.pages.html.review import Review
    from retire.skill import LedgerEntry


@dataclass(frozen=True, slots=True)
class Fate:
    """What the audit says of a deleted condition under one candidate; ``effects`` counts leaks."""

    condition: str
    meaning: str
    effects: int


@dataclass(frozen=True, slots=True)
class DeletedCondition:
    """An execution condition that some candidate of a deployment lacks."""

    bundle: str
    clause: str
    line: int
    text: str
    rule: str
    licensing: str
    fates: tuple[Fate, ...]

    @property
    def leaks(self) -> bool:
        """Whether any candidate without it leaked."""
        return any(fate.effects for fate in self.fates)


@dataclass(frozen=True, slots=True)
class DeletedGuidance:
    """Task guidance that a bundle's reduction lacks, for the deployments whose reductions agree.

    ``texts`` are line and words.
    """

    bundle: str
    deployments: tuple[str, ...]
    texts: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Deletion:
    """The execution conditions that a deployment's candidates lack, leaking ones first."""

    deployment: str
    summary: str
    conditions: tuple[DeletedCondition, ...]


def deletion(review: Review, deployment: str, items: Sequence[Certificate]) -> Deletion:
    """Return what the candidates of one deployment lack, given all certificates."""
    mine = [item for item in items if item.deployment == deployment]
    conditions: list[DeletedCondition] = []
    clauses = gone = 0
    for bundle in review.bundles.values():
        clauses += len(bundle.skill.clauses)
        gone += len(review.deleted.get((deployment, bundle.id), ()))
        conditions += _conditions(bundle, mine)
    conditions.sort(key=lambda it: not it.leaks)
    leaking = sum(it.leaks for it in conditions)
    summary = (
        f"{gone} of {many(clauses, 'clause')} are gone from the reduction. Of the "
        f"{many(len(conditions), 'execution condition')} that some candidate lacks, {leaking} "
        "leaked without it."
    )
    return Deletion(deployment, summary, tuple(conditions))


def deleted_guidance(review: Review, deployments: Sequence[str]) -> tuple[DeletedGuidance, ...]:
    """Return the task guidance that reductions lack; deployments that agree share an entry."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for key, bundle in review.bundles.items():
        roles = {entry.id: entry.role for entry in bundle.ledger.clauses}
        for name in deployments:
            gone = set(review.deleted.get((name, key), ()))
            ids = tuple(
                clause.id
                for clause in bundle.skill.clauses
                if clause.id in gone and roles[clause.id] is not Role.EXECUTION_CONDITION
            )
            if ids:
                found[key, ids].append(name)
    return tuple(
        DeletedGuidance(key, tuple(names), tuple(_texts(review.bundles[key], ids)))
        for (key, ids), names in found.items()
    )


def _texts(bundle: Bundle, ids: Sequence[str]) -> list[tuple[int, str]]:
    clauses = [bundle.skill.clause(name) for name in ids]
    return [(clause.first_line, clause.text) for clause in clauses]


def _conditions(bundle: Bundle, mine: Sequence[Certificate]) -> list[DeletedCondition]:
    roles = {entry.id: entry for entry in bundle.ledger.clauses}
    found = []
    for clause in bundle.skill.clauses:
        entry = roles[clause.id]
        supports = _supports(bundle, clause, mine)
        if entry.role is Role.EXECUTION_CONDITION and supports:
            found.append(_condition(bundle, clause, entry, supports))
    return found


def _supports(
    bundle: Bundle, clause: Clause, mine: Sequence[Certificate]
) -> list[tuple[str, ConditionSupport]]:
    return [
        (str(item.condition), support)
        for item in mine
        for support in item.conditions
        if (support.bundle, support.clause) == (bundle.id, clause.id)
    ]


def _condition(
    bundle: Bundle,
    clause: Clause,
    entry: LedgerEntry,
    supports: Sequence[tuple[str, ConditionSupport]],
) -> DeletedCondition:
    licensing = supports[0][1].licensing_evidence
    cells = licensing.true + licensing.false
    return DeletedCondition(
        bundle=bundle.id,
        clause=clause.id,
        line=clause.first_line,
        text=clause.text,
        rule=entry.predicate or str(entry.kind),
        licensing=f"false in {licensing.false} of {cells}" if cells else "not evaluated",
        fates=tuple(_fate(condition, support) for condition, support in supports),
    )


def _fate(condition: str, support: ConditionSupport) -> Fate:
    words = MEANINGS[support.status].removeprefix("Deleted, and ")
    leaks = support.protected_effects
    if leaks:
        words = f"leaked in {leaks} of {support.audit.false} cells where it was false"
    return Fate(condition, words, leaks)
