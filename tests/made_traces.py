"""Traces made by hand: real types, invented stages. A test names what it is about."""

from __future__ import annotations

from retire.domain.cell import AUTHORIZED, Cell, Condition, Sample
from retire.domain.outcome import D2Outcome
from retire.domain.trace import (
    D3,
    NOT_REACHED,
    SCHEMA,
    Act,
    CellName,
    InvalidStage,
    Microseconds,
    ProposalStage,
    RecordEntry,
    RefusalStage,
    Trace,
    TraceRow,
)
from sink.proposal import RawAnswer

CELL = Cell(Sample.AUDIT, "plain", "PRV_L05", Condition.B4, AUTHORIZED, 1)
REFUSES = RefusalStage(outcome="refusal", rule="", text="a rule is not met")
BREAKS = InvalidStage(outcome="invalid", rule="not_json", text="no object")
ENTRY = RecordEntry(seq=1, hash="sha256:00")
DONE = Act(status="done", detail="1 journal entries", seq=2)


def proposes(tool="tool", **arguments):
    """The proposal stage; text is marked with ' and numbers with #, as a trace has them."""
    return ProposalStage(outcome="proposal", rule="", tool=tool, arguments=arguments)


def door(outcome, **fields):
    """The decision stage; what is not named is empty."""
    return NOT_REACHED.model_copy(update={"outcome": D2Outcome(outcome), **fields})


def seen(*, intended=False, protected=False, complete=True, **fields):
    """The effect stage; what is not named is what a read of the target gives."""
    values = {
        "attempt": "0" * 32, "effect": "sha256:ee", "complete": complete, "intended": intended,
        "protected": protected, "evidence_class": "target_state_read", "protected_seqs": (),
        "journal": 0, "last_seq": 0, "other_changes": 0, "reason": "", "record": ENTRY,
    }  # fmt: skip
    return D3(**values | fields)


def made_trace(cell=CELL, d1=REFUSES, d2=NOT_REACHED, d3=None, **fields):
    """One trace; fields that a test does not name stand for nothing."""
    values = {
        "schema": SCHEMA, "cell": CellName.of(cell), "attempt": "0" * 32, "attempt_number": 1,
        "earlier_attempts": (), "episode": "sha256:e0", "seed": 1, "prompt": "sha256:aa",
        "answer": RawAnswer(mode="json", text="{}", finish_reason="stop"),
        "answer_digest": "sha256:ab", "d1": d1, "d2": d2, "d3": d3 or seen(),
        "snapshot": "sha256:55", "contract": "sha256:cc", "effect": "sha256:ee",
        "microseconds": Microseconds(freeze=1, deployment=2, decision=3, observation=4),
    }  # fmt: skip
    return Trace(**values | fields)


def made_row(trace, seq=1, prev="sha256:00", own=None):
    """A row of a chain that no verifier would follow."""
    return TraceRow(seq=seq, prev=prev, hash=own or f"sha256:{seq:02}", body=trace)
