"""One cell as one flat row of typed columns: what each column is called, is, and means. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from retire.domain.trace import ProposalStage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.bundle import Bundle
    from retire.domain.cell import Cell
    from retire.domain.trace import D1, D2, D3, Trace
    from retire.verify.run import StoredCell
    from sink.proposal import RawAnswer

Value: TypeAlias = "str | bool | int | Mapping[str, bool] | None"
"""What a column holds."""

SCHEMA = "retire.cells/v1"


class Kind(StrEnum):
    """The types that columns have, without naming a library."""

    TEXT = "text"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    BOOLEANS = "map of text to boolean"


@dataclass(frozen=True, slots=True)
class DataColumn:
    """One column. Only columns that are ``always`` there are never null."""

    name: str
    kind: Kind
    meaning: str
    always: bool = False


def _columns() -> tuple[DataColumn, ...]:
    text, yes_no, number = Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER
    return (
        DataColumn("cell", text, "The cell's name, unique in the run", always=True),
        DataColumn("sample", text, "task_value or audit; never pool the two", always=True),
        DataColumn("deployment", text, "The deployment's name", always=True),
        DataColumn("bundle", text, "The bundle's id", always=True),
        DataColumn("family", text, "The bundle's family", always=True),
        DataColumn("condition", text, "B0 to B6", always=True),
        DataColumn("mediation", text, "The door: direct, canonical or exact", always=True),
        DataColumn("member", text, "authorized, or the invalid member", always=True),
        DataColumn("repetition", number, "Counted from 1", always=True),
        DataColumn("authorized", yes_no, "Whether every predicate holds", always=True),
        DataColumn("flipped", text, "The predicate that the invalid member makes false"),
        DataColumn(
            "truths", Kind.BOOLEANS, "Truth value of every predicate in the snapshot", always=True
        ),
        DataColumn("complete", yes_no, "Whether there is usable evidence", always=True),
        DataColumn("intended", yes_no, "D3: the observer saw the intended effect"),
        DataColumn("protected", yes_no, "D3: the observer saw the protected effect"),
        DataColumn("success", yes_no, "Authorized cells: the intended effect was seen"),
        DataColumn("leak", yes_no, "Invalid cells: the protected effect was seen"),
        DataColumn("proposal", text, "D1: proposal, refusal or invalid"),
        DataColumn("proposal_rule", text, "D1: the parser's rule that an invalid answer broke"),
        DataColumn("proposal_tool", text, "D1: the proposed tool"),
        DataColumn("proposal_arguments", text, "D1: the arguments as JSON, numbers exact"),
        DataColumn("proposal_words", text, "D1: the refusal, or what is invalid"),
        DataColumn("decision", text, "D2: not_reached, allow, deny or unmediated"),
        DataColumn("decision_basis", text, "D2: why allowed: authority or free_band"),
        DataColumn("decision_reason", text, "D2: why denied"),
        DataColumn("decision_parameter", text, "D2: the parameter at fault"),
        DataColumn("decision_detail", text, "D2: the door's own words"),
        DataColumn(
            "predicates",
            Kind.BOOLEANS,
            "D2: truth value of every predicate as the sink saw it; null where it saw none",
        ),
        DataColumn("act_status", text, "D2: what the device answered; an answer is no effect"),
        DataColumn("evidence_class", text, "D3: how the effect was read"),
        DataColumn("other_changes", number, "D3: changes that are neither effect"),
        DataColumn("leaked_before", yes_no, "D3: seen in an earlier attempt that was cut"),
        DataColumn("freeze_us", number, "Microseconds: reset and snapshot"),
        DataColumn("deployment_us", number, "Microseconds: the deployment's answer"),
        DataColumn("decision_us", number, "Microseconds: the door"),
        DataColumn("observation_us", number, "Microseconds: the observer's settle window"),
        DataColumn("answer_text", text, "The raw answer's text"),
        DataColumn("answer_tool_calls", text, "The raw answer's tool calls as JSON"),
        DataColumn("answer_finish_reason", text, "Why the deployment stopped"),
        DataColumn("answer_tokens", number, "Tokens of the answer, if they were counted"),
        DataColumn("prompt_digest", text, "Of messages and tools"),
        DataColumn("answer_digest", text, "Of the raw answer"),
        DataColumn("snapshot_digest", text, "Of the frozen snapshot"),
        DataColumn("contract_digest", text, "Of the contract"),
        DataColumn("effect_digest", text, "Of the effect file"),
        DataColumn("episode", text, "Equal across members and conditions"),
        DataColumn("seed", number, "The seed of the deployment call"),
        DataColumn("attempt", text, "The attempt that gave the evidence"),
        DataColumn("earlier_attempts", number, "Attempts that were cut before it"),
        DataColumn("chain_position", number, "The row's number in the run's hash chain"),
        DataColumn("row_hash", text, "The row's hash in the chain"),
    )


COLUMNS = _columns()
"""The columns of ``retire.cells/v1``, in order."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a bundle says of a cell, whatever happened in it."""

    family: str
    flipped: str
    truths: Mapping[str, bool]


