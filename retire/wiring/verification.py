"""Verifying certificates in the folder of their run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retire.bundle import load_bundle
from retire.bundle.loading import bundles_by_id
from retire.certify.envelope import open_envelope
from retire.deployments import EMBEDDED
from retire.domain.digests import digest_of
from retire.runner.folder import RunFolder, read_json
from retire.runner.opening import (
    check_statement,
    open_evidence,
    open_plan,
    open_reductions,
    reduced_texts,
)
from retire.runner.verifying import Examined, Subject, Verification, examine, verify
from retire.wiring.concluding import described, evidence_kind, kept_stability

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
    described = open_reductions(folder, plan.protocol, bundles)
    return examine(
        plan,
        bundles,
        open_evidence(folder),
        {pair: tuple(value["deleted"]) for pair, value in described.items()},
        reduced_texts(folder, plan.protocol),
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
    kind = _verified_kind(run.plan, str(predicate["evidence"]), catalog)
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


def _verified_kind(plan: Plan, stated: str, catalog: Catalog) -> str:
    """Return the kind of evidence that the plan's deployments give, not what a signer says.

    Where one of them is unknown here or configured differently, the stated kind is all there is.
    """
    names = plan.protocol.deployments
    if not set(names) <= set(catalog.names):
        return stated
    present = {name: catalog.named(name) for name in names}
    as_planned = all(
        digest_of(dict(item.identity)) == plan.statement["deployments"].get(name)  # type: ignore[union-attr]  # a mapping
        for name, item in present.items()
    )
    return evidence_kind(present) if as_planned else stated
