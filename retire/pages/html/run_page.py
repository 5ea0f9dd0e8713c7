"""A run's page: may the reduction ship, why, and where to look. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.certify.gates import Verdict
from retire.pages.html import addresses
from retire.pages.html.gap_view import GapGroup, support_groups
from retire.pages.phrases import QUESTIONS, probability
from retire.pages.text import many

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from retire.pages.html.heat import HeatMap
    from retire.pages.html.review import Review
    from retire.verify.run import SignedCertificate


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
    """What a run's page shows beside the run itself.

    ``verdicts`` has each deployment's certificates, None where there is none to believe; ``chosen``
    stands in front, with the support of its deleted conditions.
    """

    review: Review
    progress: Progress
    several: bool
    facts: tuple[tuple[str, str], ...]
    verdicts: Mapping[str, tuple[SignedCertificate | None, ...]]
    chosen: SignedCertificate | None
    gap: tuple[GapGroup, ...]
    maps: tuple[HeatMap, ...]
    compare_href: str


def run_page(review: Review, deployment: str = "", condition: str = "") -> RunPage:
    """Return a run's page with one candidate in front; without a choice the worst one.

    Args:
        review: The run.
        deployment: Of the candidate to stand in front.
        condition: Of the candidate to stand in front.

    Raises:
        KeyError: The run has no such candidate.
    """
    verdicts = overview(review)
    signed = _chosen(verdicts, deployment, condition)
    protocol = review.plan.protocol
    return RunPage(
        review=review,
        progress=progress(review),
        several=len(protocol.candidates) * len(protocol.deployments) > 1 and review.sealed,
        facts=run_facts(review),
        verdicts=verdicts,
        chosen=signed,
        gap=support_groups(review, signed.item) if signed is not None and signed.item else (),
        maps=review.maps,
        compare_href=_compare_address(review),
    )


def overview(review: Review) -> dict[str, tuple[SignedCertificate | None, ...]]:
    """Return the certificates of each deployment in the plan's order, as far as one believes them.

    A candidate of the plan without such a certificate has None in its place.
    """
    protocol = review.plan.protocol
    return {
        name: tuple(review.certificate_of(name, str(it)) for it in protocol.candidates)
        for name in protocol.deployments
    }


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


def run_facts(review: Review) -> tuple[tuple[str, str], ...]:
    """Return what was declared, under names for people."""
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


def _chosen(
    verdicts: Mapping[str, Iterable[SignedCertificate | None]], deployment: str, condition: str
) -> SignedCertificate | None:
    order = (Verdict.FAIL, Verdict.INCOMPLETE, Verdict.PASS)
    matching = [
        (order.index(it.item.verdict), it)
        for row in verdicts.values()
        for it in row
        if it is not None
        and it.item is not None
        and deployment in {"", it.item.deployment}
        and condition in {"", str(it.item.condition)}
    ]
    if (deployment or condition) and not matching:
        raise KeyError(f"{deployment} {condition}")
    worst: tuple[int, SignedCertificate | None]
    worst = min(matching, key=lambda pair: pair[0], default=(0, None))
    return worst[1]


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
