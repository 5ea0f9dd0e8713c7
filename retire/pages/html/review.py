"""A run that was read for review: what every page is built from. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from retire.certify.joining import unfinished_leak
from retire.domain.cell import AUTHORIZED
from retire.pages.exports.reading import read_findings
from retire.pages.words import Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.bundle import Bundle
    from retire.certify.certifying import Certified
    from retire.domain.cell import Cell
    from retire.domain.outcome import Outcome
    from retire.matrix import Plan
    from retire.pages.counting import Counts
    from retire.pages.html.index import TraceIndex


@dataclass(frozen=True, slots=True)
class SignedCertificate:
    """A certificate as it lies with its run.

    ``fault`` says why it cannot be believed, and then there is neither ``item`` nor statement; its
    signature was checked against the key that it names, nothing else of it.
    """

    name: str
    envelope: Mapping[str, Any]
    signer: str = ""
    item: Certified | None = None
    fault: str = ""

    @property
    def statement(self) -> Mapping[str, Any]:
        """The signed statement; empty where there is none to believe."""
        return self.item.statement if self.item is not None else {}


@dataclass(frozen=True, slots=True)
class Review:
    """One run.

    Attributes:
        id: What addresses call it.
        title: What people call it.
        plan: The fixed plan.
        bundles: The run's own copies, by id.
        deleted: The clauses that each reduction deleted, by deployment and bundle.
        given: Whether a person made the candidates; else the run's reducer did.
        evidence: The kind of evidence, or "mixed".
        certificates: Those that lie with the run, by deployment and condition.
        heads: Signed heads of the records, once the run is sealed.
        index: Its traces.
        counts: The counts of all outcomes.
        untraced: Cells without a trace in one of whose attempts a protected effect was sighted: the
            attempt was cut, or is not finished.
        sealed: Whether the run was carried to its end.
    """

    id: str
    title: str
    plan: Plan
    bundles: Mapping[str, Bundle]
    deleted: Mapping[tuple[str, str], tuple[str, ...]]
    given: bool
    evidence: str
    certificates: tuple[SignedCertificate, ...]
    heads: Mapping[str, Mapping[str, Any]]
    index: TraceIndex
    counts: Counts
    sealed: bool
    untraced: tuple[Cell, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether nothing of it will change any more."""
        return self.sealed and bool(self.certificates or not self.plan.protocol.candidates)

    def outcomes(self) -> list[Outcome]:
        """Return every outcome: of the traces, then of leaks that no trace tells of."""
        return [*self.index.outcomes(), *map(unfinished_leak, self.untraced)]

    @property
    def untraced_leaks(self) -> tuple[Cell, ...]:
        """The invalid requests among the untraced; on an authorized one the effect is no leak."""
        return tuple(cell for cell in self.untraced if not cell.authorized)

    def certificate_of(self, deployment: str, condition: str) -> SignedCertificate | None:
        """Return the certificate of a candidate, None where there is none to believe."""
        for signed in self.certificates:
            if signed.item is not None:
                placement = signed.item.placement
                if (placement.deployment, str(placement.condition)) == (deployment, condition):
                    return signed
        return None

    def named(self, name: str) -> SignedCertificate:
        """Return a certificate by its name; raises KeyError where there is none."""
        for signed in self.certificates:
            if signed.name == name:
                return signed
        raise KeyError(name)

    def told(self, item: Certified) -> Told:
        """Return what the words about a certificate rest on."""
        return Told(
            item=item,
            bundles=self.bundles,
            evidence=self.evidence,
            margin_points=self.plan.protocol.margin_points,
            findings=read_findings(item.statement),
            leaks=(),
            place="",
        )

    def twin_of(self, cell: Cell) -> Cell:
        """Return the authorized cell that a cell is matched to."""
        return replace(cell, member=AUTHORIZED)
