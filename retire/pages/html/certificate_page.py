"""A certificate in readable form, and the result of verifying it here. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retire.pages.html import addresses
from retire.pages.html.gates_view import Judgement, judgement
from retire.pages.phrases import evidence_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.pages.html.review import Review


@dataclass(frozen=True, slots=True)
class SubjectRow:
    """The digests of one bundle, or of the plan."""

    name: str
    digests: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a verification found. ``state`` is intact, stale or broken."""

    state: str
    words: str
    verdict: str
    problems: tuple[str, ...]
    stale: tuple[str, ...]
    unknown_signers: tuple[str, ...]
    checked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CertificatePage:
    """A certificate; one that cannot be believed has a ``fault`` and nothing else."""

    id: str
    title: str
    name: str
    fault: str
    signer: str
    first_lines: tuple[str, ...]
    evidence_words: str
    ships: bool
    judgement: Judgement | None
    facts: tuple[tuple[str, str], ...]
    subjects: tuple[SubjectRow, ...]
    heads: tuple[tuple[str, str, str], ...]
    trust: tuple[str, ...]
    envelope_href: str
    verification_href: str


def certificate_page(review: Review, name: str) -> CertificatePage:
    """Return the page of one certificate; raises KeyError where there is none."""
    signed = review.named(name)
    predicate: Mapping[str, Any] = signed.statement.get("predicate", {})
    evidence = str(predicate.get("evidence", review.evidence))
    return CertificatePage(
        id=review.id,
        title=review.title,
        name=name,
        fault=signed.fault,
        signer=signed.signer,
        first_lines=tuple(map(str, predicate.get("first_lines", ()))),
        evidence_words=evidence_words(evidence),
        ships=evidence == "live_model",
        judgement=judgement(review, signed, signed.item) if signed.item is not None else None,
        facts=_facts(predicate) if predicate else (),
        subjects=_subjects(signed.statement.get("subject", ())),
        heads=tuple(
            (record, f"{head['seq']} entries", str(head["key"]))
            for record, head in sorted(predicate.get("heads", {}).items())
        ),
        trust=tuple(map(str, predicate.get("trust", ()))),
        envelope_href=addresses.envelope(review.id, name),
        verification_href=f"{addresses.certificate(review.id, name)}/verification",
    )


def _facts(predicate: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    unit = predicate["unit"]
    return (
        ("Deployment", str(unit["deployment"]["name"])),
        ("Deployment's identity", str(unit["deployment"]["digest"])),
        ("Condition", str(unit["condition"])),
        ("Binding", str(unit["binding"])),
        ("Scope", str(unit["scope"])),
        ("Evidence", str(predicate["evidence"])),
        ("World", str(predicate["world"])),
        ("Separation of the programs", str(predicate["separation"]).replace("_", " ")),
        ("Stability", str(predicate["stability"])),
        ("Earlier runs of this pair", str(predicate["prior_runs_of_this_pair"])),
        ("Plan digest", str(predicate["plan"]["digest"])),
        ("Outcome root", str(predicate["outcome_root"])),
        ("Record root", str(predicate["record_root"])),
    )


def _subjects(subjects: Sequence[Mapping[str, Any]]) -> tuple[SubjectRow, ...]:
    grouped: dict[str, list[tuple[str, str]]] = {}
    for item in subjects:
        bundle, _, part = str(item["name"]).partition("/")
        digest = "sha256:" + str(item["digest"]["sha256"])
        grouped.setdefault(bundle, []).append((part.replace("-", " ") or "digest", digest))
    return tuple(SubjectRow(name, tuple(digests)) for name, digests in grouped.items())


def verified(result: Mapping[str, Any]) -> Verified:
    """Return a verification's result in words.

    Args:
        result: ``verdict``, ``problems``, ``stale``, ``unknown_signers`` and ``checked``.
    """
    problems, stale = tuple(result["problems"]), tuple(result["stale"])
    unknown = tuple(result["unknown_signers"])
    if problems:
        state, words = "broken", "Something does not come out again: do not rely on it."
    elif stale:
        state, words = "stale", "Intact, but what it speaks of has changed since."
    elif unknown:
        state, words = "intact", "Intact; nobody here knows the signers."
    else:
        state, words = "intact", "Intact, and the signers are trusted."
    checked = tuple(result["checked"])
    return Verified(state, words, str(result["verdict"]), problems, stale, unknown, checked)
