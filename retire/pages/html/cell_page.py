"""One cell in three columns: proposal (and the exact prompt), decision, effect. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from retire.certify.joining import OBSERVER, RECORD_OF
from retire.domain.cell import AUTHORIZED
from retire.domain.trace import ProposalStage
from retire.pages.html import addresses
from retire.pages.html.filters import INVALID, YES, TraceFilter
from retire.pages.html.prompt_parts import prompt_of, shown_messages
from retire.pages.html.trace_list import trace_line
from retire.pages.phrases import CONDITIONS, DOORS
from retire.pages.traces import (
    argument_words,
    door_words,
    flipped_words,
    proposed_words,
    seen_words,
)
from sink.contract import evaluate, read_snapshot

if TYPE_CHECKING:
    from counterfactuals.generate import Member
    from retire.domain.cell import Cell
    from retire.domain.trace import D1, D2, D3, Microseconds, Trace, TraceRow
    from retire.pages.html.index import Row
    from retire.pages.html.prompt_parts import ShownMessage
    from retire.pages.html.review import Review
    from retire.pages.html.trace_list import TraceLine
    from sink.proposal import RawAnswer


@dataclass(frozen=True, slots=True)
class Step:
    """A way from this cell to another; ``href`` is empty where there is none."""

    name: str
    key: str
    label: str
    href: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """One governing fact and its value in this cell's snapshot."""

    id: str
    value: bool
    detail: str
    flipped: bool


@dataclass(frozen=True, slots=True)
class Timing:
    """Time spent in one stage; ``share`` of all stages in thousandths."""

    stage: str
    microseconds: int
    share: int


@dataclass(frozen=True, slots=True)
class ModelInput:
    """What the model was told."""

    request: str
    flipped: str
    messages: tuple[ShownMessage, ...]
    tools: str
    rerenders: bool
    twin: str


@dataclass(frozen=True, slots=True)
class CellPage:
    """Everything of one cell: its trace, and of the three stages what is said in words."""

    id: str
    title: str
    seq: int
    cell: Cell
    meaning: str
    line: TraceLine
    trace: Trace
    told: ModelInput
    proposed: str
    calls: str
    ended: tuple[tuple[str, str], ...]
    parsed: str
    door: str
    decided: str
    predicates: tuple[Predicate, ...]
    act: str
    seen: str
    sighted: tuple[tuple[str, str], ...]
    timings: tuple[Timing, ...]
    digests: tuple[tuple[str, str], ...]
    signatures: tuple[tuple[str, str, str, str], ...]
    steps: tuple[Step, ...]
    twins: tuple[TraceLine, ...]
    list_href: str
    diff_href: str
    run_href: str


def cell_page(review: Review, row: Row, trace: TraceRow, wanted: TraceFilter) -> CellPage:
    """Return the page of one cell.

    Args:
        review: The run.
        row: The cell's row in the index.
        trace: The whole trace row.
        wanted: The list through which previous and next step.
    """
    body, cell = trace.body, row.cell
    bundle = review.bundles[cell.bundle]
    member = bundle.member(cell.member)
    condition = str(cell.condition)
    judged = review.certificate_of(cell.deployment, condition) is not None
    return CellPage(
        id=review.id,
        title=review.title,
        seq=row.seq,
        cell=cell,
        meaning=CONDITIONS[cell.condition],
        line=trace_line(review, row),
        trace=body,
        told=_told(review, cell, member, body.prompt),
        proposed=proposed_words(body.d1),
        calls=_json([call.model_dump() for call in body.answer.tool_calls]),
        ended=_ended(body.answer),
        parsed=_parsed(body.d1),
        door=DOORS[cell.condition.mediation],
        decided=door_words(body.d2),
        predicates=_predicates(review, cell, body.d2, member),
        act=_json(body.d2.act.as_json() if body.d2.act else None),
        seen=seen_words(bundle, body.d3),
        sighted=_sighted(body.d3),
        timings=_timings(body.microseconds),
        digests=_digests(trace),
        signatures=_signatures(review, cell),
        steps=_steps(review, row, wanted),
        twins=_twins(review, cell),
        list_href=addresses.traces(review.id, wanted, after=max(0, row.seq - 1)),
        diff_href=""
        if condition not in review.plan.protocol.conditions
        else addresses.diff(review.id, cell.deployment, cell.bundle, condition),
        run_href=addresses.run(review.id, *((cell.deployment, condition) if judged else ())),
    )


def _told(review: Review, cell: Cell, member: Member, digest: str) -> ModelInput:
    prompt = prompt_of(review, cell)
    # An authorized cell has no twin to differ from.
    twin = None if cell.authorized else review.twin_of(cell)
    return ModelInput(
        request=review.bundles[cell.bundle].tasks.locked.request,
        flipped=flipped_words(review.bundles[cell.bundle], member),
        messages=shown_messages(prompt, prompt_of(review, twin) if twin else None),
        tools="\n".join(json.dumps(tool, indent=2, ensure_ascii=False) for tool in prompt.tools),
        rerenders=prompt.digest == digest,
        twin=twin.member if twin else "",
    )


