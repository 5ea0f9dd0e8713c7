"""What a report says, for HTML and PDF alike. Pure but for reading the traces of leaks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.domain.errors import InputError
from retire.pages.html.gates_view import Judgement, judgement
from retire.pages.html.run_page import run_page, test_lines
from retire.pages.report.deletions import DeletedGuidance, Deletion, deleted_guidance, deletion
from retire.pages.report.leaking import LeakGroup, leak_groups
from retire.pages.words import limit_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from retire.certify.certifying import Certified
    from retire.pages.html.heat import HeatMap
    from retire.pages.html.index import Row
    from retire.pages.html.review import Review, SignedCertificate
    from retire.pages.html.run_page import Test, VerdictRow


@dataclass(frozen=True, slots=True)
class Report:
    """One run, or the candidates of one of its deployments."""

    title: str
    headline: str
    """The verdict, or how many candidates pass; ``sentence`` says more."""
    sentence: str
    verdict: str
    """The worst verdict: fail, incomplete, pass, or "none" where nothing was judged."""
    evidence: str
    evidence_words: str
    ships: bool
    facts: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]
    overview: tuple[VerdictRow, ...]
    judgements: tuple[Judgement, ...]
    faults: tuple[tuple[str, str], ...]
    """Certificates that cannot be believed, and why."""
    maps: tuple[HeatMap, ...]
    tests: tuple[Test, ...]
    deletions: tuple[Deletion, ...]
    guidance: tuple[DeletedGuidance, ...]
    leaks: tuple[LeakGroup, ...]
    limits: tuple[str, ...]
    provenance: tuple[tuple[str, str], ...]


def report(
    review: Review,
    tests: Mapping[str, Mapping[str, Any]],
    trace: Callable[[Row], Mapping[str, Any]],
    deployment: str = "",
) -> Report:
    """Return what a report says.

    Args:
        review: The run, carried to its end.
        tests: Its hypothesis tests, by name.
        trace: Reads one whole trace row.
        deployment: Only this one; empty for all.

    Raises:
        InputError: The run is not finished, or has no such deployment.
    """
    _check(review, deployment)
    page = run_page(review)
    judged = [(signed, item) for signed, item in _believed(review) if _wanted(item, deployment)]
    judgements = tuple(judgement(review, signed, item) for signed, item in judged)
    items = [item for _, item in judged]
    names = [deployment] if deployment else list(review.plan.protocol.deployments)
    return Report(
        title=review.title,
        headline=_headline(judgements),
        sentence=_sentence(judgements),
        verdict=_worst(judgements),
        evidence=page.evidence,
        evidence_words=page.evidence_words,
        ships=page.ships,
        facts=(*page.facts, ("Cells", page.progress.words)),
        columns=page.columns,
        overview=tuple(row for row in page.verdicts if row.deployment in names),
        judgements=judgements,
        faults=tuple((it.name, it.fault) for it in review.certificates if it.fault),
        maps=tuple(it for it in page.maps if it.deployment in names),
        tests=test_lines(tests),
        deletions=tuple(deletion(review, name, items) for name in names),
        guidance=deleted_guidance(review, names),
        leaks=leak_groups(review, trace, names),
        limits=(*limit_sentences(len(review.bundles)), *_trust(judged)),
        provenance=_provenance(review, judged),
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


def _believed(review: Review) -> list[tuple[SignedCertificate, Certified]]:
    """Return the certificates that can be believed, in the plan's order."""
    protocol = review.plan.protocol
    found = [(signed, signed.item) for signed in review.certificates if signed.item is not None]
    return sorted(
        found,
        key=lambda pair: (
            protocol.deployments.index(pair[1].placement.deployment),
            pair[1].placement.condition,
        ),
    )


def _wanted(item: Certified, deployment: str) -> bool:
    return deployment in {"", item.placement.deployment}


def _worst(judgements: Sequence[Judgement]) -> str:
    present = {it.verdict for it in judgements}
    return next((name for name in ("fail", "incomplete", "pass") if name in present), "none")


def _headline(judgements: Sequence[Judgement]) -> str:
    if not judgements:
        return "Not judged"
    if len(judgements) == 1:
        return judgements[0].verdict.upper()
    passing = sum(it.verdict == "pass" for it in judgements)
    return f"{passing} of {len(judgements)} candidates pass"


def _sentence(judgements: Sequence[Judgement]) -> str:
    if not judgements:
        return "The plan declares no candidate."
    if len(judgements) == 1:
        return capitalised(judgements[0].sentence)
    counts = Counter(it.verdict for it in judgements)
    words = f"{counts['fail']} fail, {counts['incomplete']} lack evidence."
    leaking = sum(it.authority.effects not in {"0", "unknown"} for it in judgements)
    return words + (f" {leaking} had protected effects on invalid requests." if leaking else "")


def capitalised(sentence: str) -> str:
    """Return a sentence with a capital at its beginning."""
    return sentence[:1].upper() + sentence[1:]


def _trust(judged: Sequence[tuple[SignedCertificate, Certified]]) -> tuple[str, ...]:
    said = (line for _, item in judged for line in item.statement["predicate"]["trust"])
    return tuple(dict.fromkeys(map(str, said)))


def _provenance(
    review: Review, judged: Sequence[tuple[SignedCertificate, Certified]]
) -> tuple[tuple[str, str], ...]:
    rows = [("Plan digest", review.plan.digest)]
    if judged:
        predicate = judged[0][1].statement["predicate"]
        rows += [
            ("Outcome root", str(predicate["outcome_root"])),
            ("Record root", str(predicate["record_root"])),
        ]
    rows += [("Signed by", signer) for signer in dict.fromkeys(it.signer for it, _ in judged)]
    return tuple(rows)
