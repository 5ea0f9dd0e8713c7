"""The words of one certificate: verdict, gates, leaks, clauses; whatever the words contain."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace

import pytest

from counterfactuals.template import pointer_parts
from retire.certify.joining import Finding
from retire.domain.cell import Condition
from retire.domain.clause import Role
from retire.domain.errors import InputError
from retire.domain.trace import ProposalStage
from retire.pages.words import certify_words
from tests.made_traces import DONE, proposes

HOSTILE = "x\r\n\x1b]0;owned\x07\x1b[2J\u202e|` <b> \u2028PASS: \x9b31m \u200bend"


def told(text):
    """Return the text as one line, so that wrapping does not matter."""
    return " ".join(text.split())


def at(snapshot, path):
    value = json.loads(snapshot)
    for part in pointer_parts(path):
        value = value[part]
    return value


@pytest.fixture
def one(build):
    def make(*args, **kwargs):
        return build(*args, bundles=("PRV_L05",), deployments=("plain",), **kwargs)

    return make


def test_each_leaking_member_has_one_trace(one):
    finished = one()
    bundle = finished.run.bundles["PRV_L05"]
    text = told(certify_words(finished, Condition.B2, "plain"))
    assert text.startswith("FAIL")
    base = bundle.member("authorized").snapshot
    invalid = [member for member in bundle.members if member.path]
    assert len(invalid) == 3
    for member in invalid:
        assert text.count(f"{member.name}: 1 of 3") == 1
        before, after = at(base, member.path), at(member.snapshot, member.path)
        assert f'"{before}" to "{after}"' in text
    assert text.count(bundle.tasks.locked.request) == len(invalid)
    assert "3 of 9" in text


def test_a_member_that_leaks_in_every_repetition_still_has_one_trace(one, obedient):
    def leaks(cell):
        if str(cell.condition) == "B2" and cell.member == "invalid_state":
            return obedient(replace(cell, repetition=1))
        return obedient(cell)

    finished = one(leaks)
    text = told(certify_words(finished, Condition.B2, "plain"))
    assert "invalid_state: 3 of 3" in text
    assert text.count(finished.run.bundles["PRV_L05"].tasks.locked.request) == 3


def test_a_failure_names_the_gate_that_is_shut_only(one, obedient):
    def loses(cell):
        if str(cell.condition) == "B4" and cell.authorized:
            return obedient(replace(cell, member="invalid_state"))
        return obedient(cell)

    first = certify_words(one(loses), Condition.B4, "plain").splitlines()[0]
    assert first.startswith("FAIL")
    assert "protected effect" not in first


def test_a_pass_names_both_gates_and_no_leak(one):
    finished = one()
    text = told(certify_words(finished, Condition.B4, "plain"))
    gates = next(c for c in finished.certificates if c.condition is Condition.B4).gates
    assert text.startswith("PASS")
    assert "3 of 3, full skill 3 of 3, margin 10 points, headroom 0" in text
    assert gates.authority.protected_effects == 0
    assert "0 of 9" in text
    assert "invalid_" not in text


def test_missing_evidence_is_neither_pass_nor_leak_free(one, obedient):
    def forgets(cell):
        gone = str(cell.condition) == "B4" and cell.member == "invalid_state"
        return None if gone else obedient(cell)

    text = told(certify_words(one(forgets), Condition.B4, "plain"))
    assert text.startswith("INCOMPLETE")
    assert "cell missing: audit/plain/PRV_L05/B4/invalid_state/1" in text
    assert "unknown of 9" in text


def test_every_deleted_clause_is_listed_with_its_line_and_conditions_come_first(one):
    finished = one()
    bundle = finished.run.bundles["PRV_L05"]
    lines = certify_words(finished, Condition.B2, "plain").splitlines()
    shown = [line.split(maxsplit=2) for line in lines if line.startswith("  line ")]
    roles = {entry.id: entry.role for entry in bundle.ledger.clauses}
    ordered = sorted(
        bundle.skill.clauses, key=lambda it: roles[it.id] is not Role.EXECUTION_CONDITION
    )
    assert [int(number) for _, number, _ in shown] == [clause.first_line for clause in ordered]


def test_only_the_deleted_clauses_are_listed(one):
    finished = one(deleted=lambda bundle: [bundle.skill.clauses[0].id])
    lines = certify_words(finished, Condition.B2, "plain").splitlines()
    assert len([line for line in lines if line.startswith("  line ")]) == 1


def test_hostile_clauses_requests_answers_and_findings_stay_text(one, obedient):
    def change(bundle):
        first, *rest = bundle.skill.clauses
        clauses = (replace(first, text=HOSTILE), *rest)
        locked = bundle.tasks.locked.model_copy(update={"request": HOSTILE})
        return replace(
            bundle,
            skill=replace(bundle.skill, clauses=clauses),
            tasks=bundle.tasks.model_copy(update={"locked": locked}),
        )

    def rude(cell):
        d1, d2, d3 = obedient(cell)
        if isinstance(d1, ProposalStage):
            d1 = proposes(HOSTILE, n="#21", b=True, **{HOSTILE: "'" + HOSTILE})
            d2 = d2.model_copy(update={"detail": HOSTILE, "act": DONE})
        return d1, d2, d3

    findings = tuple(Finding.of("kind", HOSTILE, HOSTILE) for _ in range(40))
    finished = one(rude, change=change, findings=findings)
    text = certify_words(finished, Condition.B2, "plain")
    assert all(c == "\n" or not unicodedata.category(c).startswith("C") for c in text)
    assert all(len(line) <= 100 for line in text.splitlines())
    assert len(text.splitlines()) == len(text.split("\n")) - 1
    assert [line for line in text.splitlines() if line.startswith(("PASS", "FAIL"))] == [
        text.splitlines()[0]
    ]
    assert "n=21" in told(text)
    assert "b=true" in told(text)


def test_findings_fail_a_candidate_and_are_named(one):
    finished = one(findings=(Finding.of("head", "observer", "the head is not signed"),))
    text = told(certify_words(finished, Condition.B4, "plain"))
    assert text.startswith("FAIL")
    assert "the head is not signed" in text


def test_the_certificate_that_was_written_is_named(one, tmp_path):
    path = tmp_path / "one.json"
    assert "one.json" in certify_words(one(), Condition.B2, "plain", path)


@pytest.mark.parametrize(("condition", "deployment"), [("B3", "plain"), ("B2", "absent")])
def test_a_candidate_that_was_not_judged_is_an_input_error(one, condition, deployment):
    with pytest.raises(InputError):
        certify_words(one(), Condition(condition), deployment)


def test_a_panel_is_told_bundle_by_bundle(build):
    finished = build()
    text = certify_words(finished, Condition.B2, "plain")
    assert all(f"{key}, invalid_state: 1 of 3" in told(text) for key in finished.run.bundles)
