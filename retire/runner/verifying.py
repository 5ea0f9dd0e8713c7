"""Verify a certificate against its run's folder: whatever can be recomputed is. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from retire.certify.certifying import Run as CertifiedRun
from retire.certify.certifying import certify, licensing_cells, placements
from retire.certify.envelope import is_trusted
from retire.certify.joining import join, outcomes_of
from retire.domain.digests import canonical, digest_of, sha256
from retire.domain.trace import cell_of, outcome_root, record_root
from retire.prompts import build_prompt
from retire.runner.attempt import answer_text, d1_json
from retire.runner.job import PlacedTexts, cell_job
from retire.runner.reducing import kept_problems, sighted_development
from sink.proposal import RawAnswer, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from retire.bundle import Bundle
    from retire.certify.certificate import Surroundings
    from retire.certify.certifying import Certified, Placement
    from retire.certify.joining import Evidence, Finding
    from retire.matrix import Plan
    from retire.runner.reducing import KeptReduction


_COMPARED_BEFORE = {"plan", "outcome_root", "record_root", "heads"}
"""Parts of a certificate that have a comparison, and words, of their own."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A run's folder, and what holds of it whatever a certificate says.

    Attributes:
        plan: The plan, made anew from the folder's copies.
        bundles: The copies of the bundles.
        evidence: Traces, records and heads.
        deleted: The clauses that each reduction deleted, by deployment and bundle.
        findings: What does not fit between traces and records.
        outcome_root: Recomputed over the traces.
        record_root: Recomputed over the traces.
        problems: Prompts, answers and reductions that do not come out again.
    """

    plan: Plan
    bundles: Mapping[str, Bundle]
    evidence: Evidence
    deleted: Mapping[tuple[str, str], tuple[str, ...]]
    findings: tuple[Finding, ...]
    outcome_root: str
    record_root: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is verified: the certificate's statement, and the folder it belongs to."""

    statement: Mapping[str, Any]
    signer: str
    run: Examined


@dataclass(frozen=True, slots=True)
class Verification:
    """The result. ``problems`` break it, ``stale`` ages it, ``unknown`` signers leave it open."""

    verdict: str
    problems: tuple[str, ...]
    stale: tuple[str, ...]
    unknown_signers: tuple[str, ...]
    checked: tuple[str, ...] = field(default=())

    @property
    def intact(self) -> bool:
        """Whether everything that can be recomputed agrees with the certificate."""
        return not self.problems


def examine(
    plan: Plan,
    bundles: Mapping[str, Bundle],
    evidence: Evidence,
    kept: Mapping[tuple[str, str], KeptReduction],
) -> Examined:
    """Recompute everything of a run that no certificate is needed for.

    Args:
        plan: The plan that the folder's copies give.
        bundles: The copies of the bundles, by id.
        evidence: What the run left behind.
        kept: The reductions as they lie in the folder, by deployment and bundle.
    """
    rows = evidence.rows
    deleted = {
        pair: tuple(item.described["deleted"])
        for pair, item in kept.items()
        if item.described is not None
    }
    return Examined(
        plan,
        bundles,
        evidence,
        deleted,
        findings=join(evidence),
        outcome_root=outcome_root(row["body"] for row in rows),
        record_root=record_root([row["hash"] for row in rows]),
        problems=(
            *kept_problems(plan, bundles, kept, sighted_development(evidence)),
            *_row_problems(plan, bundles, evidence, deleted),
        ),
    )


def verify(
    subject: Subject,
    trusted: Sequence[str] | None,
    current: Mapping[str, Bundle],
    identities: Mapping[str, Mapping[str, Any]],
    given: Surroundings,
) -> Verification:
    """Check a certificate.

    Args:
        subject: Certificate and folder.
        trusted: Public keys (hex) that the reader trusts; None if none were given.
        current: Bundles as they stand now, by id, to say whether the certificate is stale.
        identities: Identities of the deployments as configured now.
        given: What a certificate of this folder repeats of the run, freshly computed.
    """
    predicate = subject.statement["predicate"]
    problems = [
        *_plan_problems(subject),
        *(f"{item.kind}: {item.where}: {item.what}" for item in subject.run.findings),
        *_root_problems(subject),
        *subject.run.problems,
        *_gate_problems(subject, given),
    ]
    unknown = () if trusted is None else _unknown(subject, trusted)
    return Verification(
        verdict=str(predicate["verdict"]),
        problems=tuple(problems),
        stale=tuple(_stale(subject, current, identities)),
        unknown_signers=unknown if trusted is not None else ("no trusted keys were given",),
        checked=(
            "signature of the certificate",
            "plan digest, and the bundles it names",
            f"records of {', '.join(sorted(subject.run.evidence.heads))}: chains and signed heads",
            f"{len(subject.run.evidence.rows)} traces: chain, prompt, snapshot, three stages",
            "outcome root and record root",
            "reduced skills, the clauses they lack, and the trials that licensed this",
            "everything the certificate states: gates, verdict, support gap, subjects",
        ),
    )


def _plan_problems(subject: Subject) -> Iterator[str]:
    stated = subject.statement["predicate"]["plan"]
    if subject.run.plan.digest != stated["digest"]:
        yield "the folder's bundles and protocol do not give the certificate's plan digest"
    if digest_of(stated["statement"]) != stated["digest"]:
        yield "the plan written in the certificate does not have the digest written there"