def truths_of(bundles: Mapping[str, Bundle]) -> dict[tuple[str, str], Mapping[str, bool]]:
    """Return the truth value of every predicate, by bundle and member, as the proofs have them."""
    return {
        (key, member.name): member.proof.after if member.proof else dict.fromkeys(names, True)
        for key, bundle in bundles.items()
        for names in [[predicate.id for predicate in bundle.contract.predicates]]
        for member in bundle.members
    }


def flat(stored: StoredCell, known: Known) -> dict[str, Value]:
    """Return one row: a value for every column, None where the run says nothing.

    A cell without evidence has nulls, never "no effect"; a leak that was sighted stays sighted.
    """
    row: dict[str, Value] = dict.fromkeys(column.name for column in COLUMNS)
    row |= _declared(stored.cell, known)
    if stored.row is None:
        return row | _effects(stored.cell, complete=False, intended=False, protected=stored.leaked)
    trace, times = stored.row.body, stored.row.body.microseconds
    return row | {
        **_seen(stored.cell, trace.d3),
        **_proposed(trace.d1),
        **_decided(trace.d2),
        "freeze_us": times.freeze,
        "deployment_us": times.deployment,
        "decision_us": times.decision,
        "observation_us": times.observation,
        **_answered(trace.answer),
        **_named(trace),
        "chain_position": stored.row.seq,
        "row_hash": stored.row.hash,
    }


def _declared(cell: Cell, known: Known) -> dict[str, Value]:
    return {
        "cell": cell.key,
        "sample": str(cell.sample),
        "deployment": cell.deployment,
        "bundle": cell.bundle,
        "family": known.family,
        "condition": str(cell.condition),
        "mediation": str(cell.condition.mediation),
        "member": cell.member,
        "repetition": cell.repetition,
        "authorized": cell.authorized,
        "flipped": known.flipped or None,
        "truths": dict(known.truths),
    }


def _effects(cell: Cell, *, complete: bool, intended: bool, protected: bool) -> dict[str, Value]:
    seen = intended if complete else None
    harm = protected if complete or protected else None
    return {
        "complete": complete,
        "intended": seen,
        "protected": harm,
        "success": seen if cell.authorized else None,
        "leak": None if cell.authorized else harm,
    }


def _seen(cell: Cell, d3: D3) -> dict[str, Value]:
    return {
        **_effects(cell, complete=d3.complete, intended=d3.intended, protected=d3.protected),
        "evidence_class": d3.evidence_class,
        "other_changes": d3.other_changes,
        "leaked_before": d3.leaked_in_earlier_attempt,
    }


def _proposed(d1: D1) -> dict[str, Value]:
    said: dict[str, Value] = {"proposal": d1.outcome, "proposal_rule": d1.rule or None}
    if not isinstance(d1, ProposalStage):
        return {**said, "proposal_words": d1.text}
    arguments = arguments_json(d1.arguments)
    return {**said, "proposal_tool": d1.tool, "proposal_arguments": arguments}


def arguments_json(arguments: Mapping[str, str | bool]) -> str:
    """Return a trace's arguments as JSON text; its marked decimals become exact numbers."""
    entries = (
        f"{json.dumps(name, ensure_ascii=False)}: {_scalar_json(value)}"
        for name, value in sorted(arguments.items())
    )
    return "{" + ", ".join(entries) + "}"


def _scalar_json(value: object) -> str:
    # A trace marks text with ' and numbers with #, so that 21 and "21" stay apart.
    if isinstance(value, str) and value.startswith("#"):
        return value[1:]
    return json.dumps(value[1:] if isinstance(value, str) else value, ensure_ascii=False)


def _decided(d2: D2) -> dict[str, Value]:
    return {
        "decision": str(d2.outcome),
        "decision_basis": d2.basis or None,
        "decision_reason": d2.reason or None,
        "decision_parameter": d2.parameter or None,
        "decision_detail": d2.detail or None,
        "predicates": d2.predicates or None,
        "act_status": None if d2.act is None else d2.act.status,
    }


def _answered(answer: RawAnswer) -> dict[str, Value]:
    return {
        "answer_text": answer.text,
        "answer_tool_calls": calls_json(answer) or None,
        "answer_finish_reason": answer.finish_reason,
        "answer_tokens": answer.completion_tokens,
    }


def calls_json(answer: RawAnswer) -> str:
    """Return the tool calls of an answer as JSON text, empty if there is none."""
    calls = answer.model_dump(mode="json")["tool_calls"]
    return json.dumps(calls, ensure_ascii=False, sort_keys=True) if calls else ""


def _named(trace: Trace) -> dict[str, Value]:
    return {
        "prompt_digest": trace.prompt,
        "answer_digest": trace.answer_digest,
        "snapshot_digest": trace.snapshot,
        "contract_digest": trace.contract,
        "effect_digest": trace.effect,
        "episode": trace.episode,
        "seed": trace.seed,
        "attempt": trace.attempt,
        "earlier_attempts": len(trace.earlier_attempts),
    }
