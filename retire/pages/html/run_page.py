"""A run's page: may the reduction ship, why, and where to look. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.certify.gates import Verdict
from retire.pages.html import addresses
from retire.pages.html.gap_view import GapGroup, support_groups
from retire.pages.html.gates_view import Judgement, judgement, number
from retire.pages.html.heat import HeatMap, heat_maps
from retire.pages.phrases import CONDITIONS, QUESTIONS, evidence_words, probability
from retire.pages.text import many

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.certify.certifying import Certified
    from retire.pages.html.review import Review, SignedCertificate


@dataclass(frozen=True, slots=True)
class VerdictSquare:
    """A candidate in the overview: its verdict and both gates' counts."""

    deployment: str
    condition: str
    verdict: str
    utility: str
    effects: str
    href: str
    selected: bool


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One deployment's candidates."""

    deployment: str
    squares: tuple[VerdictSquare | None, ...]


@dataclass(frozen=True, slots=True)
class Test:
    """A hypothesis test, beside the verdict."""

    name: str
    question: str
    status: str
    numbers: str
    p: str
    p_adjusted: str
    excluded: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; ``share`` in thousandths."""

    done: int
    planned: int
    share: int
    ended: bool
    words: str


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything that a run's page shows."""

    id: str
    title: str
    facts: tuple[tuple[str, str], ...]
    evidence: str
    evidence_words: str
    ships: bool
    progress: Progress
    several: bool
    summary: str
    """How many candidates may replace the full skill."""
    unbelievable: tuple[tuple[str, str, str], ...]
    """Name, fault and address of certificates that cannot be believed."""
    columns: tuple[tuple[str, str], ...]
    verdicts: tuple[VerdictRow, ...]
    chosen: Judgement | None
    gap: tuple[GapGroup, ...]
    guidance: int
    bundles: tuple[tuple[str, str, str], ...]
    """Id, title and the address of the skill's difference for the chosen candidate."""
    maps: tuple[HeatMap, ...]
    compare_href: str


def run_page(
    review: Review,
    deployment: str = "",
    condition: str = "",
    maps: tuple[HeatMap, ...] | None = None,
) -> RunPage:
    """Return a run's page with one candidate in front; without a choice the worst one.

    Args:
        review: The run.
        deployment: Of the candidate to stand in front.
        condition: Of the candidate to stand in front.
        maps: The run's heat maps, if they were counted already.

    Raises:
        KeyError: The run has no such candidate.
    """
    signed = _chosen(review, deployment, condition)
    item = signed.item if signed is not None else None
    chosen = judgement(review, signed, item) if signed is not None and item is not None else None
    protocol = review.plan.protocol
    return RunPage(
        id=review.id,
        title=review.title,
        facts=_facts(review),
        evidence=review.evidence,
        evidence_words=evidence_words(review.evidence),
        ships=review.evidence == "live_model",
        progress=progress(review),
        several=len(protocol.candidates) * len(protocol.deployments) > 1 and review.sealed,
        summary=_summary(review),
        unbelievable=tuple(
            (it.name, it.fault, addresses.certificate(review.id, it.name))
            for it in review.certificates
            if it.fault
        ),
        columns=tuple((str(it), CONDITIONS[it]) for it in protocol.candidates),
        verdicts=_overview(review, signed),
        chosen=chosen,
        gap=support_groups(review, item) if item is not None else (),
        guidance=sum(it.status is None for it in item.support) if item is not None else 0,
        bundles=_bundles(review, item),
        maps=heat_maps(review) if maps is None else maps,
        compare_href=_compare_address(review),
    )


def progress(review: Review) -> Progress:
    """Return how far a run is."""
    planned, done = len(review.plan.cells), len(review.index)
    words = f"{done} of {planned} cells have a trace"
    if review.ended:
        words += "" if done >= planned else "; the others have no evidence"
    elif review.sealed:
        words += "; certificates are being signed, or the run was cut before it signed them"
    else:
        words += "; not finished, so nothing is judged yet"
    if review.untraced_leaks:
        words += (
            f"; {many(len(review.untraced_leaks), 'cell')} without a trace had a protected effect "
            "on an invalid request"
        )
    share = 1000 * done // planned if planned else 0
    return Progress(done, planned, min(share, 1000), review.ended, words)


