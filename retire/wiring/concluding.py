"""From what a run left in its folder to certificates: reads files, runs nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.certify.certificate import Surroundings
from retire.certify.certifying import Certified, Run, certify, licensing_cells, placements
from retire.certify.hypotheses import Hypotheses, run_hypotheses
from retire.certify.joining import Evidence, Finding, join, outcomes_of
from retire.certify.rereading import Rereading, rereading_of
from retire.certify.separation import separation_of
from retire.certify.stability import read_stability, stated_of
from retire.domain.errors import IncompleteError
from retire.domain.trace import outcome_root, record_root
from retire.matrix import STUB_WORLD
from retire.runner.folder import read_json
from retire.runner.opening import open_evidence, open_reductions
from retire.runner.sealing import head_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.deployments import Deployment
    from retire.matrix import Plan
    from retire.runner.folder import RunFolder
    from retire.wiring.preparing import Prepared


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has been carried as far as it goes."""

    prepared: Prepared
    evidence: Evidence
    run: Run
    findings: tuple[Finding, ...]
    certified: tuple[Certified, ...]
    hypotheses: Hypotheses
    reductions: Mapping[tuple[str, str], Mapping[str, Any]]
    incomplete: Mapping[str, str]
    outcome_root: str
    record_root: str
    seconds: Mapping[str, float]


def conclude(
    prepared: Prepared,
    incomplete: Mapping[str, str],
    seconds: Mapping[str, float],
) -> Finished:
    """Join, judge and test what a run left in its folder; reads files, runs nothing."""
    evidence = open_evidence(prepared.folder)
    findings = join(evidence)
    reductions = open_reductions(prepared.folder, prepared.plan.protocol, prepared.bundles)
    run = Run(
        plan=prepared.plan,
        bundles=prepared.bundles,
        identities={name: item.identity for name, item in prepared.deployments.items()},
        outcomes=outcomes_of(evidence, prepared.plan.cells),
        deleted={pair: tuple(value["deleted"]) for pair, value in reductions.items()},
        licensing={key: licensing_cells(bundle) for key, bundle in prepared.bundles.items()},
    )
    given = described(
        prepared.plan,
        evidence,
        findings,
        (
            outcome_root(row["body"] for row in evidence.rows),
            record_root([row["hash"] for row in evidence.rows]),
        ),
        evidence_kind(prepared.deployments),
        prior_runs(prepared),
        kept_stability(prepared.folder, prepared.plan),
    )
    return Finished(
        prepared=prepared,
        evidence=evidence,
        run=run,
        findings=findings,
        certified=tuple(certify(run, placement, given) for placement in placements(run)),
        hypotheses=run_hypotheses(run.outcomes, prepared.plan.cells, prepared.plan.protocol),
        reductions=reductions,
        incomplete=incomplete,
        outcome_root=given.outcome_root,
        record_root=given.record_root,
        seconds=seconds,
    )


def described(
    plan: Plan,
    evidence: Evidence,
    findings: Sequence[Finding],
    roots: tuple[str, str],
    kind: str,
    prior: int,
    stability: Mapping[str, Mapping[str, Any] | str],
) -> Surroundings:
    """Return what every certificate of a run repeats of it, when it is made and when verified.

    Args:
        plan: The fixed plan.
        evidence: What the run left behind.
        findings: What does not fit in it.
        roots: Outcome root and record root.
        kind: The kind of evidence that its deployments give.
        prior: How many earlier runs judged the same pair.
        stability: What was measured of each deployment.
    """
    return Surroundings(
        plan=plan.statement,
        plan_digest=plan.digest,
        scope="bundle" if len(plan.protocol.bundles) == 1 else "panel",
        evidence=kind,
        world=plan.world,
        outcome_root=roots[0],
        record_root=roots[1],
        heads={name: head_json(head) for name, head in evidence.heads.items()},
        findings=findings,
        prior_runs=prior,
        stability=stability,
        rereading=None if plan.world == STUB_WORLD else _rereading(evidence),
        separation=separation_of(evidence.passes),
    )


def _rereading(evidence: Evidence) -> Rereading:
    return rereading_of(row["body"] for row in evidence.rows)


def kept_stability(folder: RunFolder, plan: Plan) -> dict[str, dict[str, Any] | str]:
    """Return what a run's folder holds of its deployments' stability, by deployment.

    Raises:
        InputError: The file is damaged, or was measured with other deployments or skills.
    """
    if not folder.stability.exists():
        return {}
    where = str(folder.stability)
    kept = read_json(folder.stability)
    items = kept.get("measurements", ()) if isinstance(kept, dict) else ()
    measured = [read_stability(json.dumps(item).encode(), where) for item in items]
    return stated_of(measured, plan.statement)


def evidence_kind(deployments: Mapping[str, Deployment]) -> str:
    """Return the one kind of evidence that all deployments give, or "mixed"."""
    kinds = sorted({item.evidence for item in deployments.values()})
    return kinds[0] if len(kinds) == 1 else "mixed"


def prior_runs(prepared: Prepared) -> int:
    """Count sibling runs that already judged the same skills and candidates."""
    wanted = {key: bundle.digests.skill for key, bundle in prepared.bundles.items()}
    given = prepared.plan.statement["candidates"]
    count = 0
    for path in prepared.folder.root.parent.glob("*/plan.json"):
        if path.parent.resolve() == prepared.folder.root.resolve():
            continue
        try:
            other = json.loads(path.read_bytes())
            skills = {key: value["skill"] for key, value in other["bundles"].items()}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        count += skills == wanted and other.get("candidates") == given
    return count


def require_complete(finished: Finished) -> None:
    """Raise if the run lacks cells.

    Raises:
        IncompleteError: Names the first missing cells and why.
    """
    if (missing := missing_cells(finished)) is not None:
        raise missing


def missing_cells(finished: Finished) -> IncompleteError | None:
    """Return the error that names the first cells without evidence, if there are any."""
    if not finished.incomplete:
        return None
    cells: Sequence[tuple[str, str]] = sorted(finished.incomplete.items())
    named = "; ".join(f"{cell}: {why}" for cell, why in cells[:3])
    return IncompleteError(
        f"{len(cells)} cells have no evidence ({named})",
        where=str(finished.prepared.folder.root),
        mend="Run the same command again to try these cells again",
    )
