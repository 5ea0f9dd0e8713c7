"""Verifying certificates in the folder of their run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retire.bundle import load_bundle
from retire.bundle.loading import bundles_by_id
from retire.certify.envelope import open_envelope
from retire.deployments import EMBEDDED, EVIDENCE_OF_PROVIDER
from retire.domain.digests import digest_of
from retire.runner.folder import RunFolder, read_json
from retire.runner.opening import (
    check_statement,
    kept_reductions,
    open_evidence,
    open_plan,
)
from retire.runner.purging import refuse_purged
from retire.runner.verifying import Examined, Subject, Verification, examine, verify
from retire.wiring.concluding import described, kept_stability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from retire.deployments import Catalog
    from retire.matrix import Plan


def heads_of(root: Path) -> dict[str, str]:
    """Return the public keys (hex) that signed the heads of a run, by record name.

    Raises:
        InputError: Not the folder of a finished run.
        EvidenceError: Its seal or its traces are damaged.
    """
    evidence = open_evidence(RunFolder(root))
    return {name: head.key for name, head in sorted(evidence.heads.items())}


def examine_run(root: Path) -> Examined:
    """Open a run's folder and recompute what all its certificates share.

    Raises:
        InputError: Not the folder of a finished run.
        EvidenceError: A file of it is damaged or was replaced.
    """
    folder = RunFolder(root)
    plan, bundles = open_plan(folder)
    return examine(
        plan,
        bundles,
        open_evidence(folder),
        kept_reductions(folder, plan.protocol, bundles),
    )


def verify_certificate(
    path: Path,
    trusted: Sequence[str] | None,
    against: Sequence[Path],
    run: Examined | None = None,
    catalog: Catalog = EMBEDDED,
) -> tuple[Verification, str]:
    """Verify a certificate that lies in its run's folder; otherwise as verify_envelope."""
    folder = RunFolder(path.resolve().parent.parent)
    refuse_purged(folder.root)
    return verify_envelope(read_json(path), str(path), folder, trusted, against, run, catalog)


def verify_envelope(
    envelope: Mapping[str, Any],
    where: str,
    folder: RunFolder,
    trusted: Sequence[str] | None,
    against: Sequence[Path],
    run: Examined | None = None,
    catalog: Catalog = EMBEDDED,
) -> tuple[Verification, str]:
    """Verify a certificate against a run's folder; returns the result and the kind of evidence.

    Args:
        envelope: The signed certificate.
        where: Its name in messages.
        folder: The run's folder.
        trusted: Public keys (hex) that the reader trusts; None if none were given.
        against: Bundles as they stand now.
        run: The folder, if it has been examined already.
        catalog: The deployments as they are configured now.

    Raises:
        InputError: Not a certificate, or not the folder of a finished run.
        EvidenceError: The certificate's signature does not verify, or the folder is damaged.
    """
    statement, signer = open_envelope(envelope, where)
    check_statement(statement, where)
    run = run or examine_run(folder.root)
    predicate = statement["predicate"]
    kind = _verified_kind(run.plan, predicate, catalog)
    given = described(
        run.plan,
        run.evidence,
        run.findings,
        (run.outcome_root, run.record_root),
        kind,
        predicate["prior_runs_of_this_pair"],
        kept_stability(folder, run.plan),
    )
    current = {
        key: load_bundle(place)
        for key, place in bundles_by_id(list(against)).items()
        if key in run.bundles
    }
    name = predicate["unit"]["deployment"]["name"]
    identities = {name: catalog.named(name).identity} if name in catalog.names else {}
    return verify(Subject(statement, signer, run), trusted, current, identities, given), kind


def _verified_kind(plan: Plan, predicate: Mapping[str, Any], catalog: Catalog) -> str:
    """Return the kind of evidence that the plan's deployments give, not what a signer says.

    The plan holds the digest of every deployment's identity, and the certificate the identity of
    its own: who was asked follows from that. Of the others of the plan only those are known that
    are configured here as they were then.
    """
    stated, unit = str(predicate["evidence"]), predicate["unit"]["deployment"]
    planned: Mapping[str, Any] = plan.statement["deployments"]  # type: ignore[assignment]  # a mapping
    identities = {
        name: dict(catalog.named(name).identity)
        for name in planned
        if name in catalog.names and name != unit["name"]
    }
    identities[unit["name"]] = unit["identity"]
    kinds = {
        kind
        for name, identity in identities.items()
        if digest_of(identity) == planned.get(name)
        and (kind := EVIDENCE_OF_PROVIDER.get(str(identity.get("provider")))) is not None
    }
    if not kinds or (stated in kinds and len(kinds) == 1):
        return stated
    return next(iter(kinds)) if len(kinds) == 1 else "mixed"
