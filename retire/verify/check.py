"""Verify a certificate against its run: whatever can be recomputed is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retire.certify.envelope import is_trusted
from retire.deployments.port import EVIDENCE_OF_PROVIDER
from retire.domain.digests import canonical, digest_of
from retire.domain.evidence import Evidence
from retire.domain.seal import heads_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from retire.bundle import Bundle
    from retire.certify.certificate import Certificate
    from retire.certify.gates import Verdict
    from retire.domain.digests import Json
    from retire.verify.run import SealedRun

_COMPARED_BEFORE = {"plan", "outcome_root", "record_root", "heads"}
"""Parts of a certificate that have a comparison, and words, of their own."""


@dataclass(frozen=True, slots=True)
class Now:
    """What stands today: bundles by id, and identities of deployments by name.

    ``trusted`` are the public keys (hex) that the reader trusts; None if none were given.
    """

    bundles: Mapping[str, Bundle] = field(default_factory=dict)
    identities: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    trusted: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """The result. ``problems`` break it, ``stale`` ages it, ``unknown_signers`` leave it open.

    ``evidence`` is the kind that the plan's deployments give, whatever a signer says.
    """

    verdict: Verdict
    evidence: Evidence
    problems: tuple[str, ...]
    stale: tuple[str, ...]
    unknown_signers: tuple[str, ...]
    checked: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether everything that can be recomputed agrees with the certificate."""
        return not self.problems


def verify(
    certificate: Certificate, signer: str, run: SealedRun, problems: Sequence[str], now: Now
) -> Verification:
    """Check a certificate.

    Args:
        certificate: Its signature was checked.
        signer: The public key (hex) that signed it.
        run: The run whose folder it belongs to.
        problems: What :func:`retire.verify.recompute.run_problems` says of the run.
        now: What stands today.
    """
    evidence = _evidence(run, certificate, now)
    found = [
        *_plan_problems(certificate, run),
        *(f"{item.kind}: {item.where}: {item.what}" for item in run.findings),
        *_root_problems(certificate, run),
        *problems,
        *_statement_problems(certificate, run, evidence),
    ]
    unknown: tuple[str, ...] = ("no trusted keys were given",)
    if now.trusted is not None:
        unknown = _unknown(signer, run, now.trusted)
    return Verification(
        verdict=certificate.verdict,
        evidence=evidence,
        problems=tuple(found),
        stale=tuple(_stale(certificate, now)),
        unknown_signers=unknown,
        checked=(
            "signature of the certificate",
            "plan digest, and the bundles it names",
            f"records of {', '.join(sorted(run.records.heads))}: chains and signed heads",
            f"{len(run.traces)} traces: chain, prompt, snapshot, three stages",
            "outcome root and record root",
            "reduced skills, the clauses they lack, and the trials that licensed this",
            "everything the certificate states: gates, verdict, support gap, subjects",
        ),
    )


def _plan_problems(certificate: Certificate, run: SealedRun) -> Iterator[str]:
    stated = certificate.predicate.plan
    if run.plan.digest != stated.digest:
        yield "the folder's bundles and protocol do not give the certificate's plan digest"
    if digest_of(stated.statement.as_json()) != stated.digest:
        yield "the plan written in the certificate does not have the digest written there"


def _root_problems(certificate: Certificate, run: SealedRun) -> Iterator[str]:
    predicate = certificate.predicate
    if run.traces.outcome_root != predicate.outcome_root:
        yield "the outcome root differs: a trace was changed, added or left out"
    if run.traces.record_root != predicate.record_root:
        yield "the record root differs: a trace row was changed, added or left out"
    if heads_of(run.records.heads) != predicate.heads:
        yield "the signed heads in the folder are not those on the certificate"


def _statement_problems(
    certificate: Certificate, run: SealedRun, evidence: Evidence
) -> Iterator[str]:
    deployment = certificate.predicate.unit.deployment
    fresh = run.certify(
        {deployment.name: deployment.identity},
        evidence,
        certificate.predicate.prior_runs_of_this_pair,
    )
    again = [item for item in fresh if item.condition is certificate.condition]
    if not again:
        yield "the plan declares no such deployment and condition"
        return
    if deployment.digest != run.plan.statement.deployments.get(deployment.name):
        yield "the deployment on the certificate is not the one that the plan names"
    yield from _differences(again[0], certificate)


def _differences(fresh: Certificate, stated: Certificate) -> Iterator[str]:
    again, said = fresh.predicate.as_json(), stated.predicate.as_json()
    for part in sorted((again.keys() | said.keys()) - _COMPARED_BEFORE):
        if canonical(again.get(part)) != canonical(said.get(part)):
            yield f"{part}: recomputing gives another value than the certificate states"
    if fresh.subject != stated.subject:
        yield "the digests of what was certified differ from the folder's files"
    if fresh.predicate_type != stated.predicate_type:
        yield "the kind of evidence and the predicate type do not go together"


def _unknown(signer: str, run: SealedRun, trusted: Sequence[str]) -> tuple[str, ...]:
    signers = {"certifier": signer}
    signers |= {name: head.key for name, head in run.records.heads.items()}
    return tuple(
        f"{name} {key[:16]}..." for name, key in signers.items() if not is_trusted(key, trusted)
    )


def _stale(certificate: Certificate, now: Now) -> Iterator[str]:
    named = certificate.digests
    for key, bundle in now.bundles.items():
        digests = bundle.digests
        today = {
            "full-skill": digests.skill,
            "contract": digests.contract,
            "ledger": digests.ledger,
            "effect": digests.effect,
            "locked-template": digests.template,
        }
        for part, digest in today.items():
            if named.get(f"{key}/{part}") != digest:
                yield f"{key}: the {part} has changed since"
    deployment = certificate.predicate.unit.deployment
    identity = now.identities.get(deployment.name)
    if identity is not None and digest_of(identity) != deployment.digest:
        yield f"the deployment {deployment.name} is configured differently now"


def _evidence(run: SealedRun, certificate: Certificate, now: Now) -> Evidence:
    """Return the kind of evidence that the plan's deployments give, not what a signer says.

    The plan holds the digest of every deployment's identity, and the certificate the identity of
    its own: who was asked follows from that. Of the others of the plan only those are known that
    are configured here as they were then.
    """
    unit = certificate.predicate.unit.deployment
    planned = run.plan.statement.deployments
    identities = {**now.identities, unit.name: unit.identity}
    kinds = {
        kind
        for name, identity in identities.items()
        if digest_of(identity) == planned.get(name)
        and (kind := EVIDENCE_OF_PROVIDER.get(str(identity.get("provider")))) is not None
    }
    stated = certificate.evidence
    return stated if not kinds or kinds == {stated} else Evidence.of_all(kinds)
