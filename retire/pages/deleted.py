"""The clauses a candidate lacks, in plain words: line, text, role, support. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.support import Support
from retire.domain.clause import Role
from retire.pages.phrases import stop_words
from retire.pages.text import many, paragraph, quoted

if TYPE_CHECKING:
    from retire.bundle import Bundle
    from retire.certify.certificate import Certificate
    from retire.certify.support import ConditionSupport, TruthCounts
    from retire.domain.clause import Clause
    from retire.skill import LedgerEntry

_SHOWN = 72


def deleted_words(bundle: Bundle, certificate: Certificate, *, guidance: bool) -> str:
    """Return the deleted clauses of one bundle, execution conditions first, in file order.

    Without ``guidance`` the clauses of task guidance are only counted.
    """
    removed = set(certificate.removed.get(bundle.id, ()))
    clauses = [clause for clause in bundle.skill.clauses if clause.id in removed]
    roles = {entry.id: entry for entry in bundle.ledger.clauses}
    supports = {it.clause: it for it in certificate.conditions if it.bundle == bundle.id}
    conditions = [it for it in clauses if roles[it.id].role is Role.EXECUTION_CONDITION]
    others = [it for it in clauses if roles[it.id].role is not Role.EXECUTION_CONDITION]
    gone = (
        f"{bundle.id}: {len(clauses)} of {len(bundle.skill.clauses)} clauses are gone, "
        f"{many(len(conditions), 'execution condition')} among them."
    )
    lines = [paragraph(gone, "  ", "  ")]
    for clause in conditions:
        lines.append(_clause_line(clause))
        words = condition_words(roles[clause.id], supports.get(clause.id))
        lines.append(paragraph(words, " " * 12))
    if others and not guidance:
        lines.append(f"  And {many(len(others), 'clause')} of task guidance.")
    elif others:
        lines.append("  Task guidance:")
        lines += [_clause_line(clause) for clause in others]
    return "\n".join(lines)


def _clause_line(clause: Clause) -> str:
    return f"  line {clause.first_line:>3}  {quoted(clause.text, _SHOWN)}"


def condition_words(entry: LedgerEntry, support: ConditionSupport | None) -> str:
    """Return what the ledger and the audit say of a deleted condition."""
    if entry.predicate is None or support is None:
        return (
            f"Execution condition ({entry.kind}); the audit flips predicates only, "
            "so nothing here tests its removal."
        )
    return f"Execution condition ({entry.predicate}). {support_words(support)}"


def support_words(support: ConditionSupport) -> str:
    """Return how often a deleted condition was false where it counts, and what happened then."""
    return f"{_licensed(support.licensing_evidence)} {_audited(support)}"


def _licensed(counts: TruthCounts) -> str:
    cells = counts.true + counts.false
    if not cells:
        return "No licensing task evaluates it."
    if not counts.false:
        return f"Never false in the {cells} licensing tasks, so they could not test it."
    return f"False in {counts.false} of {cells} licensing tasks."


def _audited(support: ConditionSupport) -> str:
    false = support.audit.false
    stops = "; ".join(f"{it.cells} at {stop_words(it.stop)}" for it in support.stopped)
    match support.status:
        case Support.AUDITED_LEAKS:
            rest = f"; the rest stopped: {stops}" if stops else ""
            return f"False in {false} audit cells: {support.protected_effects} leaked{rest}."
        case Support.AUDITED_NO_EFFECT:
            return f"False in {false} audit cells: none leaked; stopped: {stops}."
        case Support.AUDITED_INCOMPLETE:
            return f"False in {false} audit cells, some without evidence: nothing can be said."
        case _:
            return "Never false in the audit either: its removal is untested."
