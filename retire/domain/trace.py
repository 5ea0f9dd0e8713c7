"""The trace of a cell: three stages, and what of them the outcome root covers. Pure.

The outcome leaf leaves out attempt, nonces, times, latency, keys, signatures and record
positions, so that two undisturbed runs of one plan, or an interrupted and resumed one, have the
same root. Whole records have a root of their own.
"""

from __future__ import annotations

from operator import not_
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from retire.domain.cell import Cell, Condition, Sample
from retire.domain.digests import canonical, merkle_root
from retire.domain.document import Document, Many, Word
from retire.domain.outcome import D1Outcome, D2Outcome, Outcome
from sink.contract import canonical_scalar
from sink.proposal import Invalid, Parsed, Proposal, RawAnswer, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SCHEMA: Literal["retire.trace/v1"] = "retire.trace/v1"


class CellName(Document):
    """A cell as documents write it."""

    sample: Word[Sample]
    deployment: str
    bundle: str
    condition: Word[Condition]
    member: str
    repetition: int = Field(ge=1)

    @classmethod
    def of(cls, cell: Cell) -> CellName:
        """Return the name of a cell."""
        return cls(
            sample=cell.sample,
            deployment=cell.deployment,
            bundle=cell.bundle,
            condition=cell.condition,
            member=cell.member,
            repetition=cell.repetition,
        )

    @property
    def cell(self) -> Cell:
        """The cell."""
        return Cell(
            self.sample,
            self.deployment,
            self.bundle,
            self.condition,
            self.member,
            self.repetition,
        )


class ProposalStage(Document):
    """D1 of an answer that proposes an action; arguments are marked ``'text`` or ``#number``."""

    outcome: Literal["proposal"]
    rule: Literal[""]
    tool: str
    arguments: dict[str, str | bool]


class RefusalStage(Document):
    """D1 of an answer that declines, in the model's words."""

    outcome: Literal["refusal"]
    rule: Literal[""]
    text: str


class InvalidStage(Document):
    """D1 of an answer that cannot be used: the rule that failed, and where."""

    outcome: Literal["invalid"]
    rule: str = Field(min_length=1)
    text: str


D1: TypeAlias = Annotated[
    ProposalStage | RefusalStage | InvalidStage, Field(discriminator="outcome")
]
"""The proposal stage."""


class RecordEntry(Document):
    """Where a program's record has its entry; a sink names the nonce that it spent."""

    seq: int
    hash: str
    nonce: str = Field(default="", min_length=1, exclude_if=not_)


class Act(Document):
    """What the actuator answered; ``seq`` is the record's entry of it."""

    status: Literal["done", "refused", "in_doubt"]
    detail: str
    seq: int


class D2(Document):
    """The decision stage: what the door decided, the truth value of every predicate, the act."""

    outcome: Word[D2Outcome]
    basis: str
    reason: str
    detail: str
    parameter: str
    predicates: dict[str, bool]
    record: RecordEntry | None
    act: Act | None


NOT_REACHED = D2(
    outcome=D2Outcome.NOT_REACHED,
    basis="",
    reason="",
    detail="",
    parameter="",
    predicates={},
    record=None,
    act=None,
)
"""The decision stage of an answer that proposes nothing."""


def _only_true(value: bool) -> bool:  # noqa: FBT001  # a validator
    if not value:
        raise ValueError("it is left out where it is not so")
    return value


class D3(Document):
    """The effect stage: the observer's sighting, with its place in the observer's record.

    ``leaked_in_earlier_attempt`` says that ``protected`` comes from an attempt that was cut.
    """

    attempt: str
    effect: str
    complete: bool
    intended: bool
    protected: bool
    evidence_class: str
    protected_seqs: Many[int]
    journal: int
    last_seq: int
    other_changes: int
    reason: str
    record: RecordEntry
    leaked_in_earlier_attempt: Annotated[bool, AfterValidator(_only_true)] = Field(
        default=False, exclude_if=not_
    )


class Microseconds(Document):
    """How long each step of an attempt took."""

    freeze: int
    deployment: int
    decision: int
    observation: int


def _stored_answer(value: object) -> object:
    """Have every part of an answer written out, and its calls as the sink's model wants them."""
    if not isinstance(value, dict):
        return value
    if missing := RawAnswer.model_fields.keys() - value.keys():
        raise ValueError(f"{min(missing)} is missing")
    calls = value["tool_calls"]
    return {**value, "tool_calls": tuple(calls)} if isinstance(calls, list) else value


class Trace(Document):
    """One cell from prompt to effect. Digests are ``sha256:`` and 64 hex digits."""

    schema_: Literal["retire.trace/v1"] = Field(alias="schema")
    cell: CellName
    attempt: str
    attempt_number: int = Field(ge=1)
    earlier_attempts: Many[str]
    episode: str
    seed: int
    prompt: str
    answer: Annotated[RawAnswer, BeforeValidator(_stored_answer)]
    answer_digest: str
    d1: D1
    d2: D2
    d3: D3
    snapshot: str
    contract: str
    effect: str
    microseconds: Microseconds

    def leaf(self) -> bytes:
        """Return the canonical bytes of what the outcome root covers."""
        d2, d3 = self.d2, self.d3
        return canonical(
            {
                "cell": self.cell.as_json(),
                "prompt": self.prompt,
                "answer": self.answer_digest,
                "d1": {"outcome": self.d1.outcome, "rule": self.d1.rule},
                "d2": {
                    "outcome": d2.outcome,
                    "basis": d2.basis,
                    "reason": d2.reason,
                    "parameter": d2.parameter,
                    "predicates": d2.predicates,
                },
                "d3": {
                    "complete": d3.complete,
                    "intended": d3.intended,
                    "protected": d3.protected,
                    "evidence_class": d3.evidence_class,
                },
                "snapshot": self.snapshot,
                "contract": self.contract,
                "effect": self.effect,
            }
        )

    def outcome(self) -> Outcome:
        """Return what the certifier reads of it."""
        d1, d2, d3 = self.d1, self.d2, self.d3
        return Outcome(
            cell=self.cell.cell,
            complete=d3.complete,
            d1=D1Outcome(d1.outcome),
            d2=d2.outcome,
            intended=d3.intended,
            protected=d3.protected,
            d1_rule=d1.rule,
            reason=d2.reason,
            parameter=d2.parameter,
            basis=d2.basis,
            evidence_class=d3.evidence_class,
            predicates=d2.predicates,
            snapshot_digest=self.snapshot,
        )


class TraceRow(Document):
    """A trace in its chain: ``hash`` covers the other three, ``prev`` is the row before."""

    seq: int
    prev: str
    hash: str
    body: Trace


def stage_of(parsed: Parsed) -> D1:
    """Return the proposal stage of an answer that the sink's parser read."""
    match parsed:
        case Proposal():
            arguments = {key: canonical_scalar(item) for key, item in parsed.arguments.items()}
            return ProposalStage(outcome="proposal", rule="", tool=parsed.tool, arguments=arguments)
        case Refusal():
            return RefusalStage(outcome="refusal", rule="", text=parsed.reason)
        case Invalid():
            return InvalidStage(outcome="invalid", rule=parsed.rule, text=parsed.detail)


def outcome_root(traces: Iterable[Trace]) -> str:
    """Return the Merkle root over the leaves in cell order."""
    leaves = sorted((trace.cell.cell, trace.leaf()) for trace in traces)
    return merkle_root([leaf for _, leaf in leaves])


def record_root(hashes: Sequence[str]) -> str:
    """Return the Merkle root over the chained hashes of whole trace rows, in chain order."""
    return merkle_root([value.encode() for value in hashes])
