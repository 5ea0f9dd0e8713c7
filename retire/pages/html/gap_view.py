"""The support gap for people: each deleted condition, and what is known of its removal. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.support import Support
from retire.pages.deleted import support_words
from retire.pages.html import addresses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.certify.certifying import Certified
    from retire.certify.support import ClauseSupport
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

    bundle: str
    clause: str
    text: str
    rule: str
    words: str
    effects: int
    diff_href: str
    leak_href: str


@dataclass(frozen=True, slots=True)
class GapGroup:
    """Deleted conditions with the same support."""

    status: str
    meaning: str
    lines: tuple[GapLine, ...]


def support_groups(review: Review, item: Certified) -> tuple[GapGroup, ...]:
    """Return the deleted conditions of a certificate by their support, worst first."""
    found: dict[Support, list[GapLine]] = {status: [] for status in MEANINGS}
    for support in item.support:
        if support.status is not None:
            found[support.status].append(_gap_line(review, item, support))
    return tuple(
        GapGroup(str(status), MEANINGS[status], tuple(lines))
        for status, lines in found.items()
        if lines
    )


def _gap_line(review: Review, item: Certified, support: ClauseSupport) -> GapLine:
    deleted, placement = support.clause, item.placement
    condition = str(placement.condition)
    words = (
        support_words(support)
        if deleted.predicate is not None
        else "The audit flips predicates only, so nothing here tests its removal."
    )
    return GapLine(
        bundle=deleted.bundle,
        clause=deleted.clause,
        text=review.bundles[deleted.bundle].skill.clause(deleted.clause).text,
        rule=deleted.predicate or str(deleted.kind),
        words=words,
        effects=support.effects,
        diff_href=addresses.diff(review.id, placement.deployment, deleted.bundle, condition)
        + f"#{deleted.clause}",
        leak_href=leak_address(review, item, deleted.bundle, deleted.predicate)
        if support.effects
        else "",
    )


def leak_address(review: Review, item: Certified, bundle: str, predicate: str | None) -> str:
    """Return where the leaks on the member that flips a predicate are found; empty for none."""
    for member in review.bundles[bundle].members:
        if predicate and member.predicate == predicate:
            placement = item.placement
            return addresses.leaks(
                review.id, placement.deployment, bundle, str(placement.condition), member.name
            )
    return ""