def _json(value: object) -> str:
    """Return JSON for people; empty for nothing."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) if value else ""


def _ended(answer: RawAnswer) -> tuple[tuple[str, str], ...]:
    named = ("mode", "finish_reason", "completion_tokens", "max_tokens")
    values = [(name, getattr(answer, name)) for name in named]
    return tuple((name, str(value)) for name, value in values if value is not None)


def _parsed(d1: D1) -> str:
    if not isinstance(d1, ProposalStage):
        return ""
    arguments = ",\n".join(
        f"    {json.dumps(name, ensure_ascii=False)}: {argument_words(value)}"
        for name, value in sorted(d1.arguments.items())
    )
    inside = f"{{\n{arguments}\n  }}" if arguments else "{}"
    tool = json.dumps(d1.tool, ensure_ascii=False)
    return f'{{\n  "tool": {tool},\n  "arguments": {inside}\n}}'


def _predicates(review: Review, cell: Cell, d2: D2, member: Member) -> tuple[Predicate, ...]:
    contract = review.bundles[cell.bundle].contract
    return tuple(
        Predicate(
            id=item.id,
            value=d2.predicates.get(item.id, item.value),
            detail=item.detail,
            flipped=item.id == member.predicate,
        )
        for item in evaluate(contract, read_snapshot(member.snapshot))
    )


def _sighted(d3: D3) -> tuple[tuple[str, str], ...]:
    rows = (
        ("Evidence class", d3.evidence_class),
        ("Other changes", d3.other_changes),
        ("Journal entries", d3.journal),
        ("Last journal number", d3.last_seq),
        ("Numbers of protected changes", list(d3.protected_seqs)),
        ("Reason", d3.reason),
    )
    return tuple((label, str(value)) for label, value in rows if value not in ("", []))


def _timings(spent: Microseconds) -> tuple[Timing, ...]:
    stages: dict[str, int] = dict(spent)
    whole = sum(stages.values()) or 1
    return tuple(Timing(name, value, 1000 * value // whole) for name, value in stages.items())


def _digests(row: TraceRow) -> tuple[tuple[str, str], ...]:
    body = row.body
    records = (("Door's record", body.d2.record), ("Observer's record", body.d3.record))
    return (
        ("Prompt", body.prompt),
        ("Raw answer", body.answer_digest),
        ("Snapshot", body.snapshot),
        ("Contract", body.contract),
        ("Effect file", body.effect),
        ("Episode", body.episode),
        *((f"{name}, entry {entry.seq}", entry.hash) for name, entry in records if entry),
        ("This trace", row.hash),
        ("Trace before it", row.prev),
        ("Attempt", f"{body.attempt} (number {body.attempt_number})"),
    )


def _signatures(review: Review, cell: Cell) -> tuple[tuple[str, str, str, str], ...]:
    """Return who signed the heads that cover this cell: record, numbers, key, signature."""
    wanted = (RECORD_OF[cell.condition.mediation], OBSERVER)
    return tuple(
        (name, f"up to entry {head.seq}", head.key, head.signature)
        for name, head in review.heads.items()
        if name in wanted
    )


def _steps(review: Review, row: Row, wanted: TraceFilter) -> tuple[Step, ...]:
    index = review.index
    leaks = TraceFilter(member=INVALID, protected=YES)
    leak = index.next(leaks, row.seq) or index.next(leaks, 0)
    found: tuple[tuple[str, str, str, Row | None], ...] = (
        ("twin", "t", _twin_label(row.cell), _twin_row(review, row.cell)),
        ("repetition", "r", "Next repetition", _next_repetition(review, row.cell)),
        ("leak", "l", "Next leak", None if leak is None or leak.seq == row.seq else leak),
        ("previous", "p", "Previous", index.previous(wanted, row.seq)),
        ("next", "n", "Next", index.next(wanted, row.seq)),
    )
    return tuple(
        Step(name, key, label, addresses.cell(review.id, to.seq, wanted) if to else "")
        for name, key, label, to in found
    )


def _twin_label(cell: Cell) -> str:
    return "An invalid twin" if cell.authorized else "Authorized twin"


def _twin_row(review: Review, cell: Cell) -> Row | None:
    if not cell.authorized:
        return review.index.of_cell(review.twin_of(cell))
    for member in review.bundles[cell.bundle].members:
        other = review.index.of_cell(replace(cell, member=member.name))
        if member.name != AUTHORIZED and other is not None:
            return other
    return None


def _next_repetition(review: Review, cell: Cell) -> Row | None:
    count = review.plan.protocol.repetitions
    following = replace(cell, repetition=cell.repetition % count + 1)
    return None if following == cell else review.index.of_cell(following)


def _twins(review: Review, cell: Cell) -> tuple[TraceLine, ...]:
    """Return every member of the same template, this one among them."""
    rows = [
        review.index.of_cell(replace(cell, member=member.name))
        for member in review.bundles[cell.bundle].members
    ]
    return tuple(trace_line(review, row) for row in rows if row is not None)
