"""A run under review: what every page is built from."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retire.certify.hypotheses import run_hypotheses
from retire.certify.joining import unfinished_leak
from retire.domain.cell import AUTHORIZED
from retire.domain.document import DocumentFault, read_document
from retire.pages.counting import Counts
from retire.pages.html.heat import heat_maps
from retire.reduce import Trial
from retire.runner.reducing import GivenReduction
from retire.verify.inputs import damaged, deleted_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from retire.bundle import Bundle
    from retire.domain.cell import Cell
    from retire.domain.evidence import Evidence
    from retire.domain.outcome import Outcome
    from retire.domain.trace import TraceRow
    from retire.matrix import Plan
    from retire.pages.html.heat import HeatMap
    from retire.pages.html.index import TraceIndex
    from retire.runner.reducing import KeptReduction
    from retire.verify.check import Verification
    from retire.verify.run import SignedCertificate
    from sink.record import Head


@dataclass(frozen=True, eq=False, kw_only=True)
class Review:
    """One run, as it was sealed or as it stands now; what takes long is computed once.

    Attributes:
        id: What addresses call it.
        title: What people call it.
        plan: The fixed plan.
        bundles: The run's own copies, by id.
        reductions: What each reduction left, by deployment and bundle.
        evidence: The kind of evidence.
        certificates: Those that lie with the run, by name.
        heads: Signed heads of the records, once the run is sealed.
        index: Its traces.
        untraced: Cells without a trace in one of whose attempts a protected effect was sighted: the
            attempt was cut, or is not finished.
        sealed: Whether the run was carried to its end.
        trace: Reads one whole trace row by its number.
        verify: Verifies a certificate by its name.
    """

    id: str
    title: str
    plan: Plan
    bundles: Mapping[str, Bundle]
    reductions: Mapping[tuple[str, str], KeptReduction]
    evidence: Evidence
    certificates: tuple[SignedCertificate, ...]
    heads: Mapping[str, Head]
    index: TraceIndex
    untraced: tuple[Cell, ...]
    sealed: bool
    trace: Callable[[int], TraceRow]
    verify: Callable[[str], Verification]
    verified: dict[str, Verification] = field(default_factory=dict)
    """What verifying certificates found, so far."""
    _turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def ended(self) -> bool:
        """Whether nothing of it will change any more."""
        return self.sealed and bool(self.certificates or not self.plan.protocol.candidates)

    @cached_property
    def deleted(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The clauses that each reduction deleted, by deployment and bundle."""
        return deleted_of(self.reductions)

    @property
    def given(self) -> bool:
        """Whether a person made the candidates; else the run's reducer did."""
        return any(isinstance(it.described, GivenReduction) for it in self.reductions.values())

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """Every outcome: of the traces, then of leaks that no trace tells of."""
        return [*(row.outcome for row in self.index), *map(unfinished_leak, self.untraced)]

    @cached_property
    def counts(self) -> Counts:
        """The counts of all outcomes."""
        return Counts(self.outcomes, self.plan.cells)

    @cached_property
    def maps(self) -> tuple[HeatMap, ...]:
        """The heat maps."""
        return heat_maps(self.id, self.plan.protocol, self.bundles, self.counts)

    @property
    def untraced_leaks(self) -> tuple[Cell, ...]:
        """The invalid requests among the untraced; on an authorized one the effect is no leak."""
        return tuple(cell for cell in self.untraced if not cell.authorized)

    def certificate_of(self, deployment: str, condition: str) -> SignedCertificate | None:
        """Return the certificate of a candidate, None where there is none to believe."""
        for signed in self.certificates:
            item = signed.item
            if item is not None and (item.deployment, str(item.condition)) == (
                deployment,
                condition,
            ):
                return signed
        return None

    def named(self, name: str) -> SignedCertificate:
        """Return a certificate by its name; raises KeyError where there is none."""
        return {signed.name: signed for signed in self.certificates}[name]

    def twin_of(self, cell: Cell) -> Cell:
        """Return the authorized cell that a cell is matched to."""
        return replace(cell, member=AUTHORIZED)

    def trials(self, deployment: str, bundle: str) -> list[Trial]:
        """Return the trial ledger of a reduction; empty where a person made the candidate.

        Raises:
            EvidenceError: It is damaged.
        """
        lines = (self.reductions[deployment, bundle].ledger or b"").splitlines()
        try:
            return [read_document(Trial, line) for line in lines]
        except DocumentFault as fault:
            where = f"trial ledger of {bundle} for {deployment}"
            raise damaged(where, fault) from fault

    # -- what takes long: it must not hold up the pages that do not ask for it -------------------

    @cached_property
    def _tests(self) -> Mapping[str, Mapping[str, Any]]:
        return run_hypotheses(self.outcomes, self.plan.cells, self.plan.protocol).tests

    def tests(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the hypothesis tests; none while the run goes on."""
        if not self.sealed:
            return {}
        with self._turn:
            return self._tests

    @property
    def tested(self) -> bool:
        """Whether the tests were computed already."""
        return "_tests" in self.__dict__

    def verification(self, name: str) -> Verification:
        """Return what verifying a certificate finds.

        Raises:
            KeyError: There is no such certificate.
            InputError: It is none, or the folder is not that of a finished run.
            EvidenceError: Its signature does not verify, or the folder is damaged.
        """
        self.named(name)
        with self._turn:
            if name not in self.verified:
                self.verified[name] = self.verify(name)
            return self.verified[name]
