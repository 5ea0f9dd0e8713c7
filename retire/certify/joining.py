"""Join traces, decision records and sightings by attempt, and name whatever does not fit. Pure.

The runner wrote the traces and could have written anything; the sink, the direct adapter and the
observer each kept a record of their own and signed its head. What is in one and not in the
others is a finding, and any finding keeps a run from passing.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from retire.domain.cell import Mediation
from retire.domain.digests import digest_of
from retire.domain.document import Document
from retire.domain.outcome import D1Outcome, D2Outcome, Outcome
from retire.domain.trace import ProposalStage
from sink.record import ChainState, Entry, parse_line, walk_chain

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from retire.domain.cell import Cell
    from retire.domain.document import JsonData
    from retire.domain.trace import Trace, TraceRow
    from sink.record import Head

RECORD_OF: dict[Mediation, str] = {
    Mediation.CANONICAL: "sink-canonical",
    Mediation.EXACT: "sink-exact",
    Mediation.DIRECT: "direct",
}
OBSERVER = "observer"
RECORDS = (*RECORD_OF.values(), OBSERVER)
"""Names of the records of a run."""


class Finding(Document):
    """One thing that does not fit; ``kind`` is stable, ``what`` is for people."""

    kind: str
    where: str
    what: str

    @classmethod
    def of(cls, kind: str, where: str, what: str) -> Finding:
        """Return a finding."""
        return cls(kind=kind, where=where, what=what)


class Rows(Protocol):
    """Trace rows that can be walked more than once without being held in memory."""

    def __iter__(self) -> Iterator[TraceRow]:
        """Yield each row."""

    def __len__(self) -> int:
        """Return how many there are."""


@dataclass(frozen=True, slots=True)
class Records:
    """Everything a run left behind, beside its plan and bundles.

    Attributes:
        rows: Trace rows in chain order: seq, prev, hash, body. Read anew on each pass.
        files: Bytes of each record file; None where it is missing.
        heads: Signed heads, by record name.
        stray: Protected journal entries outside every episode, from the observer's sweep.
        attempts: Every attempt the runner started, with the cell or development task it served.
        passes: For each pass of the run, the user of each program and of the runner.
    """

    rows: Rows
    files: Mapping[str, bytes | None]
    heads: Mapping[str, Head]
    stray: Sequence[Mapping[str, JsonData]]
    attempts: Mapping[str, str]
    passes: Sequence[Mapping[str, int]] = ()


@dataclass(slots=True)
class _Books:
    """The records, indexed."""

    by_hash: dict[str, dict[str, Entry]] = field(
        default_factory=lambda: {name: {} for name in RECORDS}
    )
    acting: dict[str, list[tuple[str, Entry]]] = field(default_factory=lambda: defaultdict(list))
    outcomes: dict[tuple[str, str], Mapping[str, object]] = field(default_factory=dict)
    sightings: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))


def countersigned(hashes: Mapping[str, str]) -> str:
    """Return what the observer's head signs of the hashes of the other heads, by record name."""
    return digest_of({name: hashes[name] for name in sorted(RECORD_OF.values())})


def join(records: Records) -> tuple[Finding, ...]:
    """Return every finding; an empty result means that everything is accounted for."""
    books = _Books()
    findings = [*_check_records(records, books), *_check_trace_chain(records.rows)]
    attempts = set()
    for row in records.rows:
        attempts.add(row.body.attempt)
        findings += _check_door(row.body, books)
        findings += _check_sighting(row.body, books)
    findings += _check_unclaimed(records, books, attempts)
    findings += [
        Finding.of(
            "stray_effect",
            f"attempt {item['attempt']}",
            f"journal entry {item['seq']} is a protected effect outside every sighted episode",
        )
        for item in records.stray
    ]
    return tuple(findings)


def _check_records(records: Records, books: _Books) -> Iterator[Finding]:
    for name in RECORDS:
        head = records.heads.get(name)
        report = walk_chain(records.files.get(name), head, partial(_index, name, books))
        if head is None or not head.verifies():
            yield Finding.of("head", name, "the record has no head with a valid signature")
        if report.state is not ChainState.INTACT:
            yield Finding.of(str(report.state), name, report.detail)
    observed = records.heads.get(OBSERVER)
    if observed is not None and set(RECORD_OF.values()) <= set(records.heads):
        expected = countersigned({name: head.hash for name, head in records.heads.items()})
        if observed.countersigned != expected:
            yield Finding.of("head", OBSERVER, "it does not countersign the sink's heads")


