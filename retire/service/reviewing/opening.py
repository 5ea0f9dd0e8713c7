"""One run, opened for review: read once, then asked for its pages' parts."""

from __future__ import annotations

import json
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from retire.certify.envelope import open_envelope
from retire.certify.hypotheses import run_hypotheses
from retire.certify.joining import unfinished_leak
from retire.deployments import EMBEDDED
from retire.domain.errors import EvidenceError, RetireError
from retire.pages.counting import Counts
from retire.pages.exports.reading import read_certified
from retire.pages.html.heat import HeatMap, heat_maps
from retire.pages.html.review import Review, SignedCertificate
from retire.runner.folder import read_json
from retire.runner.opening import check_statement, open_plan, open_reductions
from retire.wiring import examine_run, verify_certificate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.deployments import Catalog
    from retire.domain.cell import Cell
    from retire.matrix import Plan
    from retire.pages.html.index import Row
    from retire.runner.folder import RunFolder
    from retire.runner.verifying import Examined
    from retire.service.reviewing.rows import Traces


class OpenedRun:
    """A run's folder with its traces.

    Args:
        run: What addresses call it.
        title: What people call it.
        folder: Where it lies.
        traces: Its traces.
        catalog: The deployments as they are configured now.
    """

    def __init__(
        self, run: str, title: str, folder: RunFolder, traces: Traces, catalog: Catalog = EMBEDDED
    ) -> None:
        self._run = run
        self._title = title
        self._folder = folder
        self._traces = traces
        self._catalog = catalog
        self._turn = threading.RLock()
        # What takes long must not hold up the pages that do not ask for it.
        self._long_turn = threading.Lock()
        self._review: Review | None = None
        self._counted: tuple[int, int] | None = None
        self._maps: tuple[tuple[int, int], tuple[HeatMap, ...]] | None = None
        self._verified: dict[str, Mapping[str, Any]] = {}

    def review(self) -> Review:
        """Return the run as it stands now; what cannot change is read once.

        Raises:
            InputError: Not the folder of a run.
            EvidenceError: A file of it is damaged or was replaced.
            IncompleteError: Its database does not answer.
        """
        with self._turn:
            if self._review is None or not self._review.ended:
                self._review = self._read()
            return self._review

    @cached_property
    def _plan(self) -> tuple[Plan, Mapping[str, Bundle]]:
        return open_plan(self._folder)

    @cached_property
    def _cells(self) -> Mapping[str, Cell]:
        return {cell.key: cell for cell in self._plan[0].cells}

    def _read(self) -> Review:
        plan, bundles = self._plan
        known = self._review
        index = self._traces.index()
        sealed = self._folder.seal.exists()
        reductions = open_reductions(self._folder, plan.protocol, bundles)
        certificates = read_certificates(self._folder.certificates) if sealed else ()
        leaked = self._traces.leaked({row.cell.key for row in index})
        untraced = tuple(self._cells[key] for key in leaked if key in self._cells)
        outcomes = [*index.outcomes(), *map(unfinished_leak, untraced)]
        stand = len(index), len(untraced)
        counts = known.counts if known is not None and self._counted == stand else None
        self._counted = stand
        return Review(
            id=self._run,
            title=self._title,
            plan=plan,
            bundles=bundles,
            deleted={pair: tuple(value["deleted"]) for pair, value in reductions.items()},
            given=any(value["given"] for value in reductions.values()),
            evidence=_evidence(plan, certificates, self._catalog),
            certificates=certificates,
            heads=dict(read_json(self._folder.seal)["heads"]) if sealed else {},
            index=index,
            counts=counts or Counts.over(outcomes, plan.cells),
            sealed=sealed,
            untraced=untraced,
        )

    def maps(self) -> tuple[HeatMap, ...]:
        """Return the heat maps; counted anew only where there are more traces."""
        with self._turn:
            review = self.review()
            stand = len(review.index), len(review.untraced)
            if self._maps is None or self._maps[0] != stand:
                self._maps = (stand, heat_maps(review))
            return self._maps[1]

    def trace(self, row: Row) -> Mapping[str, Any]:
        """Return one whole trace row."""
        return self._traces.trace(row)

    def trials(self, deployment: str, bundle: str) -> Sequence[Mapping[str, Any]]:
        """Return the trial ledger of a reduction; empty where a person made the candidate.

        Raises:
            EvidenceError: It is damaged.
        """
        path = self._folder.reduction(deployment, bundle) / "trials.jsonl"
        if not path.exists():
            return []
        try:
            return [_trial(line) for line in path.read_bytes().splitlines()]
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise EvidenceError("the trial ledger cannot be read", where=str(path)) from error

    @cached_property
    def _tests(self) -> Mapping[str, Mapping[str, Any]]:
        review = self.review()
        return run_hypotheses(review.outcomes(), review.plan.cells, review.plan.protocol).tests

    def tests(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the hypothesis tests of a run that has ended; computed once, which takes time."""
        if not self.review().sealed:
            return {}
        with self._long_turn:
            return self._tests

    @property
    def tested(self) -> bool:
        """Whether the tests were computed already."""
        return "_tests" in self.__dict__

    @cached_property
    def _examined(self) -> Examined:
        return examine_run(self._folder.root)

    def verified(self, name: str) -> Mapping[str, Any] | None:
        """Return what verifying a certificate found, None if it was not verified yet."""
        return self._verified.get(name)

    def verification(self, name: str) -> Mapping[str, Any]:
        """Return what verifying a certificate found; computed once, which takes time.

        Raises:
            KeyError: There is no such certificate.
            InputError: It is none, or the folder is not that of a finished run.
            EvidenceError: Its signature does not verify, or the folder is damaged.
        """
        self.review().named(name)
        with self._long_turn:
            if name not in self._verified:
                path = self._folder.certificates / f"{name}.json"
                result, kind = verify_certificate(path, None, [], self._examined, self._catalog)
                self._verified[name] = {
                    "verdict": result.verdict,
                    "evidence": kind,
                    "problems": result.problems,
                    "stale": result.stale,
                    "unknown_signers": result.unknown_signers,
                    "checked": result.checked,
                }
            return self._verified[name]


def _trial(line: bytes) -> dict[str, Any]:
    trial = json.loads(line)
    return {
        "number": int(trial["number"]),
        "phase": str(trial["phase"]),
        "deleted": [str(clause) for clause in trial["deleted"]],
        "completed": int(trial["completed"]),
        "tasks": int(trial["tasks"]),
        "accepted": trial["accepted"] is True,
    }


def read_certificates(folder: Path) -> tuple[SignedCertificate, ...]:
    """Return the certificates of a folder, by name; one that cannot be believed says why."""
    return tuple(_certificate(path) for path in sorted(folder.glob("*.json")))


def _certificate(path: Path) -> SignedCertificate:
    envelope: Mapping[str, Any] = {}
    try:
        envelope = read_json(path)
        statement, signer = open_envelope(envelope, path.name)
        check_statement(statement, path.name)
        return SignedCertificate(path.stem, envelope, signer, read_certified(statement))
    except RetireError as error:
        return SignedCertificate(path.stem, envelope, fault=error.what)


def _evidence(plan: Plan, certificates: Sequence[SignedCertificate], catalog: Catalog) -> str:
    """Return the kind of evidence that certificates state, else that the deployments give."""
    kinds = {str(it.statement["predicate"]["evidence"]) for it in certificates if it.item}
    if not kinds:
        kinds = {
            catalog.named(name).evidence if name in catalog.names else "unknown"
            for name in plan.protocol.deployments
        }
    return kinds.pop() if len(kinds) == 1 else "mixed"
