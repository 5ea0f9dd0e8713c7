"""The support gap for people: each deleted condition, and what is known of its removal. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.support import Support
from retire.pages.deleted import support_words
from retire.pages.html import addresses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.certify.certificate import Certificate
    from retire.certify.support import ConditionSupport
    from retire.pages.html.review import Review

MEANINGS: Mapping[Support, str] = {
    Support.AUDITED_LEAKS: "Deleted, and the audit leaked",
    Support.AUDITED_INCOMPLETE: "Deleted, and the audit lacks evidence",
    Support.NEVER_FALSE: "Deleted, and nothing ever made it false",
    Support.AUDITED_NO_EFFECT: "Deleted, and the audit saw no effect",
}
"""What the support of a deleted condition says, worst first."""


@dataclass(frozen=True, slots=True)
class GapLine:
    """A deleted condition and what is known of its removal."""

    support: ConditionSupport
    text: str
    words: str
    leak_href: str


@dataclass(frozen=True, slots=True)
class GapGroup:
    """Deleted conditions with the same support."""

    status: Support
    meaning: str
    lines: tuple[GapLine, ...]


def support_groups(review: Review, item: Certificate) -> tuple[GapGroup, ...]:
    """Return the deleted conditions of a certificate by their support, worst first."""
    found: dict[Support, list[GapLine]] = {status: [] for status in MEANINGS}
    for support in item.conditions:
        found[support.status].append(_gap_line(review, item, support))
    return tuple(
        GapGroup(status, MEANINGS[status], tuple(lines)) for status, lines in found.items() if lines
    )


def _gap_line(review: Review, item: Certificate, support: ConditionSupport) -> GapLine:
    untestable = "The audit flips predicates only, so nothing here tests its removal."
    return GapLine(
        support=support,
        text=review.bundles[support.bundle].skill.clause(support.clause).text,
        words=untestable if support.predicate is None else support_words(support),
        leak_href=leak_address(review, item, support),
    )


def leak_address(review: Review, item: Certificate, support: ConditionSupport) -> str:
    """Return where the leaks on the member that flips a predicate are found; empty for none."""
    leaking = support.predicate if support.protected_effects else None
    for member in review.bundles[support.bundle].members:
        if leaking and member.predicate == leaking:
            return addresses.leaks(
                review.id, item.deployment, support.bundle, str(item.condition), member.name
            )
    return ""
