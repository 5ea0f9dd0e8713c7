"""What build servers and pull requests show of a certificate, whatever the words contain."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import PurePosixPath
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from retire.certify.certificate import Certificate
from retire.certify.gates import Requirement
from retire.certify.joining import Finding
from retire.certify.support import Support
from retire.domain.cell import Condition
from retire.domain.document import as_document
from retire.domain.errors import InputError
from retire.pages.exports import junit_xml, markdown_comment, sarif_log
from retire.pages.words import certify_words, stated_leaks, told_words

HOSTILE = (
    "x\r\n\x1b]0;owned\x07\x1b[2J\u202e\ufffe`` ` <b>&amp;]]> [a](http://evil.example) @everyone "
    "closes #1 {0} ![i](http://evil.example/i.png) \\ | --> \u2028## PASS"
)
PATH = PurePosixPath("bundles/my skill/SKILL.md")


@pytest.fixture
def one(build):
    def make(*args, **kwargs):
        return build(*args, bundles=("PRV_L05",), deployments=("plain",), **kwargs)

    return make


def certified(finished, condition):
    return next(it for it in finished.certificates if it.condition is condition)


def parts(finished, condition=Condition.B2):
    return certified(finished, condition), finished.run.bundles["PRV_L05"].skill


def sarif(certificate, skill):
    return sarif_log(certificate, skill, PATH)


def parsed(xml):
    return ET.fromstring(xml)  # noqa: S314  # our own words, just written


def cases(xml):
    return {case.get("name"): case for case in parsed(xml).iter("testcase")}


def outcome(case):
    return next((child.tag for child in case), "passed")


def forgetting(obedient):
    def says(cell):
        gone = str(cell.condition) == "B4" and cell.member == "invalid_state"
        return None if gone else obedient(cell)

    return says


def losing(obedient):
    """No authorized request succeeds under B4."""

    def says(cell):
        if str(cell.condition) == "B4" and cell.authorized:
            return obedient(replace(cell, member="invalid_state"))
        return obedient(cell)

    return says


@pytest.mark.parametrize("condition", [Condition.B2, Condition.B4])
def test_the_words_need_no_run_once_there_is_a_certificate(one, condition):
    finished = one()
    certificate = certified(finished, condition)
    traces = {}
    for row in finished.run.traces:
        cell = row.body.cell.cell
        if row.body.d3.protected and cell.condition is condition and not cell.authorized:
            traces.setdefault((cell.bundle, cell.member), row.body)
    place = str(finished.run.folder.certificates)
    words = told_words(certificate, finished.run.bundles, stated_leaks(certificate, traces), place)
    assert words == certify_words(finished, condition, "plain")


def test_junit_has_a_case_for_each_gate_requirement_and_leaking_member(one):
    finished = one()
    certificate, skill = parts(finished)
    bundle = finished.run.bundles["PRV_L05"]
    found = cases(junit_xml(certificate, skill))
    requirements = [name for name in found if name.startswith("requirement")]
    assert len(requirements) == len(Requirement)
    assert all(outcome(found[name]) == "passed" for name in requirements)
    assert outcome(found["utility gate"]) == "passed"
    assert outcome(found["authority gate"]) == "failure"
    leaking = [name for name in found if name.startswith("no protected effect")]
    members = [member.name for member in bundle.members if member.path]
    assert sorted(name.split(": ")[1] for name in leaking) == sorted(members)
    assert all(outcome(found[name]) == "failure" for name in leaking)


def test_junit_totals_are_those_of_the_cases(one):
    root = parsed(junit_xml(*parts(one())))
    outcomes = [outcome(case) for case in root.iter("testcase")]
    for element in (root, root[0]):
        assert int(element.get("tests")) == len(outcomes)
        assert int(element.get("failures")) == outcomes.count("failure")
        assert int(element.get("errors")) == outcomes.count("error")
        assert int(element.get("skipped")) == outcomes.count("skipped")


def test_junit_of_a_pass_on_simulated_evidence_skips_one_case_and_fails_none(one):
    found = cases(junit_xml(*parts(one(), Condition.B4)))
    outcomes = sorted(outcome(case) for case in found.values())
    assert set(outcomes) == {"passed", "skipped"}
    assert outcomes.count("skipped") == 1


def test_junit_calls_missing_evidence_an_error_and_a_lost_gate_a_failure(one, obedient):
    found = cases(junit_xml(*parts(one(forgetting(obedient)), Condition.B4)))
    assert outcome(found["authority gate"]) == "error"
    assert "failure" not in {outcome(case) for case in found.values()}
    found = cases(junit_xml(*parts(one(losing(obedient), name="lost"), Condition.B4)))
    assert outcome(found["utility gate"]) == "failure"


def test_sarif_points_at_the_text_of_each_clause_that_may_not_go(one):
    finished = one()
    certificate, skill = parts(finished)
    run = sarif_log(certificate, skill, PATH)["runs"][0]
    lines = skill.data.decode().splitlines()
    blocked = {
        entry.clause: entry
        for entry in certificate.conditions
        if str(entry.status) in {"never_false", "audited_leaks", "audited_incomplete"}
    }
    assert blocked
    assert len(run["results"]) == len(blocked)
    for result in run["results"]:
        place = result["locations"][0]
        region = place["physicalLocation"]["region"]
        clause = skill.clause(place["logicalLocations"][0]["name"])
        assert (region["startLine"], region["endLine"]) == (clause.first_line, clause.last_line)
        picked = lines[region["startLine"] - 1 : region["endLine"]]
        picked[-1] = picked[-1][: region["endColumn"] - 1]
        picked[0] = picked[0][region["startColumn"] - 1 :]
        assert "\n".join(picked) == clause.text
        entry = blocked[clause.id]
        assert result["ruleId"] == (entry.predicate or str(entry.kind))
        assert result["level"] == ("error" if str(entry.status) == "audited_leaks" else "warning")
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_sarif_warns_of_what_nothing_tested(one):
    certificate, skill = parts(one())
    changed = certificate.as_json()
    for entry in changed["predicate"]["support_gap"]:
        if entry["role"] == "execution_condition":
            entry["status"] = str(Support.NEVER_FALSE)
    log = sarif_log(as_document(Certificate, changed), skill, PATH)
    levels = {it["level"] for it in log["runs"][0]["results"]}
    assert levels == {"warning"}


def test_sarif_of_a_candidate_that_only_lost_guidance_has_no_result(one):
    def guidance(bundle):
        conditions = set(bundle.condition_ids)
        return [clause.id for clause in bundle.skill.clauses if clause.id not in conditions]

    assert sarif_log(*parts(one(deleted=guidance)), PATH)["runs"][0]["results"] == []


def test_sarif_has_the_parts_that_its_schema_requires(one, obedient):
    log = sarif_log(*parts(one(forgetting(obedient)), Condition.B4), PATH)
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    assert run["tool"]["driver"]["name"]
    assert run["columnKind"] in {"utf16CodeUnits", "unicodeCodePoints"}
    identifiers = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(identifiers)) == len(identifiers)
    invocation = run["invocations"][0]
    assert invocation["executionSuccessful"] is False
    for note in (*invocation["toolExecutionNotifications"], *run["results"]):
        assert note["level"] in {"none", "note", "warning", "error"}
        assert note["message"]["text"]


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("bundles/my skill/SKILL.md", ("bundles/my%20skill/SKILL.md", "%SRCROOT%")),
        ("/srv/a b/SKILL.md", ("file:///srv/a%20b/SKILL.md", None)),
    ],
)
def test_sarif_names_the_full_skill_by_an_encoded_address(one, path, location):
    run = sarif_log(*parts(one()), PurePosixPath(path))["runs"][0]
    for named in (
        run["artifacts"][0]["location"],
        run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"],
    ):
        assert (named["uri"], named.get("uriBaseId")) == location


@pytest.fixture
def hostile(one):
    def change(bundle):
        clauses = tuple(replace(clause, text=HOSTILE) for clause in bundle.skill.clauses)
        return replace(bundle, skill=replace(bundle.skill, clauses=clauses))

    findings = tuple(Finding.of("kind", HOSTILE, HOSTILE) for _ in range(40))
    return parts(one(change=change, findings=findings))


def test_hostile_words_stay_text_in_junit(hostile):
    xml = junit_xml(*hostile)
    root = parsed(xml)
    assert {element.tag for element in root.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "error",
        "skipped",
    }  # fmt: skip
    text = xml.decode()
    assert all(c == "\n" or not unicodedata.category(c).startswith("C") for c in text)
    assert "@everyone" in "".join(root.itertext())


def test_hostile_words_stay_text_in_sarif(hostile):
    run = sarif_log(*hostile, PATH)["runs"][0]
    notes = run["invocations"][0]["toolExecutionNotifications"]
    for entry in (*run["results"], *notes):
        text = entry["message"]["text"]
        assert not any(unicodedata.category(c).startswith("C") for c in text)
        bare = text.replace("\\\\", "").replace("\\[", "").replace("\\]", "")
        assert not set("[]") & set(bare)
        assert not set("{}") & set(bare.replace("{{", "").replace("}}", ""))


def test_hostile_words_stay_code_in_markdown(hostile):
    text = markdown_comment(*hostile)
    assert all(c == "\n" or not unicodedata.category(c).startswith("C") for c in text)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).enable("table").parse(text)
    kinds = {child.type for token in tokens for child in token.children or ()}
    kinds |= {token.type for token in tokens}
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "fence"}
    words = [c.content for t in tokens for c in t.children or () if c.type == "text"]
    assert not any("@" in word or "#1" in word or "evil" in word for word in words)
    assert any("@everyone" in c.content for t in tokens for c in t.children or ())
    headings = [token for token in tokens if token.type == "heading_open"]
    assert sum(token.tag == "h2" for token in headings) == 1
    assert len(text) < 65_000


def test_markdown_says_the_verdict_the_counts_and_where(one):
    finished = one()
    certificate, skill = parts(finished)
    text = markdown_comment(certificate, skill)
    assert text.startswith("## FAIL")
    assert "3 protected effects in 9 invalid cells" in text
    for entry in certificate.conditions:
        if entry.status is Support.AUDITED_LEAKS:
            assert f"line {skill.clause(entry.clause).first_line}, `{entry.predicate}`" in text
    assert markdown_comment(*parts(finished, Condition.B4)).startswith("## PASS")


@pytest.mark.parametrize("form", [junit_xml, markdown_comment, sarif])
def test_another_skill_is_refused(build, form):
    finished = build()
    one_of_two = finished.certificates[0]
    skills = [bundle.skill for bundle in finished.run.bundles.values()]
    with pytest.raises(InputError, match="2 bundles"):
        form(one_of_two, skills[0])
    single = build(bundles=("PRV_L05",), deployments=("plain",), name="single")
    with pytest.raises(InputError, match="another full skill"):
        form(single.certificates[0], finished.run.bundles["ACC_L01"].skill)


@pytest.mark.parametrize("form", [junit_xml, markdown_comment, sarif])
def test_a_clause_that_the_skill_does_not_have_is_refused(one, form):
    certificate, skill = parts(one())
    changed = certificate.as_json()
    for entry in changed["predicate"]["support_gap"]:
        entry["clause"] = "c999"
    with pytest.raises(InputError, match="c999"):
        form(as_document(Certificate, changed), skill)
