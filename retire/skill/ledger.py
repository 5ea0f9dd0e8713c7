"""The human audit of a skill: what each clause is, and of which predicate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import yaml
from pydantic import Field

from retire.domain.clause import Clause, ConditionKind, Role
from retire.domain.errors import InputError
from sink.strict_yaml import DocumentError, StrictModel, read_model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from retire.skill.document import SkillDocument

SCHEMA = "retire.ledger/v1"
_SAYS = 60

Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
ClauseId = Annotated[str, Field(pattern=r"^c[0-9]{3,}$")]
_ISO_DATE = r"^([0-9]{4}-[0-9]{2}-[0-9]{2})?$"


class LedgerEntry(StrictModel):
    """The audit of one clause; ``says`` repeats its first words for the human reader."""

    id: ClauseId
    digest: Digest
    says: str
    role: Annotated[Role, Field(strict=False)]
    kind: Annotated[ConditionKind | None, Field(strict=False)] = None
    predicate: str | None = None


class Ledger(StrictModel):
    """The audit of a skill: ``skill`` is the digest of its file, ``date`` YYYY-MM-DD or empty."""

    schema_: Annotated[Literal["retire.ledger/v1"], Field(alias="schema")]
    skill: Digest
    auditor: str
    date: Annotated[str, Field(pattern=_ISO_DATE)]
    clauses: tuple[LedgerEntry, ...]


class FaultKind(StrEnum):
    """What is wrong between a ledger, its skill and its contract."""

    STALE_SKILL = "stale_skill"
    STALE_DIGEST = "stale_digest"
    MISSING_CLAUSE = "missing_clause"
    UNKNOWN_CLAUSE = "unknown_clause"
    REPEATED_CLAUSE = "repeated_clause"
    UNAUDITED = "unaudited"
    UNSIGNED = "unsigned"
    NO_KIND = "no_kind"
    NO_PREDICATE = "no_predicate"
    UNKNOWN_PREDICATE = "unknown_predicate"
    NOT_A_CONDITION = "not_a_condition"
    UNSTATED_PREDICATE = "unstated_predicate"


@dataclass(frozen=True, slots=True)
class Fault:
    """One disagreement; ``line`` counts in the skill from 1 and is 0 when no clause is meant."""

    kind: FaultKind
    clause: str
    line: int
    message: str


def load_ledger(data: bytes, where: str = "ledger.yaml") -> Ledger:
    """Read a ledger.

    Raises:
        InputError: Not YAML, or not a ledger; with the line.
    """
    try:
        return read_model(Ledger, data, where)
    except DocumentError as error:
        raise InputError(error.message, where=error.where, mend=error.mend) from error


def conditions(ledger: Ledger) -> tuple[str, ...]:
    """Return the ids of the execution conditions, in the order of the ledger."""
    return tuple(entry.id for entry in ledger.clauses if entry.role is Role.EXECUTION_CONDITION)


def check_ledger(
    ledger: Ledger, document: SkillDocument, predicate_ids: Collection[str]
) -> list[Fault]:
    """Return every disagreement between a ledger, its skill and the contract's predicates.

    A ledger without faults names each clause once with its present digest and a role, gives each
    condition a kind and each predicate condition a predicate of the contract, and states every
    predicate of the contract at least once.
    """
    faults: list[Fault] = []
    if ledger.skill != document.digest:
        message = f"the ledger audits {ledger.skill}, this skill is {document.digest}"
        faults.append(Fault(FaultKind.STALE_SKILL, "", 0, message))
    if not (ledger.auditor.strip() and ledger.date):
        message = "the ledger names no auditor or no date"
        faults.append(Fault(FaultKind.UNSIGNED, "", 0, message))
    clauses = {clause.id: clause for clause in document.clauses}
    seen: set[str] = set()
    for entry in ledger.clauses:
        clause = clauses.get(entry.id)
        if clause is None:
            message = f"the skill has no clause {entry.id}: {entry.says!r}"
            faults.append(Fault(FaultKind.UNKNOWN_CLAUSE, entry.id, 0, message))
            continue
        if entry.id in seen:
            faults.append(_fault(FaultKind.REPEATED_CLAUSE, clause, "stands twice in the ledger"))
        seen.add(entry.id)
        faults += _entry_faults(entry, clause, predicate_ids)
    faults += [
        _fault(FaultKind.MISSING_CLAUSE, clause, "is not in the ledger")
        for clause in document.clauses
        if clause.id not in seen
    ]
    stated = {entry.predicate for entry in ledger.clauses if _states_predicate(entry)}
    faults += [
        Fault(
            FaultKind.UNSTATED_PREDICATE,
            "",
            0,
            f"no condition clause states the predicate {predicate!r} of the contract",
        )
        for predicate in sorted(set(predicate_ids) - stated)
    ]
    return faults


def _states_predicate(entry: LedgerEntry) -> bool:
    return entry.role is Role.EXECUTION_CONDITION and entry.kind is ConditionKind.PREDICATE


def _entry_faults(
    entry: LedgerEntry, clause: Clause, predicate_ids: Collection[str]
) -> Iterator[Fault]:
    if entry.digest != clause.digest:
        message = f"was audited with another text: {entry.says!r}"
        yield _fault(FaultKind.STALE_DIGEST, clause, message)
    if entry.role is Role.UNAUDITED:
        yield _fault(FaultKind.UNAUDITED, clause, "has not been audited")
    if entry.role is not Role.EXECUTION_CONDITION:
        if entry.kind is not None or entry.predicate is not None:
            message = "has a kind or predicate but is no execution condition"
            yield _fault(FaultKind.NOT_A_CONDITION, clause, message)
        return
    if entry.kind is None:
        yield _fault(FaultKind.NO_KIND, clause, "is a condition without a kind")
    if entry.kind is ConditionKind.PREDICATE and entry.predicate is None:
        yield _fault(FaultKind.NO_PREDICATE, clause, "is a predicate condition without predicate")
    if entry.predicate is not None and entry.predicate not in predicate_ids:
        message = f"states {entry.predicate!r}, which the contract does not have"
        yield _fault(FaultKind.UNKNOWN_PREDICATE, clause, message)


def _fault(kind: FaultKind, clause: Clause, problem: str) -> Fault:
    message = f"line {clause.first_line}: {clause.id} {first_words(clause.text)!r} {problem}"
    return Fault(kind, clause.id, clause.first_line, message)


def first_words(text: str, limit: int = _SAYS) -> str:
    """Return the beginning of a text on one line, at most ``limit`` characters long."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def new_ledger(document: SkillDocument) -> bytes:
    """Return the YAML of a ledger that names every clause as unaudited.

    Auditor and date are empty, so a check refuses the file until a human has filled them in.
    """
    lines = [
        f"schema: {SCHEMA}",
        f"skill: {document.digest}",
        'auditor: ""',
        'date: ""',
        "clauses:" if document.clauses else "clauses: []",
    ]
    for clause in document.clauses:
        says = _quoted(first_words(clause.text))
        lines += [f"  # line {clause.first_line}, {clause.kind}"]
        lines += [
            f'  - {{id: {clause.id}, digest: "{clause.digest}",',
            f"     says: {says},",
            f"     role: {Role.UNAUDITED}}}",
        ]
    return ("\n".join(lines) + "\n").encode("utf-8")


def _quoted(text: str) -> str:
    dumped = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10_000)
    return dumped.strip()
