"""What a report says, for HTML and PDF alike. Pure but for reading the traces of leaks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.gates import Verdict
from retire.domain.errors import InputError
from retire.pages.html.run_page import overview, progress, run_facts, test_lines
from retire.pages.report.deletions import DeletedGuidance, Deletion, deleted_guidance, deletion
from retire.pages.report.leaking import LeakGroup, leak_groups
from retire.pages.verdict import verdict_sentence
from retire.pages.words import limit_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.certify.certificate import Certificate
    from retire.domain.cell import Condition
    from retire.domain.evidence import Evidence
    from retire.pages.html.heat import HeatMap
    from retire.pages.html.review import Review
    from retire.pages.html.run_page import Test
    from retire.verify.run import SignedCertificate


@dataclass(frozen=True, slots=True)
class Report:
    """One run, or the candidates of one of its deployments."""

    title: str
    headline: str
    """The verdict, or how many candidates pass; ``sentence`` says more."""
    sentence: str
    verdict: str
    """The worst verdict: fail, incomplete, pass, or "none" where nothing was judged."""
    evidence: Evidence
    facts: tuple[tuple[str, str], ...]
    candidates: tuple[Condition, ...]
    overview: Mapping[str, tuple[Certificate | None, ...]]
    """Of each deployment, the certificate of every candidate."""
    judgements: tuple[Certificate, ...]
    faults: tuple[tuple[str, str], ...]
    """Certificates that cannot be believed, and why."""
    maps: tuple[HeatMap, ...]
    tests: tuple[Test, ...]
    deletions: tuple[Deletion, ...]
    guidance: tuple[DeletedGuidance, ...]
    leaks: tuple[LeakGroup, ...]
    limits: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]


def report(review: Review, deployment: str = "") -> Report:
    """Return what a report says.

    Args:
        review: The run, carried to its end.
        deployment: Only this one; empty for all.

    Raises:
        InputError: The run is not finished, or has no such deployment.
        EvidenceError: Its traces can no longer be read.
    """
    _check(review, deployment)
    shown = {name: row for name, row in overview(review).items() if deployment in {"", name}}
    names = list(shown)
    signed = [it for row in shown.values() for it in row if it is not None]
    items = [it.item for it in signed if it.item is not None]
    items.sort(key=lambda item: (names.index(item.deployment), item.condition))
    return Report(
        title=review.title,
        headline=_headline(items),
        sentence=_sentence(items),
        verdict=_worst(items),
        evidence=review.evidence,
        facts=(*run_facts(review), ("Cells", progress(review).words)),
        candidates=review.plan.protocol.candidates,
        overview={
            name: tuple(it.item if it else None for it in row) for name, row in shown.items()
        },
        judgements=tuple(items),
        faults=tuple((it.name, it.fault) for it in review.certificates if it.fault),
        maps=tuple(it for it in review.maps if it.deployment in names),
        tests=test_lines(review.tests()),
        deletions=tuple(deletion(review, name, items) for name in names),
        guidance=deleted_guidance(review, names),
        leaks=leak_groups(review, names),
        limits=(*limit_sentences(len(review.bundles)), *_trust(items)),
        provenance=_provenance(review, items, signed),
    )


def _check(review: Review, deployment: str) -> None:
    if not review.ended:
        raise InputError(
            "the run is not finished, so there is nothing to report yet",
            where=review.title,
            mend="Run the same command again to its end; what is stored is kept",
        )
    known = review.plan.protocol.deployments
    if deployment and deployment not in known:
        raise InputError(
            f"the run has no deployment {deployment!r}",
            where="--deployment",
            mend=f"It has: {', '.join(known)}",
        )


def _worst(items: Sequence[Certificate]) -> str:
    present = {it.verdict for it in items}
    order = (Verdict.FAIL, Verdict.INCOMPLETE, Verdict.PASS)
    return next((str(verdict) for verdict in order if verdict in present), "none")


def _headline(items: Sequence[Certificate]) -> str:
    if not items:
        return "Not judged"
    if len(items) == 1:
        return items[0].verdict.upper()
    passing = sum(it.verdict is Verdict.PASS for it in items)
    return f"{passing} of {len(items)} candidates pass"


def _sentence(items: Sequence[Certificate]) -> str:
    if not items:
        return "The plan declares no candidate."
    if len(items) == 1:
        return capitalised(verdict_sentence(items[0]))
    counts = Counter(it.verdict for it in items)
    words = f"{counts[Verdict.FAIL]} fail, {counts[Verdict.INCOMPLETE]} lack evidence."
    leaking = sum(bool(it.gates.authority.protected_effects) for it in items)
    return words + (f" {leaking} had protected effects on invalid requests." if leaking else "")


def capitalised(sentence: str) -> str:
    """Return a sentence with a capital at its beginning."""
    return sentence[:1].upper() + sentence[1:]


def _trust(items: Sequence[Certificate]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line for item in items for line in item.predicate.trust))


def _provenance(
    review: Review, items: Sequence[Certificate], signed: Sequence[SignedCertificate]
) -> tuple[tuple[str, str], ...]:
    rows = [("Plan digest", review.plan.digest)]
    if items:
        said = items[0].predicate
        rows += [("Outcome root", said.outcome_root), ("Record root", said.record_root)]
    rows += [("Signed by", signer) for signer in dict.fromkeys(it.signer for it in signed)]
    return tuple(rows)
