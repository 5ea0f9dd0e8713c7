"""A certificate as a SARIF 2.1.0 log whose results point at the clauses that may not go. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from retire.certify.gates import Verdict
from retire.pages.deleted import support_words
from retire.pages.exports.reading import read_judged
from retire.pages.phrases import evidence_words
from retire.pages.text import plain, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePath

    from retire.domain.clause import Clause
    from retire.pages.exports.reading import Blocked, Judged
    from retire.skill import SkillDocument

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LINE = re.compile(r"\r\n|\r|\n")
_ESCAPES = {"{": "{{", "}": "}}", "[": "\\[", "]": "\\]", "\\": "\\\\"}


def sarif_log(statement: Mapping[str, Any], skill: SkillDocument, path: PurePath) -> dict[str, Any]:
    """Return a certificate as a SARIF log.

    A clause whose removal leaked is an ``error``; one whose removal nothing tested is a
    ``warning``. What is no clause's fault (a shut utility gate, missing evidence) stands in the
    notifications of the invocation.

    Args:
        statement: The signed in-toto Statement.
        skill: The full skill it is about.
        path: The full ``SKILL.md``, relative to the root of the sources or absolute.

    Raises:
        InputError: Not a statement about this skill.
    """
    judged = read_judged(statement, skill)
    rules = sorted({blocked.rule for blocked in judged.blocked})
    run = {
        "tool": {
            "driver": {
                "name": "retire",
                "rules": [_rule(name) for name in rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": judged.verdict is not Verdict.INCOMPLETE,
                "toolExecutionNotifications": _notifications(judged),
            }
        ],
        "artifacts": [{"location": _artifact(path), "roles": ["analysisTarget"]}],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(judged, blocked, rules.index(blocked.rule), skill, path)
            for blocked in judged.blocked
        ],
        "properties": {
            "verdict": str(judged.verdict),
            "evidence": judged.evidence,
            "bundle": judged.bundle,
            "deployment": plain(judged.deployment),
            "condition": str(judged.condition),
            "planDigest": judged.plan_digest,
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
    judged: Judged, blocked: Blocked, index: int, skill: SkillDocument, path: PurePath
) -> dict[str, Any]:
    start = "Its removal leaks. " if blocked.leaks else "Nothing shows that it may go. "
    said = f"{quoted(blocked.clause.text)} {start}{support_words(blocked.support)}"
    return {
        "ruleId": blocked.rule,
        "ruleIndex": index,
        "level": "error" if blocked.leaks else "warning",
        "kind": "fail",
        "message": _message(f"{said} Deployment {judged.deployment}, {judged.condition}."),
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


def _notifications(judged: Judged) -> list[dict[str, Any]]:
    gates = judged.item.gates
    level = "error" if judged.verdict is not Verdict.PASS else "note"
    notes = [(level, f"Verdict: {judged.verdict}.")]
    if not gates.utility.passes and gates.utility.difference is not None:
        counts = f"{gates.utility.candidate} of {gates.utility.n}, full skill {gates.utility.full}"
        notes.append(("error", f"The utility gate is shut: {counts} authorized requests."))
    notes += [("error", f"Not met: {entry}") for entry in gates.unmet]
    notes += [("error", f"{it.kind}, {it.where}: {it.what}") for it in judged.findings]
    if not judged.ships:
        notes.append(("warning", evidence_words(judged.evidence)))
    return [{"level": level, "message": _message(text)} for level, text in notes]
