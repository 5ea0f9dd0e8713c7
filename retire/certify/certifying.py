"""From a run's evidence to one certificate per deployment and candidate condition. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from retire.certify.certificate import (
    Arms,
    Certificate,
    CertifiedDeployment,
    Surroundings,
    Unit,
    certificate_of,
)
from retire.certify.gates import AuditedBundle, DeclaredPlan, judge
from retire.certify.support import (
    AuditedCell,
    ClauseSupport,
    DeletedClause,
    LicensingCell,
    support_gap,
)
from retire.domain.cell import Condition, Mediation, Sample
from retire.domain.digests import digest_of, sha256
from retire.domain.document import as_document
from retire.skill import render
from sink.contract import evaluate, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.bundle import Bundle
    from retire.domain.digests import Json
    from retire.domain.outcome import Outcome
    from retire.matrix import Plan

_BINDINGS: Mapping[Mediation, Literal["none", "canonical", "exact"]] = {
    Mediation.DIRECT: "none",
    Mediation.CANONICAL: "canonical",
    Mediation.EXACT: "exact",
}


@dataclass(frozen=True, slots=True)
class Placement:
    """One deployment's candidate under one condition: which clauses each bundle lost."""

    deployment: str
    condition: Condition
    removed: Mapping[str, tuple[str, ...]]


class JudgedRun(Protocol):
    """What the certifier needs of a run."""

    @property
    def plan(self) -> Plan:
        """The fixed plan."""

    @property
    def bundles(self) -> Mapping[str, Bundle]:
        """Its bundles."""

    @property
    def outcomes(self) -> Sequence[Outcome]:
        """The outcomes of its declared cells."""

    @property
    def deleted(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The clauses that each reduction deleted, by deployment and bundle."""


def removed_clauses(
    bundle: Bundle, condition: Condition, deleted: Sequence[str]
) -> tuple[str, ...]:
    """Return the clauses that a condition's text lacks, in document order.

    B5 and B6 show a responsibility contract in place of the skill: every clause is gone.
    """
    conditions = set(bundle.condition_ids)
    gone = set(deleted)
    match condition:
        case Condition.B3:
            gone -= conditions
        case Condition.B4:
            gone |= conditions
        case Condition.B0 | Condition.B5 | Condition.B6:
            gone = {clause.id for clause in bundle.skill.clauses}
        case Condition.B1:
            gone = set()
        case Condition.B2:
            pass
    return tuple(clause.id for clause in bundle.skill.clauses if clause.id in gone)


def placements(run: JudgedRun) -> tuple[Placement, ...]:
    """Return what the plan declares to be certified, deployments first."""
    protocol = run.plan.protocol
    return tuple(
        Placement(
            deployment,
            condition,
            {
                key: removed_clauses(
                    run.bundles[key], condition, run.deleted.get((deployment, key), ())
                )
                for key in protocol.bundles
            },
        )
        for deployment in protocol.deployments
        for condition in protocol.candidates
    )


def certify(
    run: JudgedRun,
    placement: Placement,
    identity: Mapping[str, Json],
    given: Surroundings,
) -> Certificate:
    """Judge one placement and state the result.

    Args:
        run: The run.
        placement: Which candidate of it.
        identity: How the placement's deployment is configured.
        given: What every certificate of the run repeats.
    """
    protocol = run.plan.protocol
    declared = _declared(run, placement)
    mine = [
        outcome
        for outcome in run.outcomes
        if outcome.cell.deployment == placement.deployment and outcome.cell.sample is Sample.AUDIT
    ]
    full = [outcome for outcome in mine if outcome.cell.condition is Condition.B1]
    candidate = [outcome for outcome in mine if outcome.cell.condition is placement.condition]
    rest = [
        outcome
        for outcome in mine
        if outcome.cell.condition not in {Condition.B1, placement.condition}
    ]
    gates = judge(full, candidate, declared, rest)
    support = _support(run, placement, candidate)
    arms = Arms(full, candidate, sorted(declared.candidate_cells))
    deployment = {
        "name": placement.deployment,
        "identity": dict(identity),
        "digest": digest_of(identity),
    }
    unit = Unit(
        deployment=as_document(CertifiedDeployment, deployment),
        condition=placement.condition,
        binding=_BINDINGS[placement.condition.mediation],
        margin_points=protocol.margin_points,
        deleted_clauses=dict(placement.removed),
        scope="bundle" if len(protocol.bundles) == 1 else "panel",
    )
    return certificate_of(unit, _subjects(run, placement), gates, arms, support, given)


def _declared(run: JudgedRun, placement: Placement) -> DeclaredPlan:
    protocol = run.plan.protocol
    cells = [
        cell
        for cell in run.plan.cells
        if cell.deployment == placement.deployment and cell.sample is Sample.AUDIT
    ]
    return DeclaredPlan(
        full_cells=frozenset(cell for cell in cells if cell.condition is Condition.B1),
        candidate_cells=frozenset(cell for cell in cells if cell.condition is placement.condition),
        margin=protocol.margin,
        floor=protocol.floor,
        bundles=tuple(_audited(run.bundles[key]) for key in protocol.bundles),
    )


def _audited(bundle: Bundle) -> AuditedBundle:
    return AuditedBundle(
        name=bundle.id,
        predicates=frozenset(predicate.id for predicate in bundle.contract.predicates),
        varied={member.name: member.predicate for member in bundle.members if member.predicate},
        unaudited=bundle.contract.unaudited,
    )


def _support(
    run: JudgedRun, placement: Placement, candidate: Sequence[Outcome]
) -> tuple[ClauseSupport, ...]:
    deleted = [
        DeletedClause(
            key,
            clause,
            run.bundles[key].predicate_of_clause.get(clause),
            run.bundles[key].kind_of_condition.get(clause),
        )
        for key, clauses in placement.removed.items()
        for clause in clauses
    ]
    truths = {
        (key, member.name): {
            value.id: value.value
            for value in evaluate(bundle.contract, read_snapshot(member.snapshot))
        }
        for key, bundle in run.bundles.items()
        for member in bundle.members
    }
    audit = [
        AuditedCell(outcome, truths[outcome.cell.bundle, outcome.cell.member])
        for outcome in candidate
    ]
    licensing = [cell for key in placement.removed for cell in licensing_cells(run.bundles[key])]
    return support_gap(deleted, licensing, audit)


def licensing_cells(bundle: Bundle) -> tuple[LicensingCell, ...]:
    """Return the predicates' truth values in each development task that licensed deletions."""
    return tuple(
        LicensingCell(
            bundle.id,
            {value.id: value.value for value in evaluate(bundle.contract, read_snapshot(snapshot))},
        )
        for snapshot in bundle.development_snapshots.values()
    )


def _subjects(run: JudgedRun, placement: Placement) -> dict[str, str]:
    subjects: dict[str, str] = {}
    for key, removed in placement.removed.items():
        bundle = run.bundles[key]
        candidate = sha256(render(bundle.skill, removed))
        named = {
            "full-skill": bundle.digests.skill,
            "candidate": candidate,
            "contract": bundle.digests.contract,
            "ledger": bundle.digests.ledger,
            "effect": bundle.digests.effect,
            "locked-template": bundle.digests.template,
        }
        subjects |= {f"{key}/{name}": digest for name, digest in named.items()}
    return {**subjects, "plan": run.plan.digest}
