"""From a sealed run to certificates: reads files, runs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.domain.document import DocumentFault, read_document
from retire.domain.errors import IncompleteError
from retire.domain.evidence import Evidence
from retire.matrix import PlanStatement
from retire.verify.run import SealedRun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.certify.certificate import Certificate
    from retire.deployments import Deployment
    from retire.domain.cell import Condition
    from retire.wiring.preparing import Prepared


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has been carried as far as it goes, and its certificates before they are signed.

    Attributes:
        run: The run.
        certificates: One for each deployment and candidate condition of its plan.
        evidence: The kind of evidence that its deployments give.
        incomplete: Why cells gave no trace in this pass, by cell key.
        seconds: Spent on each stage, over all passes.
    """

    run: SealedRun
    certificates: tuple[Certificate, ...]
    evidence: Evidence
    incomplete: Mapping[str, str]
    seconds: Mapping[str, float]

    def certificate_of(self, deployment: str, condition: Condition) -> Certificate | None:
        """Return one certificate, None if the plan does not declare it."""
        for item in self.certificates:
            if (item.deployment, item.condition) == (deployment, condition):
                return item
        return None


def conclude(
    prepared: Prepared,
    incomplete: Mapping[str, str],
    seconds: Mapping[str, float],
) -> Finished:
    """Join, judge and test what a run left in its folder; reads files, runs nothing."""
    run = SealedRun(prepared.folder.root)
    evidence = evidence_of(prepared.deployments)
    identities = {name: item.identity for name, item in prepared.deployments.items()}
    certificates = run.certify(identities, evidence, prior_runs(run))
    return Finished(run, certificates, evidence, incomplete, seconds)


def evidence_of(deployments: Mapping[str, Deployment]) -> Evidence:
    """Return the kind of evidence that all deployments give together."""
    return Evidence.of_all(item.evidence for item in deployments.values())


def prior_runs(run: SealedRun) -> int:
    """Count sibling runs that already judged the same skills and candidates."""
    mine = run.plan.statement
    count = 0
    for path in run.folder.root.parent.glob("*/plan.json"):
        if path.parent.resolve() == run.folder.root.resolve():
            continue
        try:
            other = read_document(PlanStatement, path.read_bytes())
        except (OSError, DocumentFault):
            continue
        count += other.skills == mine.skills and other.candidates == mine.candidates
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
    cells = sorted(finished.incomplete.items())
    named = "; ".join(f"{cell}: {why}" for cell, why in cells[:3])
    return IncompleteError(
        f"{len(cells)} cells have no evidence ({named})",
        where=str(finished.run.folder.root),
        mend="Run the same command again to try these cells again",
    )
