"""A certificate as a SARIF 2.1.0 log whose results point at the clauses that may not go. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from retire.certify.gates import Verdict
from retire.pages.deleted import support_words
from retire.pages.exports.subject import blocked_clauses, bundle_of
from retire.pages.phrases import evidence_words
from retire.pages.text import plain, quoted
from retire.pages.verdict import finding_words, utility_lost

if TYPE_CHECKING:
    from pathlib import PurePath

    from retire.certify.certificate import Certificate
    from retire.domain.clause import Clause
    from retire.pages.exports.subject import Blocked
    from retire.skill import SkillDocument

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LINE = re.compile(r"\r\n|\r|\n")
_ESCAPES = {"{": "{{", "}": "}}", "[": "\\[", "]": "\\]", "\\": "\\\\"}


def sarif_log(certificate: Certificate, skill: SkillDocument, path: PurePath) -> dict[str, Any]:
    """Return a certificate as a SARIF log.

    A clause whose removal leaked is an ``error``; one whose removal nothing tested is a
    ``warning``. What is no clause's fault (a shut utility gate, missing evidence) stands in the
    notifications of the invocation.

    Args:
        certificate: The certificate.
        skill: The full skill it is about.
        path: The full ``SKILL.md``, relative to the root of the sources or absolute.

    Raises:
        InputError: It is not about this skill.
    """
    bundle = bundle_of(certificate, skill)
    blocked = blocked_clauses(certificate, skill)
    rules = sorted({it.rule for it in blocked})
    run = {
        "tool": {"driver": {"name": "retire", "rules": [_rule(name) for name in rules]}},
        "invocations": [
            {
                "executionSuccessful": certificate.verdict is not Verdict.INCOMPLETE,
                "toolExecutionNotifications": _notifications(certificate),
            }
        ],
        "artifacts": [{"location": _artifact(path), "roles": ["analysisTarget"]}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(certificate, it, rules.index(it.rule), skill, path) for it in blocked],
        "properties": {
            "verdict": str(certificate.verdict),
            "evidence": str(certificate.evidence),
            "bundle": bundle,
            "deployment": plain(certificate.deployment),
            "condition": str(certificate.condition),
            "planDigest": certificate.predicate.plan.digest,
        },
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _message(text: str) -> dict[str, str]:
    """Return a message; braces and brackets are escaped (SARIF 2.1.0, sections 3.11.5, 3.11.6)."""
    return {"text": "".join(_ESCAPES.get(character, character) for character in plain(text))}


def _rule(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "shortDescription": _message(f"Execution condition: {name}"),
        "fullDescription": _message(
            f"A clause that states the execution condition {name} may go only when an audit in "
            "which it is false saw no protected effect."
        ),
    }


def _result(
    certificate: Certificate, blocked: Blocked, index: int, skill: SkillDocument, path: PurePath
) -> dict[str, Any]:
    start = "Its removal leaks. " if blocked.leaks else "Nothing shows that it may go. "
    said = f"{quoted(blocked.clause.text)} {start}{support_words(blocked.support)}"
    return {
        "ruleId": blocked.rule,
        "ruleIndex": index,
        "level": "error" if blocked.leaks else "warning",
        "kind": "fail",
        "message": _message(
            f"{said} Deployment {certificate.deployment}, {certificate.condition}."
        ),
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {**_artifact(path), "index": 0},
                    "region": _region(skill, blocked.clause),
                },
                "logicalLocations": [{"name": blocked.clause.id, "kind": "member"}],
            }
        ],
        "partialFingerprints": {"clauseDigest/v1": blocked.clause.digest},
    }


def _region(skill: SkillDocument, clause: Clause) -> dict[str, int]:
    before = skill.data[: clause.start].decode("utf-8")
    text = skill.data[clause.start : clause.end].decode("utf-8")
    start = len(_LINE.split(before)[-1]) + 1
    lines = _LINE.split(text)
    return {
        "startLine": clause.first_line,
        "startColumn": start,
        "endLine": clause.last_line,
        "endColumn": len(lines[-1]) + (start if len(lines) == 1 else 1),
    }


def _artifact(path: PurePath) -> dict[str, Any]:
    if path.is_absolute():
        return {"uri": f"file://{quote(path.as_posix())}"}
    return {"uri": quote(path.as_posix()), "uriBaseId": "%SRCROOT%"}


def _notifications(certificate: Certificate) -> list[dict[str, Any]]:
    predicate, evidence = certificate.predicate, certificate.evidence
    level = "error" if certificate.verdict is not Verdict.PASS else "note"
    notes = [(level, f"Verdict: {certificate.verdict}.")]
    if lost := utility_lost(certificate):
        notes.append(("error", lost))
    notes += [("error", f"Not met: {entry}") for entry in predicate.unmet]
    notes += [("error", finding_words(it)) for it in predicate.findings]
    if not evidence.ships:
        notes.append(("warning", evidence_words(evidence)))
    return [{"level": level, "message": _message(text)} for level, text in notes]
