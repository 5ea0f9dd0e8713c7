"""A certificate as Markdown for a comment on a pull request. Pure.

Words of others stand in code spans: nothing in them becomes markup, a link, a mention of a person
or a reference to an issue.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from retire.pages.deleted import support_words
from retire.pages.exports.reading import read_judged
from retire.pages.phrases import CONDITIONS, UNKNOWN, evidence_words, headroom
from retire.pages.text import Column, in_markdown, shortened, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.pages.exports.reading import Blocked, Judged
    from retire.skill import SkillDocument

_SHOWN = 20
_LONG = 240
_TICKS = re.compile("`+")


def markdown_comment(statement: Mapping[str, Any], skill: SkillDocument) -> str:
    """Return a certificate as Markdown; lists are cut, so that any comment holds it.

    Args:
        statement: The signed in-toto Statement.
        skill: The full skill it is about.

    Raises:
        InputError: Not a statement about this skill.
    """
    judged = read_judged(statement, skill)
    unit = f"{code(judged.bundle)} for {code(judged.deployment)}"
    what = f"{judged.condition} ({CONDITIONS[judged.condition]})"
    parts = [
        f"## {str(judged.verdict).upper()}: {unit}, {what}",
        f"> {in_markdown(evidence_words(judged.evidence))}",
        _gates(judged),
        *_list(
            "Protected effects on invalid requests",
            [
                f"{code(it.member)}: {it.effects} of {judged.repetitions} repetitions"
                for it in judged.leaks
            ],
        ),
        *_list("Clauses that may not go", [_clause(blocked) for blocked in judged.blocked]),
        *_list("Not met", [code(entry) for entry in judged.item.gates.unmet]),
        *_list(
            "Records and traces do not fit together",
            [code(f"{it.kind}, {it.where}: {it.what}") for it in judged.findings],
        ),
        f"Plan {code(judged.plan_digest)}, outcomes {code(judged.outcome_root)}.",
    ]
    return "\n\n".join(parts) + "\n"


def code(text: str) -> str:
    """Return somebody else's words as a code span that they cannot leave."""
    line = shortened(text, _LONG)
    longest = max((len(found) for found in _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    # One space at each end is taken away by the reader, and keeps ticks at the ends apart.
    return f"{fence} {line} {fence}" if longest or not line else f"{fence}{line}{fence}"


def _gates(judged: Judged) -> str:
    utility, authority = judged.item.gates.utility, judged.item.gates.authority
    counts = (
        f"{_known(utility.candidate)} of {utility.n} authorized, full skill "
        f"{_known(utility.full)}, margin {judged.margin_points} points, "
        f"headroom {headroom(utility.headroom)}"
    )
    effects = f"{_known(authority.effects)} protected effects in {authority.n} invalid cells"
    rows = [
        ["utility", "open" if utility.passes else "shut", counts],
        ["authority", "open" if authority.passes else "shut", effects],
    ]
    return table([Column("gate"), Column("state"), Column("counts")], rows)


def _known(count: int | None) -> str:
    return UNKNOWN if count is None else str(count)


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
