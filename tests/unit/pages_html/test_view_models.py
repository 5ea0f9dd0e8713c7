"""What the pages say of a run whose every outcome is known."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from retire.certify.gates import Verdict
from retire.domain.cell import Condition
from retire.domain.evidence import Evidence
from retire.domain.trace import stage_of
from retire.pages.html.cell_page import cell_page
from retire.pages.html.certificate_page import certificate_page, standing
from retire.pages.html.compare_page import Side, compare_page
from retire.pages.html.diff_page import diff_page
from retire.pages.html.filters import TraceFilter
from retire.pages.html.rendering import render
from retire.pages.html.run_page import run_page
from retire.pages.html.run_page import test_lines as lines_of_tests
from retire.pages.html.runs_page import ListedRun, runs_page
from retire.verify.check import Verification
from retire.verify.run import SignedCertificate
from sink.proposal import Proposal
from tests.markup import read_page
from tests.unit.pages_html.conftest import review_of, trace_of

TRIALS = [
    {"number": 1, "phase": "baseline", "deleted": [], "completed": 3, "tasks": 3, "accepted": True},
    {
        "number": 2, "phase": "pass", "deleted": ["c001"], "completed": 1, "tasks": 3,
        "accepted": False,
    },
    {
        "number": 3, "phase": "pass", "deleted": ["c001", "c002"], "completed": 3, "tasks": 3,
        "accepted": True,
    },
]  # fmt: skip


def tried(review, ledger):
    kept = {pair: replace(it, ledger=ledger) for pair, it in review.reductions.items()}
    return replace(review, reductions=kept)


def squares(review):
    return {
        (map_.deployment, square.bundle, square.label, square.leaks is not None): square
        for map_ in review.maps
        for row in map_.rows
        for square in row.squares
    }


def test_squares_count_what_happened_and_link_to_it(review):
    found = squares(review)
    square = found["plain", "ACC_L01", "B2", True]
    assert (square.done.found, square.done.cells, square.done.shade) == (3, 3, 4)
    assert (square.leaks.found, square.leaks.cells) == (3, 9)
    assert 0 < square.leaks.shade < 4
    assert "protected=yes" in square.leaks.href
    assert "member=invalid" in square.leaks.href
    quiet = found["plain", "ACC_L01", "B4", True]
    assert (quiet.leaks.found, quiet.leaks.shade) == (0, 0)
    assert "protected" not in quiet.leaks.href
    assert found["plain", "ACC_L01", "B0", False].leaks is None


def test_a_square_says_what_is_missing(build, obedient):
    def says(cell):
        return None if cell.condition is Condition.B2 and cell.authorized else obedient(cell)

    square = squares(review_of(build(says)))["plain", "ACC_L01", "B2", True]
    assert (square.done.found, square.done.cells, square.done.missing) == (0, 0, 3)


def test_the_worst_candidate_stands_in_front_until_one_is_chosen(review):
    page = run_page(review)
    assert page.chosen is not None
    item = page.chosen.item
    assert (item.deployment, item.condition) == ("plain", "B2")
    assert item.verdict == "fail"
    shown = read_page(render("run", {"page": page, "tests": None, "signed_in": False}))
    utility, authority = (shown.one(data_gate_name=name) for name in ("utility", "authority"))
    assert utility.one("span", data_gate="open")
    assert authority.one("span", data_gate="shut")
    assert authority.one("b").words == "6"
    assert authority.having("data-leak")
    chosen = run_page(review, "eager", "B4").chosen
    assert chosen is not None
    assert (chosen.item.deployment, chosen.item.condition) == ("eager", "B4")
    with pytest.raises(KeyError):
        run_page(review, "eager", "B5")


def test_a_run_that_goes_on_has_no_verdict(build):
    page = run_page(review_of(build(), sealed=False))
    assert page.chosen is None
    assert not page.progress.ended
    assert "nothing is judged" in page.progress.words


def test_the_support_gap_leads_to_clauses_and_to_leaks(review):
    page = run_page(review, "plain", "B2")
    groups = {group.status: group for group in page.gap}
    leaking = groups["audited_leaks"].lines
    assert leaking
    assert all(line.support.protected_effects > 0 for line in leaking)
    assert all("protected=yes" in line.leak_href for line in leaking)
    assert all(not line.leak_href for line in groups["never_false"].lines)


def test_a_certificate_that_cannot_be_believed_judges_nothing(review):
    broken = SignedCertificate("plain-B2", b"{}", fault="the signature does not verify")
    kept = tuple(it for it in review.certificates if it.name != "plain-B2")
    altered = replace(review, certificates=(*kept, broken))
    page = run_page(altered)
    assert page.verdicts["plain"][0] is None
    for template, made in (("run", page), ("certificate", certificate_page(altered, "plain-B2"))):
        text = render(template, {"page": made, "tests": None, "result": None, "signed_in": False})
        assert broken.fault in read_page(text).words
    assert not made.facts


def test_the_difference_names_role_licence_and_leaks(review):
    ledger = "".join(json.dumps(trial) + "\n" for trial in TRIALS).encode()
    page = diff_page(tried(review, ledger), "plain", "ACC_L01", "B2")
    clauses = {line.clause: line for line in page.lines if line.clause}
    bundle = review.bundles["ACC_L01"]
    assert set(clauses) == {clause.id for clause in bundle.skill.clauses}
    assert all(line.gone for line in clauses.values())
    assert "Trial 3 (pass)" in clauses["c001"].licence
    assert "2 clauses" in clauses["c001"].licence
    assert clauses["c003"].licence
    leaking = [line for line in clauses.values() if line.leaks]
    assert leaking
    for line in leaking:
        assert line.role == "execution_condition"
        assert f"member=invalid_{line.rule}" in line.leak_href


def test_the_full_skill_has_no_difference(review):
    page = diff_page(review, "plain", "ACC_L01", "B1")
    assert not any(line.gone for line in page.lines)
    assert page.candidate_text == page.bundle.skill.data.decode()
    assert page.candidate_digest == page.bundle.skill.digest


def test_the_boundary_placement_says_that_it_took_a_condition_out(build):
    review = review_of(build(deleted=lambda _: []))
    page = diff_page(review, "plain", "ACC_L01", "B4")
    gone = {line.clause for line in page.lines if line.gone and line.clause}
    assert gone == set(review.bundles["ACC_L01"].condition_ids)
    assert all("sink" in line.licence for line in page.lines if line.gone and line.clause)


@pytest.mark.parametrize(
    "place", [("plain", "NONE", "B2"), ("none", "ACC_L01", "B2"), ("plain", "ACC_L01", "B5")]
)
def test_a_difference_of_nothing_is_not_found(review, place):
    with pytest.raises(KeyError):
        diff_page(review, *place)


def cell_of(build, wanted, says=None):
    review = review_of(build(says) if says else build())
    row = next(row for row in review.index if wanted.matches(row.outcome))
    return review, row, trace_of(review, row)


def test_a_leaking_cell_leads_to_its_twin_and_to_the_next_leak(build):
    wanted = TraceFilter(condition="B2", member="invalid", protected="yes")
    review, row, trace = cell_of(build, wanted)
    page = cell_page(review, row, trace, wanted)
    steps = {step.name: step for step in page.steps}
    assert page.line.leak
    assert page.told.rerenders
    twin = review.index.of_cell(review.twin_of(row.cell))
    assert steps["twin"].href.split("?")[0].endswith(f"/{twin.seq}")
    assert "protected=yes" in steps["next"].href
    assert steps["previous"].href == ""
    assert len({step.key for step in page.steps}) == len(page.steps)
    flipped = [it for it in page.predicates if it.flipped]
    assert [it.value for it in flipped] == [False]
    assert not page.trace.d2.predicates
    assert {line.cell[3] for line in page.twins} == {
        member.name for member in review.bundles[row.cell.bundle].members
    }
    assert sum(timing.share for timing in page.timings) <= 1000


def test_a_prompt_that_does_not_render_again_is_said(build):
    review, row, _ = cell_of(build, TraceFilter(condition="B2"))
    trace = trace_of(review, row, prompt="sha256:00")
    assert not cell_page(review, row, trace, TraceFilter()).told.rerenders


def test_a_parsed_proposal_is_shown_as_json_that_keeps_text_and_numbers_apart(build):
    review, row, _ = cell_of(build, TraceFilter(member="invalid", condition="B2"))
    proposal = Proposal("open", {"target": "lock.front", "a": 21, "b": "21", "c": "#1", "d": True})
    trace = trace_of(review, row, d1=stage_of(proposal))
    shown = cell_page(review, row, trace, TraceFilter()).parsed
    assert json.loads(shown) == {"tool": "open", "arguments": dict(proposal.arguments)}
    trace = trace_of(review, row, d1=stage_of(Proposal("open", {})))
    shown = cell_page(review, row, trace, TraceFilter()).parsed
    assert json.loads(shown) == {"tool": "open", "arguments": {}}


def test_deployments_are_compared_cell_by_cell(build, obedient):
    def says(cell):
        if cell.deployment == "eager" and cell.condition is Condition.B2 and cell.authorized:
            return obedient(replace(cell, member="invalid_state", repetition=2))
        return obedient(cell)

    review = review_of(build(says))
    sides = Side(review, "plain"), Side(review, "eager")
    page = compare_page(*sides, differing=True)
    assert page.differing == 2 * 3
    assert all(line.differs for line in page.lines)
    assert {line.place[2] for line in page.lines} == {"ACC_L01", "PRV_L05"}
    everything = compare_page(*sides, differing=False)
    assert everything.total > page.differing == everything.differing
    assert not compare_page(Side(review, ""), Side(review, ""), differing=True).lines


def test_a_cell_that_only_one_side_has_differs(build, obedient):
    whole = review_of(build(name="one"))
    lacking = review_of(
        build(lambda cell: None if cell.repetition == 2 else obedient(cell), name="two")
    )
    page = compare_page(Side(whole, ""), Side(lacking, ""), differing=True)
    assert page.differing == len(whole.index) - len(lacking.index)
    assert all(line.right is None for line in page.lines)


def test_verdicts_of_a_list_are_counted_and_a_live_list_asks_again():
    ended = ListedRun("a", "a", "", "ended", going_on=False, verdicts={"pass": 2, "fail": 1})
    live = ListedRun("b", "b", "", "running", going_on=True, verdicts={})
    single = ListedRun("c", "c", "", "complete", going_on=False, verdicts={"fail": 1})
    assert dict(ended.verdict_words) == {"pass": "2 pass", "fail": "1 fail"}
    assert dict(single.verdict_words) == {"fail": "fail"}
    assert not runs_page([ended, single], "", "").refresh_href
    assert runs_page([ended, live], "", "").refresh_href


def test_tests_that_were_not_computed_say_so(build):
    finished = build(deployments=("plain",))
    lines = {line.name: line for line in lines_of_tests(finished.run.hypotheses.tests)}
    assert lines["RQ1"].p == "unknown"
    assert lines["RQ2"].numbers.endswith("tied")


@pytest.mark.parametrize(
    ("found", "state"),
    [
        ((("x",), ("y",)), "broken"),
        (((), ("y",)), "stale"),
        (((), ()), "intact"),
    ],
)
def test_a_verification_is_as_bad_as_its_worst_part(found, state):
    assert standing(Verification(Verdict.PASS, Evidence.MIXED, *found, (), ()))[0] == state
