"""The audit of a skill."""

from __future__ import annotations

import pytest

from retire.domain.errors import InputError
from retire.skill import FaultKind, check_ledger, conditions, load_ledger, new_ledger, parse

DOCUMENT = parse(
    b"---\nname: x\ndescription: d\n---\n"
    b'Open the door. Never open without "a: grant" \\ {x}.\n\n- Report it\n'
)
AUDIT = (
    new_ledger(DOCUMENT)
    .replace(b'auditor: ""', b'auditor: "panel maintainers"')
    .replace(b'date: ""', b'date: "2026-11-30"')
)
PARTS = AUDIT.split(b"unaudited")
AUDITED = (
    PARTS[0]
    + b"task_guidance"
    + PARTS[1]
    + b"execution_condition, kind: predicate, predicate: authority"
    + PARTS[2]
    + b"task_guidance"
    + PARTS[3]
)


def kinds(data: bytes, predicates: tuple[str, ...] = ("authority",)) -> list[FaultKind]:
    return [fault.kind for fault in check_ledger(load_ledger(data), DOCUMENT, predicates)]


def test_a_new_ledger_names_every_clause_as_unaudited() -> None:
    ledger = load_ledger(new_ledger(DOCUMENT))
    assert [(one.id, one.digest) for one in ledger.clauses] == [
        (one.id, one.digest) for one in DOCUMENT.clauses
    ]
    assert ledger.clauses[1].says == DOCUMENT.clauses[1].text
    assert kinds(new_ledger(DOCUMENT), ()) == [FaultKind.UNSIGNED] + [FaultKind.UNAUDITED] * 3


def test_a_finished_audit_has_no_fault() -> None:
    assert kinds(AUDITED) == []
    assert conditions(load_ledger(AUDITED)) == ("c002",)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (DOCUMENT.digest.encode(), b"sha256:" + b"0" * 64, FaultKind.STALE_SKILL),
        (DOCUMENT.clauses[1].digest.encode(), b"sha256:" + b"0" * 64, FaultKind.STALE_DIGEST),
        (b", predicate: authority", b"", FaultKind.NO_PREDICATE),
        (b", kind: predicate, predicate: authority", b"", FaultKind.NO_KIND),
        (b"predicate: authority", b"predicate: author", FaultKind.UNKNOWN_PREDICATE),
        (b"role: task_guidance", b"role: task_guidance, kind: binding", FaultKind.NOT_A_CONDITION),
        (b"{id: c003", b"{id: c004", FaultKind.UNKNOWN_CLAUSE),
        (b"{id: c003", b"{id: c004", FaultKind.MISSING_CLAUSE),
        (b"{id: c003", b"{id: c002", FaultKind.REPEATED_CLAUSE),
        (b"kind: predicate, predicate: authority", b"kind: binding", FaultKind.UNSTATED_PREDICATE),
        (b'"panel maintainers"', b'" "', FaultKind.UNSIGNED),
    ],
)
def test_disagreements(old: bytes, new: bytes, expected: FaultKind) -> None:
    assert old in AUDITED
    assert expected in kinds(AUDITED.replace(old, new, 1))


def test_a_fault_quotes_the_clause_and_its_line() -> None:
    stale = AUDITED.replace(DOCUMENT.clauses[1].digest.encode(), b"sha256:" + b"0" * 64)
    (fault,) = check_ledger(load_ledger(stale), DOCUMENT, ["authority"])
    assert (fault.clause, fault.line) == ("c002", 5)
    assert "Never open without" in str(fault)


def test_a_predicate_that_no_clause_states() -> None:
    assert kinds(AUDITED, ("authority", "state")) == [FaultKind.UNSTATED_PREDICATE]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"role: task", b"rule: task"),
        (b"task_guidance", b"guidance"),
        (b"v1", b"v2"),
        (b"c003", b"3"),
    ],
)
def test_a_file_that_is_no_ledger(old: bytes, new: bytes) -> None:
    with pytest.raises(InputError) as caught:
        load_ledger(AUDITED.replace(old, new, 1), "b/ledger.yaml")
    assert caught.value.where.startswith("b/ledger.yaml:")
