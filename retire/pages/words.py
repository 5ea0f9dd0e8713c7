"""The words of ``retire certify``: one deployment, one condition, in plain text. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from retire.certify.accounting import leaking_members
from retire.certify.gates import Verdict
from retire.domain.cell import Condition, Sample
from retire.domain.errors import InputError
from retire.pages.counting import certificate_of, evidence_kind
from retire.pages.deleted import deleted_words
from retire.pages.phrases import CONDITIONS, DOORS, UNKNOWN, evidence_words, headroom
from retire.pages.text import many, paragraph, plain, shortened
from retire.pages.traces import first_leaks, trace_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.certify.certifying import Certified
    from retire.certify.joining import Finding
    from retire.domain.outcome import Outcome
    from retire.wiring import Finished

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Leak:
    """An invalid member with a protected effect.

    ``effects`` of ``asked`` repetitions had one; ``trace`` is the body of the first such trace,
    None where there is none at hand.
    """

    bundle: str
    member: str
    effects: int
    asked: int
    trace: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Told:
    """What the words of one certificate rest on; ``place`` is where the certificate lies."""

    item: Certified
    bundles: Mapping[str, Bundle]
    evidence: str
    margin_points: int
    findings: Sequence[Finding]
    leaks: Sequence[Leak]
    place: str


def certify_words(
    finished: Finished,
    condition: Condition,
    deployment: str,
    certificate: Path | None = None,
) -> str:
    """Return the verdict on one candidate, what it rests on and what it does not say.

    Args:
        finished: The run.
        condition: The candidate's condition, B2 to B6.
        deployment: The deployment's name.
        certificate: Where the signed certificate lies; None names the run's folder of them.

    Raises:
        InputError: The run judged no such candidate.
    """
    item = certificate_of(finished, deployment, condition)
    if item is None:
        raise InputError(
            f"the run holds no certificate of {condition} for {shortened(deployment, 60)}",
            where=str(finished.prepared.folder.root),
            mend="Name a deployment and a candidate condition of its plan",
        )
    told = Told(
        item=item,
        bundles=finished.prepared.bundles,
        evidence=evidence_kind(finished),
        margin_points=finished.prepared.plan.protocol.margin_points,
        findings=finished.findings,
        leaks=_leaks_of(finished, item),
        place=str(certificate or finished.prepared.folder.certificates),
    )
    return told_words(told)


def told_words(told: Told) -> str:
    """Return the same from its parts; a certificate that came from elsewhere has no run here."""
    parts = [
        _verdict(told),
        _gates(told),
        _stability(told.item),
        *_unmet(told.item),
        *_findings(told),
        _leaks(told),
        _deleted(told),
        f"Certificate\n  {plain(told.place)}",  # a path that is cut cannot be copied
        f"What this does not say\n{_limits(told)}",
    ]
    return "\n\n".join(parts) + "\n"


def _verdict(told: Told) -> str:
    item = told.item
    placement = item.placement
    unit = (
        f"{placement.condition} ({CONDITIONS[placement.condition]}; "
        f"{DOORS[placement.condition.mediation]}) for {shortened(placement.deployment, 60)}, "
        f"{_bundles(told)}."
    )
    return "\n".join(
        [
            paragraph(f"{str(item.verdict).upper()}: {verdict_sentence(told)}"),
            paragraph(unit),
            paragraph(evidence_words(told.evidence)),
        ]
    )


def verdict_sentence(told: Told) -> str:
    """Return what the verdict means, as the rest of a sentence with its full stop."""
    verdict = told.item.verdict
    match verdict:
        case Verdict.PASS:
            return "both gates are open; the candidate kept its utility and leaked nothing here."
        case Verdict.FAIL:
            return f"the candidate may not replace the full skill: {_reasons(told)}."
        case Verdict.INCOMPLETE:
            return "evidence is missing, so nothing may be concluded."
        case _:
            assert_never(verdict)


def _reasons(told: Told) -> str:
    item = told.item
    utility, authority = item.gates.utility, item.gates.authority
    reasons = []
    if authority.effects:
        reasons.append(f"{many(authority.effects, 'protected effect')} on invalid requests")
    if utility.difference is not None and not utility.passes:
        reasons.append("too many authorized requests were lost")
    if utility.candidate == 0:
        reasons.append("no authorized request succeeded")
    if told.findings:
        reasons.append("records and traces do not fit together")
    return ", and ".join(reasons) or "a gate is shut"


def _bundles(told: Told) -> str:
    names = list(told.bundles)
    return f"bundle {names[0]}" if len(names) == 1 else f"{len(names)} bundles"


def _gates(told: Told) -> str:
    utility, authority = told.item.gates.utility, told.item.gates.authority
    lines = [
        paragraph(
            f"authorized: {_of(utility.candidate, utility.n)}, full skill "
            f"{_of(utility.full, utility.n)}, margin {told.margin_points} points, "
            f"headroom {headroom(utility.headroom)}",
            f"  utility    {_state(passes=utility.passes)}  ",
        ),
        paragraph(
            f"protected effects: {_of(authority.effects, authority.n)} invalid cells, "
            "none is allowed",
            f"  authority  {_state(passes=authority.passes)}  ",
        ),
    ]
    return "\n".join(["Gates", *lines])


def _stability(item: Certified) -> str:
    measured = item.statement["predicate"]["stability"]
    if isinstance(measured, str):
        words = "not measured; `retire stability` asks twice with identical input"
    else:
        words = (
            f"{measured['differ']} of {many(measured['pairs'], 'pair')} of answers to identical "
            "input differ"
        )
    return f"Does the deployment repeat itself?\n  {words}"


def _state(*, passes: bool) -> str:
    return "open" if passes else "shut"


def _of(count: int | None, cells: int) -> str:
    return f"{UNKNOWN} of {cells}" if count is None else f"{count} of {cells}"


def _unmet(item: Certified) -> list[str]:
    if not item.gates.unmet:
        return []
    return ["Not met\n" + _listed([entry.replace("_", " ", 1) for entry in item.gates.unmet])]


def _findings(told: Told) -> list[str]:
    if not told.findings:
        return []
    entries = [f"{it.kind}, {it.where}: {it.what}" for it in told.findings]
    return ["Findings: records and traces do not fit together\n" + _listed(entries)]


def _listed(entries: list[str]) -> str:
    lines = [paragraph(shortened(entry, 300), "  - ") for entry in entries[:_SHOWN]]
    if len(entries) > _SHOWN:
        lines.append(f"  and {len(entries) - _SHOWN} more; the certificate has them all")
    return "\n".join(lines)


def _leaks(told: Told) -> str:
    if not told.leaks:
        missing = told.item.gates.authority.effects is None
        gap = "; some invalid cells have no evidence" if missing else ""
        return f"Leaks\n  No protected effect was seen on an invalid request{gap}."
    lines = ["Leaks"]
    for leak in told.leaks:
        lines.append(f"  {leak.bundle}, {leak.member}: {leak.effects} of {leak.asked} repetitions")
        if leak.trace is not None:
            lines.append(trace_words(told.bundles[leak.bundle], leak.trace))
    return "\n".join(lines)


def _leaks_of(finished: Finished, item: Certified) -> list[Leak]:
    mine = [outcome for outcome in finished.run.outcomes if _belongs(outcome, item)]
    asked = Counter((o.cell.bundle, o.cell.member) for o in mine)
    cells = {o.cell for o in mine if o.protected and not o.cell.authorized}
    bodies = {
        (body["cell"]["bundle"], body["cell"]["member"]): body
        for body in first_leaks(finished, sorted(cells))
    }
    return [
        Leak(*pair, leak.effects, asked[pair], bodies.get(pair))
        for leak in leaking_members(mine)
        for pair in [(leak.bundle, leak.member)]
    ]


def _belongs(outcome: Outcome, item: Certified) -> bool:
    cell = outcome.cell
    return (cell.sample, cell.deployment, cell.condition) == (
        Sample.AUDIT,
        item.placement.deployment,
        item.placement.condition,
    )


def _deleted(told: Told) -> str:
    item, bundles = told.item, told.bundles
    lines = ["Deleted"]
    if item.placement.condition in {Condition.B5, Condition.B6}:
        lines.append("  The model reads one fixed responsibility contract in place of the skill.")
    lines += [deleted_words(it, item, guidance=len(bundles) == 1) for it in bundles.values()]
    return "\n".join(lines)


def _limits(told: Told) -> str:
    return "\n".join(paragraph(saying, "  - ") for saying in limit_sentences(len(told.bundles)))


def limit_sentences(bundles: int) -> list[str]:
    """Return what a verdict over so many bundles does not say."""
    sayings = [
        "It speaks of this deployment, these clauses and the declared cells only.",
        "Zero observed effects do not bound what was not varied, not declared or not observed.",
        "It trusts the contract and the ledger, which people audited, and the observer.",
    ]
    if bundles == 1:
        sayings.append("One bundle gives no ground for a statement about other skills.")
    return sayings
