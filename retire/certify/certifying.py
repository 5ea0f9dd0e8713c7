"""From a run's evidence to one certificate per deployment and candidate condition. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retire.certify.certificate import Arms, Surroundings, effective_verdict, statement
from retire.certify.gates import AuditedBundle, DeclaredPlan, Gates, Verdict, judge
from retire.certify.support import (
    AuditedCell,
    ClauseSupport,
    DeletedClause,
    LicensingCell,
    support_gap,
)
from retire.domain.cell import Condition, Mediation, Sample
from retire.domain.digests import digest_of, sha256
from retire.skill import render
from sink.contract import evaluate, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.bundle import Bundle
    from retire.domain.outcome import Outcome
    from retire.matrix import Plan


@dataclass(frozen=True, slots=True)
class Placement:
    """One deployment's candidate under one condition: which clauses each bundle lost."""

    deployment: str
    condition: Condition
    removed: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Certified:
    """One certificate before it is signed."""

    placement: Placement
    gates: Gates
    verdict: Verdict
    support: tuple[ClauseSupport, ...]
    statement: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What the certifier needs of a run."""

    plan: Plan
    bundles: Mapping[str, Bundle]
    identities: Mapping[str, Mapping[str, Any]]
    outcomes: Sequence[Outcome]
    deleted: Mapping[tuple[str, str], tuple[str, ...]]
    licensing: Mapping[str, Sequence[LicensingCell]] = field(default_factory=dict)


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


def placements(run: Run) -> tuple[Placement, ...]:
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


def certify(run: Run, placement: Placement, given: Surroundings) -> Certified:
    """Judge one placement and state the result."""
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
    identity = run.identities[placement.deployment]
    mediation = placement.condition.mediation
    unit = {
        "deployment": {
            "name": placement.deployment,
            "identity": dict(identity),
            "digest": digest_of(dict(identity)),
        },
        "condition": str(placement.condition),
        "binding": "none" if mediation is Mediation.DIRECT else str(mediation),
        "margin_points": protocol.margin_points,
        "deleted_clauses": {key: list(value) for key, value in placement.removed.items()},
    }
    stated = statement(unit, _subjects(run, placement), gates, arms, support, given)
    verdict = effective_verdict(gates, given.findings)
    return Certified(placement, gates, verdict, support, stated)


def _declared(run: Run, placement: Placement) -> DeclaredPlan:
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
    run: Run, placement: Placement, candidate: Sequence[Outcome]
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
    licensing = [cell for key in placement.removed for cell in run.licensing.get(key, ())]
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


def _subjects(run: Run, placement: Placement) -> list[dict[str, Any]]:
    subjects = []
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
        subjects += [_subject(f"{key}/{name}", digest) for name, digest in named.items()]
    subjects.append(_subject("plan", run.plan.digest))
    return subjects


def _subject(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}
