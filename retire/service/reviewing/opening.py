"""Opening a run's folder for review: a sealed run once, a live one as it stands."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from retire.deployments import EMBEDDED
from retire.domain.evidence import Evidence
from retire.pages.html.index import TraceIndex
from retire.pages.html.review import Review
from retire.verify.inputs import deleted_of, read_plan, read_reductions
from retire.wiring.verification import RunVerifier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from retire.deployments import Catalog
    from retire.domain.cell import Cell
    from retire.matrix import Plan
    from retire.runner.folder import RunFolder
    from retire.service.reviewing.rows import StoredTraces
    from retire.verify.check import Verification
    from retire.verify.run import SealedRun, SignedCertificate


def sealed_review(name: str, title: str, run: SealedRun, catalog: Catalog = EMBEDDED) -> Review:
    """Return a sealed run for review.

    Args:
        name: What addresses call it.
        title: What people call it.
        run: The run.
        catalog: The deployments as they are configured now.
    """
    traces = run.traces  # the records need not stay in memory
    return Review(
        id=name,
        title=title,
        plan=run.plan,
        bundles=run.bundles,
        reductions=run.reductions,
        evidence=_evidence(run.plan, run.certificates, catalog),
        certificates=run.certificates,
        heads=run.records.heads,
        index=TraceIndex(traces.outcomes),
        untraced=_cells(run.plan, run.untraced),
        sealed=True,
        trace=lambda seq: traces.row(seq - 1),
        verify=_verifying(run.folder, catalog),
    )


class LiveRun:
    """A run that goes on; what cannot change is read once.

    Raises:
        InputError: Not the folder of a run, or it was purged.
        EvidenceError: Its plan is damaged, or a copy of a bundle.
    """

    def __init__(
        self, name: str, title: str, folder: RunFolder, traces: StoredTraces, catalog: Catalog
    ) -> None:
        self._names = name, title
        self._folder = folder
        self._traces = traces
        self._catalog = catalog
        self._plan, self._bundles = read_plan(folder)
        self._known: tuple[object, Review] | None = None

    def review(self) -> Review:
        """Return the run as it stands now; counted anew only where there is more of it.

        Raises:
            IncompleteError: Its database does not answer.
            EvidenceError: A file of it is damaged.
        """
        traces, plan = self._traces, self._plan
        leaked = traces.look()
        reductions = read_reductions(self._folder, plan, self._bundles)
        stand = (len(traces.index), leaked, deleted_of(reductions))
        if self._known is None or self._known[0] != stand:
            name, title = self._names
            review = Review(
                id=name,
                title=title,
                plan=plan,
                bundles=self._bundles,
                reductions=reductions,
                evidence=_evidence(plan, (), self._catalog),
                certificates=(),
                heads={},
                index=traces.index,
                untraced=_cells(plan, leaked),
                sealed=False,
                trace=traces.trace,
                verify=_verifying(self._folder, self._catalog),
            )
            self._known = stand, review
        return self._known[1]


def _cells(plan: Plan, keys: Sequence[str]) -> tuple[Cell, ...]:
    wanted = set(keys)
    return tuple(sorted(cell for cell in plan.cells if cell.key in wanted)) if wanted else ()


def _verifying(folder: RunFolder, catalog: Catalog) -> Callable[[str], Verification]:
    verifier = cache(lambda: RunVerifier(folder.root, catalog))
    return lambda name: verifier().verify_file(folder.certificates / f"{name}.json")


def _evidence(plan: Plan, certificates: Iterable[SignedCertificate], catalog: Catalog) -> Evidence:
    """Return the kind of evidence that certificates state, else that the deployments give."""
    stated = [it.item.evidence for it in certificates if it.item is not None]
    return Evidence.of_all(
        stated
        or [
            catalog.named(name).evidence if name in catalog.names else Evidence.UNKNOWN
            for name in plan.protocol.deployments
        ]
    )
