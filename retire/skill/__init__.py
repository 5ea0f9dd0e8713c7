"""A SKILL.md as clauses: read, written without some of them, aligned, audited."""

from retire.skill.alignment import Alignment, align
from retire.skill.document import Caption, Segment, SkillDocument, parse, render
from retire.skill.hidden import HiddenKind, HiddenText
from retire.skill.ledger import (
    Fault,
    FaultKind,
    Ledger,
    LedgerEntry,
    check_ledger,
    conditions,
    load_ledger,
    new_ledger,
)
from retire.skill.secrets import SecretLike, find_secrets

__all__ = [
    "Alignment",
    "Caption",
    "Fault",
    "FaultKind",
    "HiddenKind",
    "HiddenText",
    "Ledger",
    "LedgerEntry",
    "SecretLike",
    "Segment",
    "SkillDocument",
    "align",
    "check_ledger",
    "conditions",
    "find_secrets",
    "load_ledger",
    "new_ledger",
    "parse",
    "render",
]
