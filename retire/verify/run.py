"""A sealed run: the only reader of a run's folder.

A verifier reads files that anybody may have changed. Nothing here repairs or skips; a file that
does not have the form that every run writes is evidence against the run, not a reason to crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from retire.certify.certificate import Certificate, StatedPlan, Surroundings
from retire.certify.certifying import certify, placements
from retire.certify.envelope import open_certificate, read_envelope
from retire.certify.hypotheses import run_hypotheses
from retire.certify.joining import RECORDS, Records, join, leaks_without_row, outcomes_of
from retire.certify.rereading import rereading_of
from retire.certify.separation import separation_of
from retire.certify.stability import Measurements, stated_of
from retire.domain.digests import merkle_root
from retire.domain.document import (
    DocumentFault,
    read_document,
)
from retire.domain.errors import EvidenceError, RetireError
from retire.domain.evidence import Evidence
from retire.domain.seal import Seal, heads_of
from retire.domain.trace import TraceRow, record_root
from retire.matrix import STUB_WORLD
from retire.prompts import build_prompt
from retire.runner.folder import RunFolder, read_bytes
from retire.runner.job import PlacedTexts, cell_job
from retire.verify.inputs import (
    RESTORE,
    bytes_of,
    damaged,
    deleted_of,
    read_file,
    read_plan,
    read_reductions,
    require,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from retire.certify.hypotheses import Hypotheses
    from retire.certify.joining import Finding
    from retire.certify.stability import Stated
    from retire.domain.cell import Cell
    from retire.domain.digests import Json
    from retire.domain.outcome import Outcome
    from retire.domain.trace import Trace
    from retire.prompts import Prompt


@dataclass(frozen=True, slots=True)
class StoredCell:
    """A declared cell. ``row`` is None where the run has no evidence for it.

    ``leaked`` says that a protected effect was sighted although there is no trace.
    """

    cell: Cell
    row: TraceRow | None
    leaked: bool

    @property
    def trace(self) -> Trace | None:
        """The trace, None where there is no evidence."""
        return None if self.row is None else self.row.body


@dataclass(frozen=True, slots=True)
class SignedCertificate:
    """A certificate as it lies with its run.

    ``fault`` says why it cannot be believed, and then there is no ``item``; its signature was
    checked against the key that it names, nothing else of it.
    """

    name: str
    envelope: bytes
    signer: str = ""
    item: Certificate | None = None
    fault: str = ""


class TraceFile:
    """The rows of a trace file, read anew on each pass; each is checked when it is opened.

    Attributes:
        outcomes: What the certifier reads of each row, in the order of the chain.

    Raises:
        EvidenceError: A row is not what a run writes; names its line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: list[int] = []
        self.outcomes: list[Outcome] = []
        for place, row in self._walk():
            self._places.append(place)
            self.outcomes.append(row.body.outcome())

    def __iter__(self) -> Iterator[TraceRow]:
        """Yield each row in the order of the chain."""
        for _, row in self._walk():
            yield row

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._places)

    def row(self, index: int) -> TraceRow:
        """Return one row, counted from 0.

        Raises:
            EvidenceError: The file was changed since it was opened.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._places[index])
                return self._read(file.readline(), index + 1)
        except OSError as error:
            raise self._silent(error) from error

    @property
    def outcome_root(self) -> str:
        """The Merkle root over the leaves in cell order."""
        return self._roots[0]

    @property
    def record_root(self) -> str:
        """The Merkle root over the hashes in chain order."""
        return self._roots[1]

    @cached_property
    def _roots(self) -> tuple[str, str]:
        """Both roots; looking at a run needs neither, and leaves take as long as reading."""
        outcomes: list[Outcome] = []
        leaves: list[bytes] = []
        hashes: list[str] = []
        for row in self:
            outcomes.append(row.body.outcome())
            leaves.append(row.body.leaf())
            hashes.append(row.hash)
        if outcomes != self.outcomes:  # else the root would not speak of what was judged
            raise EvidenceError(
                "the traces were changed while they were read", where=str(self._path), mend=RESTORE
            )
        ordered = sorted(zip([it.cell for it in outcomes], leaves, strict=True))
        return merkle_root([leaf for _, leaf in ordered]), record_root(hashes)

    def _walk(self) -> Iterator[tuple[int, TraceRow]]:
        place = 0
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    yield place, self._read(line, number)
                    place += len(line)
        except OSError as error:
            raise self._silent(error) from error

    def _read(self, line: bytes, number: int) -> TraceRow:
        try:
            return read_document(TraceRow, line)
        except DocumentFault as fault:
            raise damaged(f"{self._path}:{number}", fault) from fault

    def _silent(self, error: OSError) -> EvidenceError:
        return EvidenceError(
            f"the traces cannot be read: {error.strerror}", where=str(self._path), mend=RESTORE
        )


class SealedRun:
    """A run that was carried to its end, as its folder has it.

    Attributes:
        folder: Where it lies.
        plan: The plan, made anew from the folder's copies.
        bundles: The copies of the bundles, by id.
        reductions: The reductions, by deployment and bundle.
        traces: Its traces.
        records: Traces, records and heads, to be joined.
        sealed_at: When the run was sealed, from the file's time.

    Raises:
        InputError: Not the folder of a finished run, or it was purged.
        EvidenceError: A file is damaged or was replaced; names it, and for a trace its line.
    """

    def __init__(self, root: Path) -> None:
        self.folder = folder = RunFolder(root)
        self.plan, self.bundles = read_plan(folder)
        self.reductions = read_reductions(folder, self.plan, self.bundles)
        for path in (folder.seal, folder.traces):
            require(path, "a finished run")
        seal = read_file(Seal, folder.seal)
        self.traces = TraceFile(folder.traces)
        files = {name: bytes_of(folder.records / f"{name}.jsonl") for name in RECORDS}
        self.records = Records(
            rows=self.traces,
            files=files,
            heads={name: value.head for name, value in seal.heads.items()},
            stray=seal.stray,
            attempts=seal.attempts,
            passes=seal.passes,
        )
        self.sealed_at = datetime.fromtimestamp(folder.seal.stat().st_mtime, UTC)

    # -- what follows from the records -----------------------------------------------------

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What does not fit between traces and records."""
        return join(self.records)

    @cached_property
    def outcomes(self) -> Sequence[Outcome]:
        """The outcomes of declared cells, and leaks of cells that have no trace."""
        return outcomes_of(self.traces.outcomes, self.untraced, self.plan.cells)

    @cached_property
    def untraced(self) -> tuple[str, ...]:
        """Keys of cells without a trace in one of whose attempts a leak was sighted."""
        finished = {outcome.cell.key for outcome in self.traces.outcomes}
        return leaks_without_row(self.records, finished)

    @cached_property
    def hypotheses(self) -> Hypotheses:
        """The three tests; computing them takes seconds."""
        return run_hypotheses(self.outcomes, self.plan.cells, self.plan.protocol)

    @property
    def deleted(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """The clauses that each reduction deleted, by deployment and bundle."""
        return deleted_of(self.reductions)

    @cached_property
    def stability(self) -> Mapping[str, Stated]:
        """What the folder holds of its deployments' stability, by deployment.

        Raises:
            InputError: It was measured with other deployments or skills.
        """
        path = self.folder.stability
        if not path.exists():
            return {}
        measured = read_file(Measurements, path).measurements
        return stated_of(measured, self.plan.statement.deployments, self.plan.statement.skills)

    # -- certificates ----------------------------------------------------------------------

    @cached_property
    def certificates(self) -> tuple[SignedCertificate, ...]:
        """The certificates that lie with the run, by name."""
        return read_certificates(self.folder.certificates)

    @property
    def evidence(self) -> Evidence:
        """The kind of evidence as the certificates state it."""
        return Evidence.of_all(it.item.evidence for it in self.certificates if it.item)

    def certify(
        self,
        identities: Mapping[str, Mapping[str, Json]],
        evidence: Evidence,
        prior_runs: int,
    ) -> tuple[Certificate, ...]:
        """Judge every placement that the plan declares, or those of some deployments.

        Args:
            identities: How deployments are configured, by name; others are left out.
            evidence: The kind of evidence that they give.
            prior_runs: How many earlier runs judged the same pair.
        """
        given = Surroundings(
            plan=StatedPlan(digest=self.plan.digest, statement=self.plan.statement),
            evidence=evidence,
            outcome_root=self.traces.outcome_root,
            record_root=self.traces.record_root,
            heads=heads_of(self.records.heads),
            findings=self.findings,
            prior_runs=prior_runs,
            separation=separation_of(self.records.passes),
            stability=self.stability,
            rereading=None
            if self.plan.world == STUB_WORLD
            else rereading_of(row.body for row in self.traces),
        )
        return tuple(
            certify(self, placement, identities[placement.deployment], given)
            for placement in placements(self)
            if placement.deployment in identities
        )

    # -- cells -----------------------------------------------------------------------------

    def cells(self, wanted: Iterable[Cell] | None = None) -> Iterator[StoredCell]:
        """Yield declared cells, all or those wanted, in cell order, one row at a time.

        Raises:
            EvidenceError: A trace belongs to no declared cell, or two to one.
        """
        places = self._places
        untraced = set(self.untraced)
        for cell in sorted(self.plan.cells if wanted is None else wanted):
            index = places.get(cell)
            row = None if index is None else self.traces.row(index)
            yield StoredCell(cell, row, cell.key in untraced)

    @property
    def missing(self) -> int:
        """How many declared cells have no evidence."""
        return len(self.plan.cells) - len(self._places)

    @cached_property
    def _places(self) -> Mapping[Cell, int]:
        declared = set(self.plan.cells)
        places: dict[Cell, int] = {}
        for index, outcome in enumerate(self.traces.outcomes):
            cell = outcome.cell
            if cell not in declared or cell in places:
                fault = "stands twice" if cell in places else "is not declared by the plan"
                where = f"{self.folder.traces}:{index + 1}"
                raise EvidenceError(f"the cell {cell.key} {fault}", where=where, mend=RESTORE)
            places[cell] = index
        return places

    @cached_property
    def _texts(self) -> PlacedTexts:
        return PlacedTexts(self.bundles, self.deleted)

    def prompt(self, cell: Cell) -> Prompt:
        """Render a cell's prompt again; the trace holds its digest only."""
        bundle = self.bundles[cell.bundle]
        job = cell_job(bundle, cell, self._texts.of(cell), self.plan.protocol.seed)
        snapshot = bundle.member(cell.member).snapshot.decode()
        return build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)


def read_certificates(folder: Path) -> tuple[SignedCertificate, ...]:
    """Return the certificates of a folder, by name; one that cannot be believed says why."""
    return tuple(_certificate(path) for path in sorted(folder.glob("*.json")))


def _certificate(path: Path) -> SignedCertificate:
    envelope = b""
    try:
        envelope = read_bytes(path)
        item, signer = open_certificate(read_envelope(envelope, path.name), path.name)
        return SignedCertificate(path.stem, envelope, signer, item)
    except RetireError as error:
        return SignedCertificate(path.stem, envelope, fault=error.what)
