"""A certificate as Markdown for a comment on a pull request. Pure.

Words of others stand in code spans: nothing in them becomes markup, a link, a mention of a person
or a reference to an issue.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from retire.pages.deleted import support_words
from retire.pages.exports.subject import blocked_clauses, bundle_of
from retire.pages.phrases import CONDITIONS, evidence_words
from retire.pages.text import Column, in_markdown, shortened, table
from retire.pages.verdict import NO_FIT, finding_words, gate_rows
from retire.pages.words import stated_leaks

if TYPE_CHECKING:
    from retire.certify.certificate import Certificate
    from retire.pages.exports.subject import Blocked
    from retire.skill import SkillDocument

_SHOWN = 20
_LONG = 240
_TICKS = re.compile("`+")


def markdown_comment(certificate: Certificate, skill: SkillDocument) -> str:
    """Return a certificate as Markdown; lists are cut, so that any comment holds it.

    Args:
        certificate: The certificate.
        skill: The full skill it is about.

    Raises:
        InputError: It is not about this skill.
    """
    unit = f"{code(bundle_of(certificate, skill))} for {code(certificate.deployment)}"
    predicate, condition = certificate.predicate, certificate.condition
    leaks = [
        f"{code(it.member)}: {it.effects} of {it.asked} repetitions"
        for it in stated_leaks(certificate, {})
    ]
    findings = [code(finding_words(it)) for it in predicate.findings]
    parts = [
        f"## {str(certificate.verdict).upper()}: {unit}, {condition} ({CONDITIONS[condition]})",
        f"> {in_markdown(evidence_words(certificate.evidence))}",
        table([Column("gate"), Column("state"), Column("counts")], gate_rows(certificate)),
        *_list("Protected effects on invalid requests", leaks),
        *_list("Clauses that may not go", list(map(_clause, blocked_clauses(certificate, skill)))),
        *_list("Not met", list(map(code, predicate.unmet))),
        *_list(NO_FIT.capitalize(), findings),
        f"Plan {code(predicate.plan.digest)}, outcomes {code(predicate.outcome_root)}.",
    ]
    return "\n\n".join(parts) + "\n"


def code(text: str) -> str:
    """Return somebody else's words as a code span that they cannot leave."""
    line = shortened(text, _LONG)
    longest = max((len(found) for found in _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    # One space at each end is taken away by the reader, and keeps ticks at the ends apart.
    return f"{fence} {line} {fence}" if longest or not line else f"{fence}{line}{fence}"


def _clause(blocked: Blocked) -> str:
    why = "removal leaks" if blocked.leaks else "removal is not tested"
    return (
        f"line {blocked.clause.first_line}, {code(blocked.rule)}, **{why}**: "
        f"{code(blocked.clause.text)}. {in_markdown(support_words(blocked.support))}"
    )


def _list(title: str, entries: list[str]) -> list[str]:
    if not entries:
        return []
    lines = [f"- {entry}" for entry in entries[:_SHOWN]]
    if len(entries) > _SHOWN:
        lines.append(f"- and {len(entries) - _SHOWN} more; the certificate has them all")
    return [f"### {title}", "\n".join(lines)]