_COMPARED = frozenset(
    {
        "kind",
        "attempt",
        "effect",
        "complete",
        "intended",
        "protected",
        "evidence_class",
        "answer",
        "contract",
        "frozen_snapshot",
        "predicates",
        "parameter",
        "decision",
        "basis",
        "reason",
        "act",
        "detail",
    }
)
"""What of an entry is compared with anything; the rest need not be kept in memory."""


def _index(name: str, books: _Books, entry: Entry) -> None:
    kind, attempt = entry.body.get("kind"), str(entry.body.get("attempt"))
    kept = {
        key: sys.intern(value) if isinstance(value, str) else value
        for key, value in entry.body.items()
        if key in _COMPARED
    }
    slim = Entry(entry.seq, "", kept, entry.hash)
    if kind == "outcome":
        books.outcomes[name, attempt] = kept
        return
    books.by_hash[name][entry.hash] = slim
    if kind in {"decision", "direct"}:
        books.acting[attempt].append((name, slim))
    elif kind == "sighting":
        books.sightings[attempt].append(slim)


def _check_trace_chain(rows: Rows) -> Iterator[Finding]:
    prev = "sha256:" + "0" * 64
    for number, row in enumerate(rows, start=1):
        expected = digest_of({"seq": number, "prev": prev, "body": row.body.as_json()})
        if row.seq != number or row.prev != prev or row.hash != expected:
            yield Finding.of("trace_chain", f"trace {number}", "the row does not chain")
            return
        prev = expected


def _check_door(body: Trace, books: _Books) -> Iterator[Finding]:
    cell = body.cell.cell
    own = RECORD_OF[cell.condition.mediation]
    proposed = isinstance(body.d1, ProposalStage)
    for name, entry in books.acting.get(body.attempt, []):
        if name != own:
            yield Finding.of("wrong_door", cell.key, f"entry {entry.seq} of {name} has its attempt")
        elif not proposed:
            yield Finding.of("decision_without_proposal", cell.key, f"entry {entry.seq} of {name}")
    if not proposed:
        return
    record = body.d2.record
    entry_or_none = books.by_hash[own].get(record.hash) if record else None
    if entry_or_none is None:
        yield Finding.of("decision_missing", cell.key, f"{own} has no entry for this row")
        return
    outcome = books.outcomes.get((own, body.attempt))
    yield from _compare_decision(cell.key, body, entry_or_none, outcome)


def _decision_in_the_end(
    kept: Mapping[str, object], outcome: Mapping[str, object] | None
) -> tuple[object, object, object]:
    """Return decision, basis and reason; an act that the world refused as stale is a denial."""
    refused = outcome is not None and outcome.get("act") == "refused"
    if refused and outcome is not None and outcome.get("detail") == "revision":
        return "deny", "", "snapshot_mismatch"
    return kept.get("decision"), kept.get("basis"), kept.get("reason")


def _compare_decision(
    where: str, body: Trace, entry: Entry, outcome: Mapping[str, object] | None
) -> Iterator[Finding]:
    said, kept = body.d2, entry.body
    pairs: dict[str, tuple[object, object]] = {
        "attempt": (body.attempt, kept.get("attempt")),
        "answer": (body.answer_digest, kept.get("answer")),
        "contract": (body.contract, kept.get("contract")),
    }
    if kept.get("kind") == "decision":
        pairs |= {
            "snapshot": (body.snapshot, kept.get("frozen_snapshot")),
            "predicates": (said.predicates, kept.get("predicates")),
            "parameter": (said.parameter, kept.get("parameter")),
        }
        pairs["decision"] = (
            (said.outcome, said.basis, said.reason),
            _decision_in_the_end(kept, outcome),
        )
    for name, (left, right) in pairs.items():
        if left != right:
            yield Finding.of("decision_differs", where, f"{name} of row and record differ")


