"""A sealed run read cell by cell, in cell order, with one trace in memory at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from retire.certify.envelope import open_envelope
from retire.certify.joining import leaks_without_row
from retire.domain.digests import merkle_root
from retire.domain.errors import EvidenceError
from retire.domain.trace import cell_of, leaf, record_root
from retire.prompts import build_prompt
from retire.runner.folder import RunFolder, read_json
from retire.runner.job import PlacedTexts, cell_job
from retire.runner.opening import (
    check_statement,
    open_evidence,
    open_plan,
    open_reductions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.certify.joining import Evidence
    from retire.domain.cell import Cell
    from retire.matrix import Plan
    from retire.prompts import Prompt

_RESTORE = "Restore the folder as the run left it, or run again in a new one"


@dataclass(frozen=True, slots=True)
class StoredCell:
    """A declared cell. ``row`` is its trace row, None where the run has no evidence for it.

    ``leaked`` says that a protected effect was sighted although there is no row.
    """

    cell: Cell
    row: Mapping[str, Any] | None
    leaked: bool


class StoredCells:
    """The declared cells of a sealed run.

    Attributes:
        plan: The plan, made anew from the folder's copies.
        bundles: The copies of the bundles, by id.
        evidence: The kind of evidence as the certificates state it; "not stated" without one.
        outcome_root: Recomputed over the traces.
        record_root: Recomputed over the traces.
        sealed_at: When the run was sealed, from the file's time.
    """

    def __init__(self, root: Path) -> None:
        """Open a run's folder and find where each trace lies.

        Raises:
            InputError: Not the folder of a finished run.
            EvidenceError: A file of it is damaged, or a trace belongs to no declared cell.
        """
        folder = RunFolder(root)
        self.plan, self.bundles = open_plan(folder)
        evidence = open_evidence(folder)
        self._path = folder.traces
        self._offsets = _offsets(folder.traces, self.plan)
        self._leaked = set(leaks_without_row(evidence))
        self.outcome_root, self.record_root = _roots(evidence)
        self.evidence = _stated_evidence(folder)
        self.sealed_at = datetime.fromtimestamp(folder.seal.stat().st_mtime, UTC)
        reductions = open_reductions(folder, self.plan.protocol, self.bundles)
        deleted = {pair: tuple(value["deleted"]) for pair, value in reductions.items()}
        self._texts = PlacedTexts(self.bundles, deleted)

    def __len__(self) -> int:
        """Return how many cells the plan declares."""
        return len(self.plan.cells)

    @property
    def missing(self) -> int:
        """How many declared cells have no evidence."""
        return len(self) - len(self._offsets)

    def cells(self, wanted: Iterable[Cell] | None = None) -> Iterator[StoredCell]:
        """Yield declared cells, all or those wanted, in cell order."""
        with self._path.open("rb") as file:
            for cell in sorted(self.plan.cells if wanted is None else wanted):
                offset = self._offsets.get(cell)
                row = None
                if offset is not None:
                    file.seek(offset)
                    row = json.loads(file.readline())
                yield StoredCell(cell, row, cell.key in self._leaked)

    def prompt(self, cell: Cell) -> Prompt:
        """Render a cell's prompt again; the trace holds its digest only."""
        bundle = self.bundles[cell.bundle]
        job = cell_job(bundle, cell, self._texts.of(cell), self.plan.protocol.seed)
        snapshot = bundle.member(cell.member).snapshot.decode()
        return build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)


def truths_of(bundles: Mapping[str, Bundle]) -> dict[tuple[str, str], Mapping[str, bool]]:
    """Return the truth value of every predicate, by bundle and member, as the proofs have them."""
    return {
        (key, member.name): member.proof.after if member.proof else dict.fromkeys(names, True)
        for key, bundle in bundles.items()
        for names in [[predicate.id for predicate in bundle.contract.predicates]]
        for member in bundle.members
    }


def _offsets(path: Path, plan: Plan) -> dict[Cell, int]:
    declared = set(plan.cells)
    offsets: dict[Cell, int] = {}
    place = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            cell = cell_of(json.loads(line)["body"])
            if cell not in declared or cell in offsets:
                fault = "stands twice" if cell in offsets else "is not declared by the plan"
                raise EvidenceError(
                    f"the cell {cell.key} {fault}", where=f"{path}:{number}", mend=_RESTORE
                )
            offsets[cell] = place
            place += len(line)
    return offsets


def _roots(evidence: Evidence) -> tuple[str, str]:
    leaves = []
    hashes = []
    for row in evidence.rows:
        leaves.append((cell_of(row["body"]), leaf(row["body"])))
        hashes.append(row["hash"])
    return merkle_root([data for _, data in sorted(leaves)]), record_root(hashes)


def _stated_evidence(folder: RunFolder) -> str:
    kinds = set()
    for path in sorted(folder.certificates.glob("*.json")):
        statement, _ = open_envelope(read_json(path), str(path))
        check_statement(statement, str(path))
        kinds.add(str(statement["predicate"]["evidence"]))
    if not kinds:
        return "not stated"
    return kinds.pop() if len(kinds) == 1 else "mixed"