def _summary(review: Review) -> str:
    items = [it.item for it in review.certificates if it.item is not None]
    passing = sum(it.verdict is Verdict.PASS for it in items)
    if not passing:
        return f"None of {many(len(items), 'candidate')} may replace the full skill"
    return f"{passing} of {many(len(items), 'candidate')} passed both gates"


def _facts(review: Review) -> tuple[tuple[str, str], ...]:
    protocol = review.plan.protocol
    return (
        ("Plan", protocol.name),
        ("Bundles", str(len(protocol.bundles))),
        ("Deployments", ", ".join(protocol.deployments)),
        ("Repetitions", str(protocol.repetitions)),
        ("Margin", many(protocol.margin_points, "point")),
        ("Candidates", "given by hand" if review.given else f"reduced, {protocol.reducer}"),
        ("Seed", str(protocol.seed)),
        ("Plan digest", review.plan.digest),
    )


def _chosen(review: Review, deployment: str, condition: str) -> SignedCertificate | None:
    protocol = review.plan.protocol
    planned = [
        review.certificate_of(name, str(candidate))
        for name in protocol.deployments
        for candidate in protocol.candidates
    ]
    matching = [it for it in planned if it is not None and _is(it.item, deployment, condition)]
    if (deployment or condition) and not matching:
        raise KeyError(f"{deployment} {condition}")
    order = (Verdict.FAIL, Verdict.INCOMPLETE, Verdict.PASS)
    return min(
        matching,
        key=lambda signed: order.index(signed.item.verdict) if signed.item else len(order),
        default=None,
    )


def _is(item: Certified | None, deployment: str, condition: str) -> bool:
    return item is not None and all(
        wanted in {"", found}
        for wanted, found in (
            (deployment, item.placement.deployment),
            (condition, str(item.placement.condition)),
        )
    )


def _overview(review: Review, chosen: SignedCertificate | None) -> tuple[VerdictRow, ...]:
    protocol = review.plan.protocol
    return tuple(
        VerdictRow(
            deployment,
            tuple(_square(review, deployment, str(it), chosen) for it in protocol.candidates),
        )
        for deployment in protocol.deployments
    )


def _square(
    review: Review, deployment: str, condition: str, chosen: SignedCertificate | None
) -> VerdictSquare | None:
    signed = review.certificate_of(deployment, condition)
    if signed is None or signed.item is None:
        return None
    gates = signed.item.gates
    utility, authority = gates.utility, gates.authority
    return VerdictSquare(
        deployment=deployment,
        condition=condition,
        verdict=str(signed.item.verdict),
        utility=f"{number(utility.candidate)} of {utility.n}",
        effects=number(authority.effects),
        href=addresses.run(review.id, deployment, condition),
        selected=signed is chosen,
    )


def _bundles(review: Review, item: Certified | None) -> tuple[tuple[str, str, str], ...]:
    if item is None:
        return ()
    placement = item.placement
    return tuple(
        (
            key,
            bundle.card.title,
            addresses.diff(review.id, placement.deployment, key, placement.condition),
        )
        for key, bundle in review.bundles.items()
    )


def _compare_address(review: Review) -> str:
    query: dict[str, object] = {"left": review.id, "right": review.id}
    deployments = review.plan.protocol.deployments
    if len(deployments) > 1:
        query |= {"left_deployment": deployments[0], "right_deployment": deployments[1]}
    return addresses.compare({**query, "differing": "yes"})


def test_lines(tests: Mapping[str, Mapping[str, Any]]) -> tuple[Test, ...]:
    """Return the three hypothesis tests in words."""
    return tuple(
        Test(
            name=name,
            question=QUESTIONS[name],
            status=str(test["status"]).replace("_", " "),
            numbers=_numbers(test),
            p=probability(test["p"]),
            p_adjusted=probability(test["p_adjusted"]),
            excluded=", ".join(test.get("excluded", ())),
        )
        for name, test in tests.items()
    )


def _numbers(test: Mapping[str, Any]) -> str:
    if test.get("plus") is not None:
        return f"{test['plus']} plus, {test['minus']} minus, {test['ties']} tied"
    if test.get("statistic") is not None:
        return f"statistic {test['statistic']}"
    return "not computed"
