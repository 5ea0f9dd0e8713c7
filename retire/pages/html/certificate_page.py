"""A certificate in readable form, and the result of verifying it here. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.pages.text import many

if TYPE_CHECKING:
    from retire.certify.certificate import Certificate
    from retire.pages.html.review import Review
    from retire.verify.check import Verification
    from retire.verify.run import SignedCertificate


@dataclass(frozen=True, slots=True)
class CertificatePage:
    """A certificate; one that cannot be believed has neither facts nor subjects.

    ``subjects`` are digests, by bundle and for the plan.
    """

    id: str
    title: str
    signed: SignedCertificate
    facts: tuple[tuple[str, str], ...]
    subjects: tuple[tuple[str, list[tuple[str, str]]], ...]


def certificate_page(review: Review, name: str) -> CertificatePage:
    """Return the page of one certificate; raises KeyError where there is none."""
    signed = review.named(name)
    item = signed.item
    return CertificatePage(
        id=review.id,
        title=review.title,
        signed=signed,
        facts=_facts(item) if item is not None else (),
        subjects=_subjects(item) if item is not None else (),
    )


def _facts(item: Certificate) -> tuple[tuple[str, str], ...]:
    said = item.predicate
    unit, measured = said.unit, said.stability
    return (
        ("Deployment", item.deployment),
        ("Deployment's identity", unit.deployment.digest),
        ("Condition", str(item.condition)),
        ("Binding", unit.binding),
        ("Scope", unit.scope),
        ("Evidence", str(item.evidence)),
        ("World", said.world),
        ("Separation of the programs", said.separation.replace("_", " ")),
        (
            "Stability",
            measured
            if isinstance(measured, str)
            else f"{measured.differ} of {many(measured.pairs, 'pair')} of answers differ",
        ),
        ("Earlier runs of this pair", str(said.prior_runs_of_this_pair)),
        ("Plan digest", said.plan.digest),
        ("Outcome root", said.outcome_root),
        ("Record root", said.record_root),
    )


def _subjects(item: Certificate) -> tuple[tuple[str, list[tuple[str, str]]], ...]:
    grouped: dict[str, list[tuple[str, str]]] = {}
    for name, digest in item.digests.items():
        bundle, _, part = name.partition("/")
        grouped.setdefault(bundle, []).append((part.replace("-", " ") or "digest", digest))
    return tuple(grouped.items())


def standing(result: Verification) -> tuple[str, str]:
    """Return whether what was verified is intact, stale or broken, and a sentence that says so."""
    if result.problems:
        return "broken", "Something does not come out again: do not rely on it."
    if result.stale:
        return "stale", "Intact, but what it speaks of has changed since."
    if result.unknown_signers:
        return "intact", "Intact; nobody here knows the signers."
    return "intact", "Intact, and the signers are trusted."
