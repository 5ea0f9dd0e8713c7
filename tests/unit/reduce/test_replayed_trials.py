"""The trial ledger of a reduction gives the reduction again, or verify says in which line not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from retire.matrix import Protocol
from retire.reduce import Strategy, TrialResult, search
from retire.runner.reducing import FoundReduction, GivenReduction, KeptReduction, development_key
from retire.skill import render
from retire.verify.recompute import kept_problems
from retire.wiring import Request, prepare

PANEL = Path(__file__).parents[3] / "bundles" / "panel"
PAIR = ("plain", "PRV_L05")


class Made:
    """A reduction as a run leaves it; tasks need the second and the fifth clause."""

    def __init__(self, strategy, root):
        protocol = Protocol(
            schema="retire.protocol/v1", name="made", seed=1, bundles=("PRV_L05",),
            deployments=("plain",), conditions=("B1", "B2"), reducer=strategy,
        )  # fmt: skip
        request = Request(protocol, {"PRV_L05": PANEL / "PRV_L05"}, root)
        self.prepared = prepare(request)
        self.bundle = self.prepared.bundles["PRV_L05"]
        self.tasks = self.bundle.development_view().tasks
        self.sighted = {}
        self.reduction = self._search(strategy)
        self.lines = [json.dumps(trial.as_json()) for trial in self.reduction.trials]
        self.described = FoundReduction.of(self.reduction)

    def _search(self, strategy):
        clauses = [clause.id for clause in self.bundle.skill.clauses]
        asking = search(Strategy(strategy), clauses, self.prepared.plan.protocol.margin)
        deleted = next(asking)
        while True:
            done = not deleted & {clauses[1], clauses[4]}
            text = render(self.bundle.skill, deleted)
            for task in self.tasks:
                self.sighted[development_key("plain", self.bundle.id, task.id, text)] = [done]
            try:
                deleted = asking.send(TrialResult(len(self.tasks) * done, len(self.tasks)))
            except StopIteration as end:
                return end.value

    def problems(self, lines=None, described=None, plan=None):
        ledger = "".join(f"{line}\n" for line in self.lines if lines is None)
        ledger += "".join(f"{line}\n" for line in lines or ())
        text = render(self.bundle.skill, self.reduction.deleted)
        kept = KeptReduction(described or self.described, text, ledger.encode())
        return self.of(kept, plan)

    def of(self, kept, plan=None):
        plan = plan or self.prepared.plan
        bundles = self.prepared.bundles
        return list(kept_problems(plan, bundles, {PAIR: kept}, self.sighted))

    def changed(self, number, /, **values):
        lines = list(self.lines)
        lines[number - 1] = json.dumps({**json.loads(lines[number - 1]), **values})
        return lines


@pytest.fixture(params=["one-at-a-time", "halving"])
def made(request, tmp_path):
    return Made(request.param, tmp_path)


def test_what_a_run_left_is_without_fault(made):
    assert made.reduction.deleted
    assert made.problems() == []


def place(problems):
    (problem,) = problems
    return problem.split(": ")[0].removeprefix("reductions/plain/PRV_L05/")


def test_a_line_is_named_that_is_damaged_missing_or_too_many(made):
    lines = made.lines
    count = len(lines)
    assert place(made.problems([*lines[:2], "{torn", *lines[3:]])) == "trials.jsonl:3"
    assert place(made.problems([*lines[:2], "[" * 100_000, *lines[3:]])) == "trials.jsonl:3"
    assert place(made.problems([*lines[:2], *lines[3:]])) == "trials.jsonl:3"
    assert place(made.problems([*lines[:1], lines[2], lines[1], *lines[3:]])) == "trials.jsonl:2"
    assert place(made.problems(lines[:-1])) == f"trials.jsonl:{count}"
    assert place(made.problems([*lines, lines[-1]])) == f"trials.jsonl:{count + 1}"
    assert place(made.problems([])) == "trials.jsonl:1"


@pytest.mark.parametrize(
    "values",
    [
        {"number": 9},
        {"phase": "other"},
        {"accepted": None},
        {"tasks": 99},
        {"note": "added"},
        {"completed": True},
        {"completed": 99},
        {"deleted": ["c999"]},
        {"deleted": "c001"},
    ],
)
def test_a_line_is_named_that_was_altered(made, values):
    assert place(made.problems(made.changed(2, **values))) == "trials.jsonl:2"


def test_a_result_that_changes_no_decision_is_held_against_the_observer(made):
    rejected = next(trial for trial in made.reduction.trials if not trial.accepted)
    changed = made.changed(rejected.number, completed=1)
    assert place(made.problems(changed)) == f"trials.jsonl:{rejected.number}"


def test_a_trial_that_the_observer_saw_nothing_of_is_named(made):
    made.sighted.clear()
    assert place(made.problems()) == "trials.jsonl:1"


def test_a_task_that_was_tried_again_may_have_gone_either_way(made):
    made.sighted = {key: [not done, done] for key, [done] in made.sighted.items()}
    assert made.problems() == []


@pytest.mark.parametrize("name", ["trials", "pass_trials", "allowed_losses", "vacuous"])
def test_another_statement_than_the_trials_give_is_named(made, name):
    (problem,) = made.problems(
        described=made.described.model_copy(update={name: True if name == "vacuous" else 77})
    )
    assert "reduction.json" in problem
    assert name in problem


def test_other_deletions_than_the_trials_give_are_named(made):
    fewer = made.described.deleted[:-1]
    described = made.described.model_copy(update={"deleted": fewer})
    problems = made.of(
        KeptReduction(described, render(made.bundle.skill, fewer), "\n".join(made.lines).encode())
    )
    assert len(problems) == 1
    assert "deleted" in problems[0]


def test_a_ledger_is_missing_unless_the_plan_declares_the_candidates(made):
    text = render(made.bundle.skill, made.reduction.deleted)
    kept = KeptReduction(GivenReduction(given=True, deleted=made.described.deleted), text, None)
    assert place(made.of(kept)) == "trials.jsonl"
    plan = made.prepared.plan
    given = replace(
        plan, statement=plan.statement.model_copy(update={"candidates": {"PRV_L05": "sha256:00"}})
    )
    assert made.of(kept, given) == []


def test_a_missing_reduction_or_another_text_is_named(made):
    ledger = "\n".join(made.lines).encode()
    assert made.of(KeptReduction(None, b"", ledger)) != []
    assert made.of(KeptReduction(made.described, None, ledger)) != []
    (problem,) = made.of(KeptReduction(made.described, b"other", ledger))
    assert "SKILL.md" in problem
