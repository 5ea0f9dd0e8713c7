"""The gap between the last reading of the records and the act."""

from __future__ import annotations

from retire.certify.rereading import Rereading, rereading_of
from retire.domain.trace import Act
from tests.made_traces import door, made_trace


def row(outcome, detail):
    act = None if detail is None else Act(status="done", detail=detail, seq=1)
    return made_trace(d2=door(outcome, act=act))


def noted(milliseconds):
    return f"acknowledged only; records read at most {milliseconds} ms before the call"


def test_the_largest_gap_of_the_mediated_acts_is_stated():
    rows = [
        row("allow", noted("9.5")),
        row("allow", noted("12.0")),
        row("unmediated", noted("99.0")),
        row("deny", None),
        row("allow", "refused by Home Assistant: RequestError"),
        row("not_reached", None),
    ]
    assert rereading_of(rows) == Rereading(acts=2, largest_gap_milliseconds="12.0")


def test_a_stub_world_states_none():
    assert rereading_of([row("allow", "1 journal entries")]) == Rereading(
        acts=0, largest_gap_milliseconds=None
    )
    assert rereading_of([]) == Rereading(acts=0, largest_gap_milliseconds=None)
