"""The counts that summary, tables and figures share, from the outcomes of a sealed run. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.accounting import Arm, by_arm
from retire.domain.cell import Condition, Sample
from retire.domain.outcome import D1Outcome, D2Outcome
from retire.runner.reducing import FoundReduction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from retire.domain.cell import Cell
    from retire.domain.outcome import Outcome
    from retire.matrix import Protocol
    from retire.verify.run import SealedRun

TASK_VALUE_FULL = "B1_task_value"
"""Label of the full skill in the task-value sample, which is never pooled with the audit's B1."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A condition of one sample, and what it is called in results."""

    label: str
    sample: Sample
    condition: Condition

    def arm(self, deployment: str) -> Arm:
        """Return the arm of one deployment."""
        return Arm(self.sample, deployment, self.condition)


def conditions_declared(protocol: Protocol) -> tuple[Labelled, ...]:
    """Return what a protocol declares, task value first, then the audit, B1 to B6."""
    task_value = (
        Labelled("B0", Sample.TASK_VALUE, Condition.B0),
        Labelled(TASK_VALUE_FULL, Sample.TASK_VALUE, Condition.B1),
    )
    audit = (Labelled(name, Sample.AUDIT, Condition(name)) for name in sorted(protocol.conditions))
    return (*(task_value if protocol.task_value else ()), *audit)


def audited(protocol: Protocol) -> tuple[Labelled, ...]:
    """Return the conditions of the audit, B1 to B6 as far as they are declared."""
    return tuple(it for it in conditions_declared(protocol) if it.sample is Sample.AUDIT)


@dataclass(frozen=True, slots=True)
class Count:
    """Some of the cells that have evidence, and how many more cells were declared.

    A declared cell without evidence is never taken for "no": ``missing`` is told beside the count.
    """

    found: int
    cells: int
    missing: int

    @property
    def known(self) -> bool:
        """Whether the count is whole; a missing cell could have added to it."""
        return not self.missing

    def of(self) -> str:
        """Return ``k/n``, n being the cells with evidence."""
        return f"{self.found}/{self.cells}"

    def fraction(self) -> str:
        """Return ``k/n`` for people, with the missing cells if there are any."""
        return self.of() + self._gap()

    def number(self) -> str:
        """Return ``k`` for people, with the missing cells if there are any."""
        return str(self.found) + self._gap()

    def _gap(self) -> str:
        return f" ({self.missing} missing)" if self.missing else ""


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """One deployment, or all, under one condition.

    Authorized members: ``proposed``, ``allowed`` by the door (an unmediated proposal counts as
    allowed), ``effect`` (the intended one). Invalid members: ``proposals``, ``denials``,
    ``leaks`` (protected effects; one sighted in an incomplete cell counts too).
    """

    proposed: Count
    allowed: Count
    effect: Count
    proposals: Count
    denials: Count
    leaks: Count


class Counts:
    """The counts of some outcomes out of the cells that were declared; grouped once."""

    def __init__(self, outcomes: Iterable[Outcome], cells: Iterable[Cell]) -> None:
        self._outcomes: Mapping[Arm, tuple[Outcome, ...]] = by_arm(outcomes)
        self._declared: dict[Arm, list[Cell]] = {}
        for cell in cells:
            arm = Arm(cell.sample, cell.deployment, cell.condition)
            self._declared.setdefault(arm, []).append(cell)

    def outcomes(self, arms: Iterable[Arm], bundle: str = "") -> list[Outcome]:
        """Return the outcomes of some arms of one sample, all bundles or one."""
        return [
            outcome
            for arm in arms
            for outcome in self._outcomes.get(arm, ())
            if bundle in {"", outcome.cell.bundle}
        ]

    def of(self, arms: Iterable[Arm], bundle: str = "") -> ArmCounts:
        """Count some arms of one sample together, all bundles or one."""
        wanted = list(arms)
        outcomes = self.outcomes(wanted, bundle)
        declared = {
            cell
            for arm in wanted
            for cell in self._declared.get(arm, ())
            if bundle in {"", cell.bundle}
        }

        def count(holds: Callable[[Outcome], bool], *, authorized: bool) -> Count:
            cells = {cell for cell in declared if cell.authorized is authorized}
            mine = [outcome for outcome in outcomes if outcome.cell.authorized is authorized]
            complete = {outcome.cell for outcome in mine if outcome.complete}
            found = {outcome.cell for outcome in mine if holds(outcome)}
            return Count(len(found), len(complete | found), len(cells - complete - found))

        return ArmCounts(
            proposed=count(_proposed, authorized=True),
            allowed=count(_allowed, authorized=True),
            effect=count(lambda it: it.complete and it.intended, authorized=True),
            proposals=count(_proposed, authorized=False),
            denials=count(lambda it: it.complete and it.d2 is D2Outcome.DENY, authorized=False),
            leaks=count(lambda it: it.protected, authorized=False),
        )


def _proposed(outcome: Outcome) -> bool:
    return outcome.complete and outcome.d1 is D1Outcome.PROPOSAL


def _allowed(outcome: Outcome) -> bool:
    return _proposed(outcome) and outcome.d2 in {D2Outcome.ALLOW, D2Outcome.UNMEDIATED}


@dataclass(frozen=True, slots=True)
class CellCounts:
    """What became of the planned cells, and of attempts that became none."""

    planned: int
    complete: int
    invalid_outputs: int
    abandoned_attempts: int

    @property
    def incomplete(self) -> int:
        """Planned cells without usable evidence."""
        return self.planned - self.complete


def cell_counts(run: SealedRun) -> CellCounts:
    """Count planned and complete cells, invalid outputs, and abandoned attempts.

    An attempt is abandoned if it served a cell of the plan and no row carries it; attempts of the
    reducer's development tasks do not count.
    """
    planned, outcomes = set(run.plan.cells), run.outcomes
    carried = {row.body.attempt for row in run.traces}
    return CellCounts(
        planned=len(planned),
        complete=len({o.cell for o in outcomes if o.complete} & planned),
        invalid_outputs=len({o.cell for o in outcomes if o.d1 is D1Outcome.INVALID}),
        abandoned_attempts=sum(
            attempt not in carried and not served.startswith("development/")
            for attempt, served in run.records.attempts.items()
        ),
    )


@dataclass(frozen=True, slots=True)
class Deletions:
    """What the reductions of one deployment deleted, over all bundles.

    ``known`` of ``bundles`` have a reduction; ``given`` says that a person made the candidates.
    """

    clauses: int
    deleted: int
    empty: int
    trials: int
    known: int
    bundles: int
    given: bool


def deletions(run: SealedRun, deployment: str) -> Deletions:
    """Count what was deleted for one deployment."""
    totals: Counter[str] = Counter()
    for key, bundle in run.bundles.items():
        clauses = len(bundle.skill.clauses)
        totals["clauses"] += clauses
        described = run.reductions[deployment, key].described
        if described is not None:
            deleted = len(described.deleted)
            totals["known"] += 1
            totals["deleted"] += deleted
            totals["empty"] += clauses > 0 and deleted == clauses
            totals["trials"] += described.trials if isinstance(described, FoundReduction) else 0
            totals["given"] += described.given
    return Deletions(
        totals["clauses"],
        totals["deleted"],
        totals["empty"],
        totals["trials"],
        totals["known"],
        len(run.bundles),
        given=totals["given"] > 0,
    )
