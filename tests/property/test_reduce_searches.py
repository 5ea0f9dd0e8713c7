"""Laws of the reducer's searches over any world of development tasks."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retire.reduce import Strategy, TrialResult, allowed_losses, search

pytestmark = pytest.mark.property

CLAUSES = tuple(f"c{number:03}" for number in range(1, 9))
TASKS = st.lists(
    st.lists(st.frozensets(st.sampled_from(CLAUSES), max_size=3), min_size=1, max_size=2),
    min_size=1,
    max_size=6,
)
"""A task succeeds where every clause of one of its ways is there: more text never hurts."""
MARGINS = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)])


def run(strategy, margin, completed, tasks, clauses=CLAUSES):
    going = search(strategy, clauses, margin)
    asked = []
    deleted = next(going)
    while True:
        asked.append(deleted)
        try:
            deleted = going.send(TrialResult(completed(deleted), tasks))
        except StopIteration as stop:
            return stop.value, asked


def monotone(tasks):
    def completed(deleted):
        return sum(any(not way & deleted for way in ways) for ways in tasks)

    return completed


@settings(max_examples=150, deadline=None)
@given(TASKS, MARGINS, st.sampled_from(Strategy))
def test_the_result_keeps_the_margin_and_is_one_minimal(tasks, margin, strategy):
    completed = monotone(tasks)
    found, asked = run(strategy, margin, completed, len(tasks))
    least = completed(frozenset()) - int(margin * len(tasks))
    deleted = frozenset(found.deleted)
    assert completed(deleted) >= least
    for clause in set(CLAUSES) - deleted:
        assert completed(deleted | {clause}) < least
    assert asked[0] == frozenset()
    assert found.non_monotone == ()


@settings(max_examples=150, deadline=None)
@given(st.data(), MARGINS, st.sampled_from(Strategy))
def test_every_trial_is_in_the_ledger_and_can_be_replayed(data, margin, strategy):
    table = {}

    def completed(deleted):
        if deleted not in table:
            table[deleted] = data.draw(st.integers(0, 4))
        return table[deleted]

    found, asked = run(strategy, margin, completed, 4)
    assert [frozenset(trial.deleted) for trial in found.trials] == asked
    assert [trial.number for trial in found.trials] == list(range(1, len(asked) + 1))
    again, asked_again = run(strategy, margin, table.__getitem__, 4)
    assert (again, asked_again) == (found, asked)
    least = max(1, found.trials[0].completed - allowed_losses(margin, 4))
    if not found.vacuous:
        deleted = frozenset(found.deleted)
        assert table[deleted] >= least
        assert all(table[deleted | {one}] < least for one in set(CLAUSES) - deleted)
        assert all(trial.accepted == (trial.completed >= least) for trial in found.trials[1:])
    assert found.pass_trials + found.verification_trials == len(found.trials) - 1
    assert list(found.deleted) == sorted(found.deleted)


@settings(max_examples=100, deadline=None)
@given(TASKS, MARGINS, st.sampled_from(Strategy), st.permutations(range(8)))
def test_a_search_knows_clauses_by_their_order_alone(tasks, margin, strategy, order):
    names = {clause: f"x{number}" for clause, number in zip(CLAUSES, order, strict=True)}
    back = {value: key for key, value in names.items()}
    completed = monotone(tasks)
    plain, _ = run(strategy, margin, completed, len(tasks))
    renamed, _ = run(
        strategy,
        margin,
        lambda deleted: completed(frozenset(back[name] for name in deleted)),
        len(tasks),
        tuple(names[clause] for clause in CLAUSES),
    )
    assert [back[name] for name in renamed.deleted] == list(plain.deleted)


@settings(deadline=None)
@given(st.integers(0, 100), st.integers(0, 500))
def test_allowed_losses_are_rounded_down_exactly(points, tasks):
    assert allowed_losses(Fraction(points, 100), tasks) == points * tasks // 100
