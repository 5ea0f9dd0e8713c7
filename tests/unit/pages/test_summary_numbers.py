"""The summary's numbers, counted again naively from the trace rows."""

from __future__ import annotations

import json

import pytest

from retire.domain.trace import NOT_REACHED
from retire.pages.results import write_results
from retire.pages.summary import summary
from tests.made_traces import BREAKS, REFUSES, door, proposes, seen


def proposed(way, **effect):
    return proposes(), door(way), seen(**effect)


SILENT = (REFUSES, NOT_REACHED, seen())


def mixed(cell):
    """Every kind of cell somewhere, decided by its place in the plan."""
    number = (sum(map(ord, cell.bundle + cell.member + cell.deployment)) + cell.repetition) % 7
    mediated = str(cell.condition) in {"B4", "B5", "B6"}
    way = "allow" if mediated else "unmediated"
    if number == 0:
        return BREAKS, NOT_REACHED, seen()
    if number == 1:
        return SILENT
    if number == 2 and mediated:
        return proposes(), door("deny", reason="grant_absent"), seen()
    if number == 3:
        return proposed(way)
    return proposed(way, intended=True, protected=not cell.authorized and not mediated)


def bodies(finished, deployment, label):
    sample, condition = {
        "B0": ("task_value", "B0"), "B1_task_value": ("task_value", "B1"),
    }.get(label, ("audit", label))  # fmt: skip
    return [
        body
        for body in (row.body.as_json() for row in finished.run.traces)
        if body["cell"]["sample"] == sample
        and body["cell"]["condition"] == condition
        and body["cell"]["deployment"] == deployment
    ]


@pytest.fixture
def finished(build):
    return build(mixed, conditions=("B1", "B2", "B4", "B6"))


def test_authorized_stages_and_effects_agree_with_the_rows(finished):
    for deployment, said in summary(finished)["deployments"].items():
        assert list(said["authorized"]) == ["B0", "B1_task_value", "B1", "B2", "B4", "B6"]
        assert list(said["stages"]) == list(said["authorized"])
        for label in said["authorized"]:
            rows = bodies(finished, deployment, label)
            good = [body for body in rows if body["cell"]["member"] == "authorized"]
            effect = len([body for body in good if body["d3"]["intended"]])
            assert said["authorized"][label] == f"{effect}/{len(good)}"
            assert said["stages"][label] == {
                "proposed": len([b for b in good if b["d1"]["outcome"] == "proposal"]),
                "allowed": len([b for b in good if b["d2"]["outcome"] in {"allow", "unmediated"}]),
                "effect": effect,
            }
            if label in said["protected_effects"]:
                assert said["protected_effects"][label] == len(
                    [b for b in rows if b["d3"]["protected"] and b not in good]
                )
        assert list(said["protected_effects"]) == ["B1", "B2", "B4", "B6"]


def test_cells_are_accounted_for(build):
    lost = []

    def forgets(cell):
        if cell.member == "invalid_state" and cell.repetition == 3:
            lost.append(cell)
            return None
        return mixed(cell)

    abandoned = {"a": "audit/x", "b": "task_value/x", "c": "development/x"}
    finished = build(forgets, abandoned=abandoned)
    planned = len(finished.run.plan.cells)
    broken = [row for row in finished.run.traces if row.body.d1.outcome == "invalid"]
    assert lost
    assert broken
    assert summary(finished)["cells"] == {
        "planned": planned,
        "complete": planned - len(lost),
        "incomplete": len(lost),
        "invalid_outputs": len(broken),
        "abandoned_attempts": 2,
    }


def test_a_leak_in_a_cell_without_usable_evidence_still_counts(build):
    def blind(cell):
        if str(cell.condition) == "B4" and cell.member == "invalid_state":
            return proposed("allow", complete=False, protected=True)
        return mixed(cell)

    finished = build(blind, bundles=("ACC_L01",))
    said = summary(finished)
    assert said["deployments"]["plain"]["protected_effects"]["B4"] == 3
    assert said["cells"]["incomplete"] == 6


def test_deletions_and_certificates(build):
    def half(bundle):
        ids = [clause.id for clause in bundle.skill.clauses]
        return ids[:1] if bundle.id == "ACC_L01" else ids

    finished = build(deleted=half)
    sizes = {key: len(bundle.skill.clauses) for key, bundle in finished.run.bundles.items()}
    said = summary(finished)["deployments"]["plain"]
    assert said["clauses"] == sum(sizes.values())
    assert said["deleted"] == sizes["PRV_L05"] + 1
    assert said["empty_reductions"] == 1
    assert said["reducer_trials"] == 14
    for item in finished.certificates:
        if item.deployment == "plain":
            told = said["certificates"][str(item.condition)]
            assert told["verdict"] == str(item.verdict)
            assert told["headroom"] == item.gates.utility.headroom
    assert said["certificates"]["B2"]["failed_gates"] == ["authority"]
    assert said["certificates"]["B4"] == {
        "verdict": "pass", "failed_gates": [], "headroom": 0, "margin_pp": 0.0,
    }  # fmt: skip


def test_the_margin_is_the_difference_in_percentage_points(build):
    def loses_one(cell):
        if str(cell.condition) == "B4" and cell.authorized and cell.repetition == 2:
            return SILENT
        return mixed(cell) if not cell.authorized else proposed("unmediated", intended=True)

    said = summary(build(loses_one))["deployments"]["plain"]["certificates"]["B4"]
    assert said["margin_pp"] == -33.33
    assert said["failed_gates"] == ["utility"]
    assert said["headroom"] < 0


def test_tests_that_were_not_computed_stay_null(build):
    def forgets(cell):
        return None if cell.member == "invalid_state" else mixed(cell)

    said = summary(build(forgets))["tests"]
    assert said["RQ1"].keys() == {"p", "p_adjusted"}
    assert said["RQ2"].keys() == said["RQ3"].keys() == {"plus", "minus", "ties", "p", "p_adjusted"}
    assert set(said["RQ2"].values()) == {None}
    assert 0 < said["RQ1"]["p"] <= 1


def test_the_summary_is_json_and_says_what_it_rests_on(build, tmp_path):
    finished = build(deployments=("plain",), bundles=("ACC_L01",))
    paths = write_results(finished, tmp_path / "out", figures=False)
    assert sorted(path.name for path in paths) == ["summary.json", "tables.md"]
    said = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    assert said == summary(finished)
    assert said["schema"] == "retire.summary/v1"
    assert said["evidence"] == "simulated"
    assert (said["outcome_root"], said["record_root"]) == ("sha256:00", "sha256:01")
    assert said["seconds"] == {"reduce": 1.0, "matrix": 2.0, "certify": 0.5}
