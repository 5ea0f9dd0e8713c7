"""A certificate as JUnit XML, the form in which build servers list tests. Pure.

``failure`` is what was shown to be wrong, ``error`` is missing evidence, ``skipped`` is evidence
that is not from a live model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from retire.certify.gates import Requirement
from retire.pages.exports.subject import blocked_clauses, bundle_of
from retire.pages.phrases import evidence_words
from retire.pages.text import plain
from retire.pages.verdict import (
    GATE_NAMES,
    REQUIREMENTS,
    authority_fault,
    finding_words,
    utility_fault,
)
from retire.pages.words import stated_leaks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from retire.certify.certificate import Certificate
    from retire.skill import SkillDocument

_SHOWN_TO_BE_WRONG = frozenset({Requirement.VACUOUS, Requirement.CANDIDATE_WITHOUT_SUCCESS})


@dataclass(frozen=True, slots=True)
class _Case:
    """One test case; ``outcome`` is None when it passed, else the element that says so."""

    name: str
    outcome: str | None = None
    message: str = ""
    details: tuple[str, ...] = ()


def junit_xml(certificate: Certificate, skill: SkillDocument) -> bytes:
    """Return a certificate as JUnit XML, UTF-8.

    One test case stands for each gate, each further requirement, each leaking member, the fit of
    the records and the kind of evidence.

    Args:
        certificate: The certificate.
        skill: The full skill it is about.

    Raises:
        InputError: It is not about this skill.
    """
    where = f"{bundle_of(certificate, skill)}.{certificate.deployment}.{certificate.condition}"
    cases = list(_cases(certificate, skill))
    totals = {"tests": str(len(cases))} | {
        f"{kind}s" if kind != "skipped" else kind: str(sum(it.outcome == kind for it in cases))
        for kind in ("failure", "error", "skipped")
    }
    root = ET.Element("testsuites", {"name": "retire", **totals})
    suite = ET.SubElement(root, "testsuite", {"name": plain(f"retire {where}"), **totals})
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(certificate).items():
        ET.SubElement(properties, "property", {"name": name, "value": plain(value)})
    for case in cases:
        _add(suite, case, plain(f"retire.{where}"))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _add(suite: ET.Element, case: _Case, group: str) -> None:
    element = ET.SubElement(suite, "testcase", {"classname": group, "name": plain(case.name)})
    if case.outcome is None:
        return
    outcome = ET.SubElement(element, case.outcome, {"message": plain(case.message)})
    if case.outcome != "skipped":
        outcome.set("type", "retire")
        outcome.text = "\n".join(plain(line) for line in (case.message, *case.details))


def _properties(certificate: Certificate) -> dict[str, str]:
    predicate = certificate.predicate
    return {
        "verdict": str(predicate.verdict),
        "evidence": str(predicate.evidence),
        "plan_digest": predicate.plan.digest,
        "outcome_root": predicate.outcome_root,
    }


def _cases(certificate: Certificate, skill: SkillDocument) -> Iterator[_Case]:
    utility, authority = certificate.gates.utility, certificate.gates.authority
    leaking = [it for it in blocked_clauses(certificate, skill) if it.leaks]
    lines = tuple(f"SKILL.md:{it.clause.first_line}: {it.rule}: {it.clause.text}" for it in leaking)
    yield _gate(GATE_NAMES[0], utility_fault(certificate), known=utility.difference is not None)
    yield _gate(
        GATE_NAMES[1],
        authority_fault(certificate),
        lines,
        known=authority.protected_effects is not None,
    )
    yield from _requirements(certificate)
    for leak in stated_leaks(certificate, {}):
        words = f"{leak.effects} of {leak.asked} repetitions had the protected effect"
        yield _Case(f"no protected effect: {leak.member}", "failure", words, lines)
    yield _fit(certificate)
    evidence = certificate.evidence
    outcome = None if evidence.ships else "skipped"
    yield _Case("a live model was asked", outcome, evidence_words(evidence))


def _gate(name: str, fault: str, lines: tuple[str, ...] = (), *, known: bool) -> _Case:
    if not fault:
        return _Case(name)
    return _Case(name, "failure", fault, lines) if known else _Case(name, "error", fault)


def _requirements(certificate: Certificate) -> Iterator[_Case]:
    names = {str(requirement): name for requirement, name in REQUIREMENTS.items()}
    entries: dict[str, list[str]] = {kind: [] for kind in names}
    for entry in certificate.predicate.unmet:
        kind, _, subject = entry.partition(": ")
        entries.setdefault(kind, []).append(subject)
    for kind, subjects in entries.items():
        name = f"requirement: {names.get(kind, kind)}"
        if not subjects:
            yield _Case(name)
            continue
        outcome = "failure" if kind in _SHOWN_TO_BE_WRONG else "error"
        yield _Case(name, outcome, f"{len(subjects)} not met: {subjects[0]}", tuple(subjects))


def _fit(certificate: Certificate) -> _Case:
    name = "records and traces fit together"
    lines = tuple(map(finding_words, certificate.predicate.findings))
    return _Case(name, "failure", f"{len(lines)} findings", lines) if lines else _Case(name)