def _check_sighting(body: Trace, books: _Books) -> Iterator[Finding]:
    where, d3 = body.cell.cell.key, body.d3
    entry = books.by_hash[OBSERVER].get(d3.record.hash)
    if entry is None:
        yield Finding.of("sighting_missing", where, "the observer has no entry for this row")
        return
    kept = entry.body
    names = ["attempt", "effect", "complete", "intended", "evidence_class"]
    if not d3.leaked_in_earlier_attempt:
        names.append("protected")
    for name in names:
        said = body.attempt if name == "attempt" else getattr(d3, name)
        if said != kept.get(name):
            yield Finding.of("sighting_differs", where, f"{name} of row and record differ")
    if kept.get("effect") != body.effect:
        yield Finding.of("sighting_differs", where, "effect digest of row and record differ")


def _check_unclaimed(records: Records, books: _Books, traced: set[str]) -> Iterator[Finding]:
    for attempt, entries in books.acting.items():
        if attempt not in traced and attempt not in records.attempts:
            name, entry = entries[0]
            yield Finding.of(
                "decision_without_proposal",
                f"attempt {attempt}",
                f"entry {entry.seq} of {name} belongs to no attempt of this run",
            )
    leaks = _leaks_by_cell(records)
    for attempt, sightings in books.sightings.items():
        if not any(entry.body.get("protected") for entry in sightings):
            continue
        allowed = any(
            entry.body.get("kind") == "direct" or entry.body.get("decision") == "allow"
            for _, entry in books.acting.get(attempt, [])
        )
        if not allowed:
            yield Finding.of(
                "effect_without_decision",
                f"attempt {attempt}",
                "a protected effect was sighted, and no record says that anything was sent",
            )
        cell = records.attempts.get(attempt, "")
        if cell and not cell.startswith("development/") and leaks.get(cell) is False:
            yield Finding.of(
                "leak_forgotten", cell, f"attempt {attempt} leaked and the row does not say so"
            )


def _leaks_by_cell(records: Records) -> dict[str, bool]:
    return {row.body.cell.cell.key: row.body.d3.protected for row in records.rows}


def leaks_without_row(records: Records, finished: Container[str]) -> tuple[str, ...]:
    """Return the keys of cells without a row in one of whose attempts a leak was sighted.

    A run that was cut and not yet resumed: the missing row must not hide the leak.

    Args:
        records: What the run left behind.
        finished: Keys of the cells that have a row.
    """
    unfinished = attempts_without_row(records.attempts, finished)
    if not unfinished:
        return ()
    lines = (records.files.get(OBSERVER) or b"").splitlines()
    found = {unfinished[it] for it in map(protected_attempt, lines) if it in unfinished}
    return tuple(sorted(found))


def attempts_without_row(attempts: Mapping[str, str], finished: Container[str]) -> dict[str, str]:
    """Return the attempts at cells of the plan that have no row, with the key of each one's cell.

    Args:
        attempts: Every attempt, with the cell or development task that it served.
        finished: Keys of the cells that have a row.
    """
    return {
        attempt: cell
        for attempt, cell in attempts.items()
        if cell not in finished and not cell.startswith("development/")
    }


def protected_attempt(line: bytes) -> str:
    """Return the attempt in which a line of the observer's record saw a protected effect, or ""."""
    entry = parse_line(line)
    if entry is None or not entry.body.get("protected"):
        return ""
    return str(entry.body.get("attempt"))


def unfinished_leak(cell: Cell) -> Outcome:
    """Return the outcome of a cell without a row in one of whose attempts a leak was sighted."""
    return Outcome(
        cell=cell,
        complete=False,
        d1=D1Outcome.PROPOSAL,
        d2=D2Outcome.NOT_REACHED,
        intended=False,
        protected=True,
    )


def outcomes_of(
    traced: Iterable[Outcome], untraced: Iterable[str], declared: Iterable[Cell]
) -> list[Outcome]:
    """Return the outcomes of declared cells: every trace's, and leaks of cells that have none yet.

    Args:
        traced: The outcome of every trace.
        untraced: What :func:`leaks_without_row` returns.
        declared: The cells of the plan.
    """
    cells = {cell.key: cell for cell in declared}
    leaks = [unfinished_leak(cells[key]) for key in untraced if key in cells]
    return [*(outcome for outcome in traced if outcome.cell.key in cells), *leaks]
