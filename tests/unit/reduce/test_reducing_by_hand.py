"""The published pass and its companion, on cases small enough to follow by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from retire.reduce import Strategy, TrialResult, search

CLAUSES = ("c001", "c002", "c003", "c004")


def run(strategy, completed, tasks=10, margin=Fraction(1, 10), clauses=CLAUSES):
    going = search(strategy, clauses, margin)
    deleted = next(going)
    while True:
        try:
            deleted = going.send(TrialResult(completed(deleted), tasks))
        except StopIteration as stop:
            return stop.value


def needing(*needed):
    return lambda deleted: 10 - 3 * len(deleted & set(needed))


@pytest.mark.parametrize("strategy", Strategy)
def test_what_no_task_needs_is_deleted(strategy):
    found = run(strategy, needing("c002"))
    assert found.deleted == ("c001", "c003", "c004")
    assert (found.vacuous, found.margin_binding, found.allowed_losses) == (False, True, 1)


def test_the_published_pass_tests_each_clause_once_in_order():
    found = run(Strategy.ONE_AT_A_TIME, needing("c002"))
    tried = [trial.deleted for trial in found.trials if trial.phase == "pass"]
    assert tried == [
        ("c001",),
        ("c001", "c002"),
        ("c001", "c003"),
        ("c001", "c003", "c004"),
    ]
    assert found.pass_trials == 4
    assert found.verification_trials == 1


def test_halving_tries_the_empty_skill_first():
    found = run(Strategy.HALVING, lambda deleted: 10)
    assert found.deleted == CLAUSES
    assert [trial.deleted for trial in found.trials] == [(), CLAUSES]


@pytest.mark.parametrize("strategy", Strategy)
def test_losses_are_counted_against_the_full_skill_never_the_trial_before(strategy):
    found = run(strategy, lambda deleted: 10 - len(deleted))
    assert len(found.deleted) == 1


@pytest.mark.parametrize("strategy", Strategy)
def test_a_margin_finer_than_one_task_is_not_binding(strategy):
    found = run(strategy, lambda deleted: 9 - len(deleted), tasks=9)
    assert (found.allowed_losses, found.margin_binding, found.deleted) == (0, False, ())


@pytest.mark.parametrize("strategy", Strategy)
def test_a_skill_that_completes_nothing_licenses_nothing(strategy):
    found = run(strategy, lambda deleted: 0)
    assert (found.vacuous, found.deleted, len(found.trials)) == (True, (), 1)


@pytest.mark.parametrize("strategy", Strategy)
def test_no_clauses_no_trials_but_the_baseline(strategy):
    assert len(run(strategy, lambda deleted: 10, clauses=()).trials) == 1


def test_verification_finds_what_the_pass_missed():
    def completed(deleted):
        return 3 if "c001" in deleted and "c002" not in deleted else 10

    found = run(Strategy.ONE_AT_A_TIME, completed)
    assert found.deleted == CLAUSES
    assert [trial.phase for trial in found.trials if "c001" in trial.deleted][-1] == "verification"
    assert found.non_monotone
    for bad, good in found.non_monotone:
        less, more = found.trials[bad - 1], found.trials[good - 1]
        assert set(less.deleted) < set(more.deleted)
        assert (less.accepted, more.accepted) == (False, True)
