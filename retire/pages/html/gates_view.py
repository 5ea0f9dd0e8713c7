"""A certificate's two gates for people: counts, margin, headroom and bound. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.certify.gates import Verdict
from retire.pages.exports.reading import read_stop
from retire.pages.html import addresses
from retire.pages.phrases import CONDITIONS, DOORS, UNKNOWN, headroom, points, stop_words
from retire.pages.words import verdict_sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.certify.certifying import Certified
    from retire.pages.html.review import Review, SignedCertificate

OPEN, SHUT = "open", "shut"
SHORT = {
    Verdict.PASS: "may replace",
    Verdict.FAIL: "may not replace",
    Verdict.INCOMPLETE: "unknown",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The utility gate as a bar, in thousandths of the authorized cells."""

    candidate: int
    needed: int
    full: int


@dataclass(frozen=True, slots=True)
class Utility:
    """The utility gate."""

    state: str
    candidate: str
    full: str
    cells: int
    margin_points: int
    difference: str
    headroom: str
    headroom_words: str
    needed: str
    one_cell: bool
    scale: Scale | None


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority gate. ``bound`` is empty where it cannot be given."""

    state: str
    effects: str
    cells: int
    bound: str


@dataclass(frozen=True, slots=True)
class LeakLine:
    """An invalid member with protected effects, and where they are found."""

    bundle: str
    member: str
    effects: int
    href: str
    new: bool


@dataclass(frozen=True, slots=True)
class MissLine:
    """Where authorized requests were lost."""

    words: str
    cells: int


@dataclass(frozen=True, slots=True)
class Judgement:
    """One certificate's verdict with everything it rests on."""

    name: str
    deployment: str
    condition: str
    meaning: str
    door: str
    verdict: str
    sentence: str
    utility: Utility
    authority: Authority
    unmet: tuple[str, ...]
    findings: tuple[str, ...]
    leaks: tuple[LeakLine, ...]
    misses: tuple[MissLine, ...]
    flow: Mapping[str, int]
    lost: tuple[str, ...]
    prior_runs: int
    stability: str
    href: str
    certificate_href: str


def judgement(review: Review, signed: SignedCertificate, item: Certified) -> Judgement:
    """Return what one certificate says, for the top of a run's page."""
    condition = item.placement.condition
    deployment = item.placement.deployment
    predicate = item.statement["predicate"]
    beside: Mapping[str, Any] = predicate["beside_the_verdict"]
    return Judgement(
        name=signed.name,
        deployment=deployment,
        condition=str(condition),
        meaning=CONDITIONS[condition],
        door=DOORS[condition.mediation],
        verdict=str(item.verdict),
        sentence=verdict_sentence(review.told(item)),
        utility=_utility(review, item),
        authority=_authority(item, beside),
        unmet=tuple(entry.replace("_", " ", 1) for entry in item.gates.unmet),
        findings=tuple(
            f"{it['kind']}, {it['where']}: {it['what']}" for it in predicate["findings"]
        ),
        leaks=_leaks(review, item, beside),
        misses=tuple(
            MissLine(stop_words(read_stop(entry)), int(entry["cells"]))
            for entry in beside["authorized_misses"]
        ),
        flow={name: int(value) for name, value in beside["invalid_members"].items()},
        lost=tuple(beside["bundles_without_authorized_success"]),
        prior_runs=int(predicate["prior_runs_of_this_pair"]),
        stability=str(predicate["stability"]),
        href=addresses.run(review.id, deployment, str(condition)),
        certificate_href=addresses.certificate(review.id, signed.name),
    )


def _state(*, passes: bool) -> str:
    return OPEN if passes else SHUT


def number(value: int | None) -> str:
    """Return a count, or that it is unknown."""
    return UNKNOWN if value is None else str(value)


def _utility(review: Review, item: Certified) -> Utility:
    gate = item.gates.utility
    scale = None
    if gate.candidate is not None and gate.full is not None and gate.smallest_passing is not None:
        scale = Scale(
            *(1000 * it // gate.n for it in (gate.candidate, gate.smallest_passing, gate.full))
        )
    return Utility(
        state=_state(passes=gate.passes),
        candidate=number(gate.candidate),
        full=number(gate.full),
        cells=gate.n,
        margin_points=review.plan.protocol.margin_points,
        difference=points(gate.difference),
        headroom=headroom(gate.headroom),
        headroom_words=_headroom_words(gate.headroom),
        needed=number(gate.smallest_passing),
        one_cell=gate.one_cell_sensitive is True,
        scale=scale,
    )


def _headroom_words(value: int | None) -> str:
    if value is None:
        return "cells are missing, so how much could be lost is unknown"
    if value < 0:
        return f"{-value} more authorized requests would have to succeed"
    if value == 0:
        return "not one more authorized request could be lost"
    return f"{value} more authorized requests could be lost"


def _authority(item: Certified, beside: Mapping[str, Any]) -> Authority:
    gate = item.gates.authority
    bound = beside["upper_bound_if_bundles_were_a_random_sample"]
    words = ""
    if bound is not None:
        share = 100 * float(bound["one_sided_95_percent"])
        words = (
            f"If bundles were a random sample: at most {share:.1f}% leak "
            f"(exact one-sided 95% bound, {bound['leaking']} of {bound['bundles']} leaked here)."
        )
    return Authority(_state(passes=gate.passes), number(gate.effects), gate.n, words)


def _leaks(review: Review, item: Certified, beside: Mapping[str, Any]) -> tuple[LeakLine, ...]:
    new = set(beside["newly_leaking_bundles"])
    placement = item.placement
    return tuple(
        LeakLine(
            bundle=str(leak["bundle"]),
            member=str(leak["member"]),
            effects=int(leak["effects"]),
            href=addresses.leaks(
                review.id,
                placement.deployment,
                str(leak["bundle"]),
                str(placement.condition),
                str(leak["member"]),
            ),
            new=leak["bundle"] in new,
        )
        for leak in beside["leaks"]
    )