def _root_problems(subject: Subject) -> Iterator[str]:
    predicate = subject.statement["predicate"]
    if subject.run.outcome_root != predicate["outcome_root"]:
        yield "the outcome root differs: a trace was changed, added or left out"
    if subject.run.record_root != predicate["record_root"]:
        yield "the record root differs: a trace row was changed, added or left out"
    heads = {
        name: {key: getattr(head, key) for key in head.__slots__}
        for name, head in subject.run.evidence.heads.items()
    }
    if heads != predicate["heads"]:
        yield "the signed heads in the folder are not those on the certificate"


def _row_problems(
    plan: Plan,
    bundles: Mapping[str, Bundle],
    evidence: Evidence,
    deletions: Mapping[tuple[str, str], tuple[str, ...]],
) -> Iterator[str]:
    """Re-render every prompt and re-read every answer."""
    declared = set(plan.cells)
    texts = PlacedTexts(bundles, deletions)
    for row in evidence.rows:
        body = row["body"]
        cell = cell_of(body)
        if cell not in declared:
            yield f"{cell.key}: the plan declares no such cell"
            continue
        bundle = bundles[cell.bundle]
        job = cell_job(bundle, cell, texts.of(cell), plan.protocol.seed)
        snapshot = bundle.member(cell.member).snapshot.decode()
        prompt = build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)
        answer = answer_text(RawAnswer.model_validate_json(canonical(body["answer"])))
        checks = {
            "the prompt does not re-render": body["prompt"] == prompt.digest,
            "the snapshot is not its member's": body["snapshot"] == job.snapshot,
            "the contract digest differs": body["contract"] == job.contract,
            "the effect digest differs": body["effect"] == job.effect,
            "the answer's digest differs": body["answer_digest"] == sha256(answer.encode()),
            "the proposal stage is not what the answer says": body["d1"]
            == d1_json(parse(RawAnswer.model_validate_json(answer))),
        }
        for problem, holds in checks.items():
            if not holds:
                yield f"{cell.key}: {problem}"


def _gate_problems(subject: Subject, given: Surroundings) -> Iterator[str]:
    unit = subject.statement["predicate"]["unit"]
    deployments: Any = subject.run.plan.statement["deployments"]
    run = CertifiedRun(
        plan=subject.run.plan,
        bundles=subject.run.bundles,
        identities={unit["deployment"]["name"]: unit["deployment"]["identity"]},
        outcomes=outcomes_of(subject.run.evidence, subject.run.plan.cells),
        deleted=subject.run.deleted,
        licensing={key: licensing_cells(item) for key, item in subject.run.bundles.items()},
    )
    placement = _placement(run, unit)
    if placement is None:
        yield "the plan declares no such deployment and condition"
        return
    if unit["deployment"]["digest"] != deployments.get(placement.deployment):
        yield "the deployment on the certificate is not the one that the plan names"
    fresh: Certified = certify(run, placement, given)
    yield from _differences(fresh.statement, subject.statement)


def _differences(fresh: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[str]:
    """Compare everything a certificate says, also what nobody expects there."""
    again, said = fresh["predicate"], stated["predicate"]
    for part in sorted((again.keys() | said.keys()) - _COMPARED_BEFORE):
        if part not in again:
            yield f"the certificate states {part}, which no certificate has"
        elif canonical(again[part]) != canonical(said.get(part)):
            yield f"{part}: recomputing gives another value than the certificate states"
    if canonical(fresh["subject"]) != canonical(stated["subject"]):
        yield "the digests of what was certified differ from the folder's files"
    if fresh["predicateType"] != stated.get("predicateType"):
        yield "the kind of evidence and the predicate type do not go together"
    if fresh["_type"] != stated.get("_type") or fresh.keys() != stated.keys():
        yield "the statement is not of the form of a certificate"


def _placement(run: CertifiedRun, unit: Mapping[str, Any]) -> Placement | None:
    for placement in placements(run):
        if (
            placement.deployment == unit["deployment"]["name"]
            and str(placement.condition) == unit["condition"]
        ):
            return placement
    return None


def _unknown(subject: Subject, trusted: Sequence[str]) -> tuple[str, ...]:
    signers = {"certifier": subject.signer}
    signers |= {name: head.key for name, head in subject.run.evidence.heads.items()}
    return tuple(
        f"{name} {key[:16]}..." for name, key in signers.items() if not is_trusted(key, trusted)
    )


def _stale(
    subject: Subject,
    current: Mapping[str, Bundle],
    identities: Mapping[str, Mapping[str, Any]],
) -> Iterator[str]:
    named = {
        item["name"]: "sha256:" + item["digest"]["sha256"] for item in subject.statement["subject"]
    }
    for key, bundle in current.items():
        now = {
            "full-skill": bundle.digests.skill,
            "contract": bundle.digests.contract,
            "ledger": bundle.digests.ledger,
            "effect": bundle.digests.effect,
            "locked-template": bundle.digests.template,
        }
        for part, digest in now.items():
            if named.get(f"{key}/{part}") != digest:
                yield f"{key}: the {part} has changed since"
    deployment = subject.statement["predicate"]["unit"]["deployment"]
    identity = identities.get(deployment["name"])
    if identity is not None and digest_of(dict(identity)) != deployment["digest"]:
        yield f"the deployment {deployment['name']} is configured differently now"
