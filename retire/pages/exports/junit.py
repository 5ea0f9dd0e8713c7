"""A certificate as JUnit XML, the form in which build servers list tests. Pure.

``failure`` is what was shown to be wrong, ``error`` is missing evidence, ``skipped`` is evidence
that is not from a live model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from retire.certify.gates import Requirement
from retire.pages.exports.reading import read_judged
from retire.pages.phrases import evidence_words, headroom
from retire.pages.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from retire.pages.exports.reading import Judged
    from retire.skill import SkillDocument

_NAMES: Mapping[Requirement, str] = {
    Requirement.COUNT_MISSING: "every count is known",
    Requirement.VACUOUS: "the full skill reaches the utility floor",
    Requirement.CANDIDATE_WITHOUT_SUCCESS: "the candidate succeeds at least once",
    Requirement.CELL_MISSING: "every declared cell was run",
    Requirement.CELL_DUPLICATE: "no cell was counted twice",
    Requirement.CELL_INCOMPLETE: "every cell has evidence",
    Requirement.CELL_UNDECLARED: "every cell was declared",
    Requirement.OBSERVER_BLIND: "the observer can see the protected effect",
    Requirement.PREDICATE_NOT_VARIED: "every predicate is varied",
}

_SHOWN_TO_BE_WRONG = frozenset({Requirement.VACUOUS, Requirement.CANDIDATE_WITHOUT_SUCCESS})


@dataclass(frozen=True, slots=True)
class _Case:
    """One test case; ``outcome`` is None when it passed, else the element that says so."""

    name: str
    outcome: str | None = None
    message: str = ""
    details: tuple[str, ...] = ()


def junit_xml(statement: Mapping[str, Any], skill: SkillDocument) -> bytes:
    """Return a certificate as JUnit XML, UTF-8.

    One test case stands for each gate, each further requirement, each leaking member, the fit of
    the records and the kind of evidence.

    Args:
        statement: The signed in-toto Statement.
        skill: The full skill it is about.

    Raises:
        InputError: Not a statement about this skill.
    """
    judged = read_judged(statement, skill)
    cases = list(_cases(judged))
    totals = {"tests": str(len(cases))} | {
        f"{kind}s" if kind != "skipped" else kind: str(sum(it.outcome == kind for it in cases))
        for kind in ("failure", "error", "skipped")
    }
    root = ET.Element("testsuites", {"name": "retire", **totals})
    where = f"{judged.bundle}.{judged.deployment}.{judged.condition}"
    suite = ET.SubElement(root, "testsuite", {"name": plain(f"retire {where}"), **totals})
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(judged).items():
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


def _properties(judged: Judged) -> dict[str, str]:
    return {
        "verdict": str(judged.verdict),
        "evidence": judged.evidence,
        "plan_digest": judged.plan_digest,
        "outcome_root": judged.outcome_root,
    }


def _cases(judged: Judged) -> Iterator[_Case]:
    yield _utility(judged)
    yield _authority(judged)
    yield from _requirements(judged)
    for leak in judged.leaks:
        yield _Case(
            f"no protected effect: {leak.member}",
            "failure",
            f"{leak.effects} of {judged.repetitions} repetitions had the protected effect",
            tuple(_clause_lines(judged)),
        )
    yield _fit(judged)
    yield _evidence(judged)


def _utility(judged: Judged) -> _Case:
    gate = judged.item.gates.utility
    name = "utility gate"
    if gate.passes:
        return _Case(name)
    if gate.difference is None:
        return _Case(name, "error", "authorized cells have no evidence")
    counts = f"{gate.candidate} of {gate.n} authorized requests, full skill {gate.full}"
    room = f"margin {judged.margin_points} points, headroom {headroom(gate.headroom)}"
    return _Case(name, "failure", f"{counts}, {room}")


def _authority(judged: Judged) -> _Case:
    gate = judged.item.gates.authority
    name = "authority gate"
    if gate.passes:
        return _Case(name)
    if gate.effects is None:
        return _Case(name, "error", f"some of {gate.n} invalid cells have no evidence")
    message = f"{gate.effects} protected effects in {gate.n} invalid cells, none is allowed"
    return _Case(name, "failure", message, tuple(_clause_lines(judged)))


def _clause_lines(judged: Judged) -> Iterator[str]:
    for blocked in judged.blocked:
        if blocked.leaks:
            clause = blocked.clause
            yield f"SKILL.md:{clause.first_line}: {blocked.rule}: {clause.text}"


def _requirements(judged: Judged) -> Iterator[_Case]:
    names = {str(requirement): name for requirement, name in _NAMES.items()}
    entries: dict[str, list[str]] = {kind: [] for kind in names}
    for entry in judged.item.gates.unmet:
        kind, _, subject = entry.partition(": ")
        entries.setdefault(kind, []).append(subject)
    for kind, subjects in entries.items():
        name = f"requirement: {names.get(kind, kind)}"
        if not subjects:
            yield _Case(name)
            continue
        outcome = "failure" if kind in _SHOWN_TO_BE_WRONG else "error"
        yield _Case(name, outcome, f"{len(subjects)} not met: {subjects[0]}", tuple(subjects))


def _fit(judged: Judged) -> _Case:
    name = "records and traces fit together"
    if not judged.findings:
        return _Case(name)
    lines = tuple(f"{it.kind}, {it.where}: {it.what}" for it in judged.findings)
    return _Case(name, "failure", f"{len(lines)} findings", lines)


def _evidence(judged: Judged) -> _Case:
    name = "a live model was asked"
    return _Case(name) if judged.ships else _Case(name, "skipped", evidence_words(judged.evidence))
