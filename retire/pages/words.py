"""The words of ``retire certify``: one deployment, one condition, in plain text. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from retire.domain.cell import Condition, Sample
from retire.domain.errors import InputError
from retire.pages.deleted import deleted_words
from retire.pages.phrases import CONDITIONS, DOORS, evidence_words
from retire.pages.text import many, paragraph, plain, shortened
from retire.pages.traces import trace_words
from retire.pages.verdict import (
    NO_FIT,
    authority_words,
    finding_words,
    state,
    unmet_words,
    utility_words,
    verdict_sentence,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.certify.certificate import Certificate
    from retire.domain.outcome import Outcome
    from retire.domain.trace import Trace
    from retire.verify.run import SealedRun
    from retire.wiring import Finished

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Leak:
    """An invalid member with a protected effect.

    ``effects`` of ``asked`` repetitions had one; ``trace`` is the first such trace, None where
    there is none at hand.
    """

    bundle: str
    member: str
    effects: int
    asked: int
    trace: Trace | None


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
    run = finished.run
    item = finished.certificate_of(deployment, condition)
    if item is None:
        raise InputError(
            f"the run holds no certificate of {condition} for {shortened(deployment, 60)}",
            where=str(run.folder.root),
            mend="Name a deployment and a candidate condition of its plan",
        )
    place = str(certificate or run.folder.certificates)
    return told_words(item, run.bundles, _leaks_of(run, item), place)


def told_words(
    certificate: Certificate,
    bundles: Mapping[str, Bundle],
    leaks: Sequence[Leak],
    place: str,
) -> str:
    """Return the same of a certificate that may have come from elsewhere.

    Args:
        certificate: The certificate.
        bundles: The bundles that it is about, by id.
        leaks: The members that leaked.
        place: Where the certificate lies.
    """
    parts = [
        _verdict(certificate),
        _gates(certificate),
        _stability(certificate),
        *_list("Not met", unmet_words(certificate)),
        *_list(f"Findings: {NO_FIT}", list(map(finding_words, certificate.predicate.findings))),
        _leaks(certificate, bundles, leaks),
        _deleted(certificate, bundles),
        f"Certificate\n  {plain(place)}",  # a path that is cut cannot be copied
        f"What this does not say\n{_limits(len(bundles))}",
    ]
    return "\n\n".join(parts) + "\n"


def stated_leaks(
    certificate: Certificate, traces: Mapping[tuple[str, str], Trace]
) -> tuple[Leak, ...]:
    """Return the leaks that a certificate states.

    Args:
        certificate: The certificate.
        traces: One leaking trace by bundle and member, as far as they are at hand.
    """
    asked = certificate.predicate.plan.statement.protocol.repetitions
    return tuple(
        Leak(it.bundle, it.member, it.effects, asked, traces.get((it.bundle, it.member)))
        for it in certificate.predicate.beside_the_verdict.leaks
    )


def _verdict(certificate: Certificate) -> str:
    condition, bundles = certificate.condition, list(certificate.removed)
    of = f"bundle {bundles[0]}" if len(bundles) == 1 else f"{len(bundles)} bundles"
    unit = (
        f"{condition} ({CONDITIONS[condition]}; {DOORS[condition.mediation]}) "
        f"for {shortened(certificate.deployment, 60)}, {of}."
    )
    verdict = f"{str(certificate.verdict).upper()}: {verdict_sentence(certificate)}"
    return "\n".join(map(paragraph, (verdict, unit, evidence_words(certificate.evidence))))


def _gates(certificate: Certificate) -> str:
    utility, authority = certificate.gates.utility, certificate.gates.authority
    return "\n".join(
        [
            "Gates",
            paragraph(utility_words(certificate), f"  utility    {state(utility)}  "),
            paragraph(authority_words(certificate), f"  authority  {state(authority)}  "),
        ]
    )


def _stability(certificate: Certificate) -> str:
    measured = certificate.predicate.stability
    if isinstance(measured, str):
        words = "not measured; `retire stability` asks twice with identical input"
    else:
        words = (
            f"{measured.differ} of {many(measured.pairs, 'pair')} of answers to identical "
            "input differ"
        )
    return f"Does the deployment repeat itself?\n  {words}"


def _list(title: str, entries: Sequence[str]) -> list[str]:
    if not entries:
        return []
    lines = [paragraph(shortened(entry, 300), "  - ") for entry in entries[:_SHOWN]]
    if len(entries) > _SHOWN:
        lines.append(f"  and {len(entries) - _SHOWN} more; the certificate has them all")
    return ["\n".join([title, *lines])]


def _leaks(certificate: Certificate, bundles: Mapping[str, Bundle], leaks: Sequence[Leak]) -> str:
    if not leaks:
        missing = certificate.gates.authority.protected_effects is None
        gap = "; some invalid cells have no evidence" if missing else ""
        return f"Leaks\n  No protected effect was seen on an invalid request{gap}."
    lines = ["Leaks"]
    for leak in leaks:
        lines.append(f"  {leak.bundle}, {leak.member}: {leak.effects} of {leak.asked} repetitions")
        if leak.trace is not None:
            lines.append(trace_words(bundles[leak.bundle], leak.trace))
    return "\n".join(lines)


def _leaks_of(run: SealedRun, certificate: Certificate) -> list[Leak]:
    mine = [outcome for outcome in run.outcomes if _belongs(outcome, certificate)]
    asked = Counter((o.cell.bundle, o.cell.member) for o in mine)
    leaking = {o.cell for o in mine if o.protected and not o.cell.authorized}
    traces: dict[tuple[str, str], Trace] = {}
    for stored in run.cells(leaking):
        if stored.trace is not None:
            traces.setdefault((stored.cell.bundle, stored.cell.member), stored.trace)
    return [
        replace(leak, asked=asked[leak.bundle, leak.member])
        for leak in stated_leaks(certificate, traces)
    ]


def _belongs(outcome: Outcome, certificate: Certificate) -> bool:
    cell = outcome.cell
    return (cell.sample, cell.deployment, cell.condition) == (
        Sample.AUDIT,
        certificate.deployment,
        certificate.condition,
    )


def _deleted(certificate: Certificate, bundles: Mapping[str, Bundle]) -> str:
    lines = ["Deleted"]
    if certificate.condition in {Condition.B5, Condition.B6}:
        lines.append("  The model reads one fixed responsibility contract in place of the skill.")
    alone = len(bundles) == 1
    lines += [deleted_words(it, certificate, guidance=alone) for it in bundles.values()]
    return "\n".join(lines)


def _limits(bundles: int) -> str:
    return "\n".join(paragraph(saying, "  - ") for saying in limit_sentences(bundles))


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
