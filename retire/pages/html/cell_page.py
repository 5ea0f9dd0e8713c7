"""One cell in three columns: proposal (and the exact prompt), decision, effect. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from retire.certify.joining import OBSERVER, RECORD_OF
from retire.domain.cell import AUTHORIZED, Mediation
from retire.pages.html import addresses
from retire.pages.html.cell_parts import Decided, Predicate, Proposed, Seen, Step, Timing, Told
from retire.pages.html.filters import INVALID, YES, TraceFilter
from retire.pages.html.prompt_parts import prompt_of, shown_messages
from retire.pages.html.trace_list import TraceLine, trace_line
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
    from collections.abc import Mapping, Sequence

    from counterfactuals.generate import Member
    from retire.domain.cell import Cell
    from retire.pages.html.index import Row
    from retire.pages.html.review import Review


@dataclass(frozen=True, slots=True)
class CellPage:
    """Everything of one cell."""

    id: str
    title: str
    seq: int
    cell: Cell
    meaning: str
    line: TraceLine
    told: Told
    proposed: Proposed
    decided: Decided
    seen: Seen
    timings: tuple[Timing, ...]
    digests: tuple[tuple[str, str], ...]
    signatures: tuple[tuple[str, str, str, str], ...]
    steps: tuple[Step, ...]
    twins: tuple[TraceLine, ...]
    list_href: str
    diff_href: str
    run_href: str
    wanted: TraceFilter


def cell_page(review: Review, row: Row, trace: Mapping[str, Any], wanted: TraceFilter) -> CellPage:
    """Return the page of one cell.

    Args:
        review: The run.
        row: The cell's row in the index.
        trace: The whole trace row.
        wanted: The list through which previous and next step.
    """
    body, cell = trace["body"], row.cell
    bundle = review.bundles[cell.bundle]
    member = bundle.member(cell.member)
    return CellPage(
        id=review.id,
        title=review.title,
        seq=row.seq,
        cell=cell,
        meaning=CONDITIONS[cell.condition],
        line=trace_line(review, row),
        told=_told(review, cell, member, str(body["prompt"])),
        proposed=_proposed(body),
        decided=_decided(review, cell, body["d2"], member),
        seen=_seen(review, cell, body["d3"]),
        timings=_timings(body.get("microseconds", {})),
        digests=_digests(trace),
        signatures=_signatures(review, cell),
        steps=_steps(review, row, wanted),
        twins=_twins(review, cell),
        list_href=addresses.traces(review.id, wanted, after=max(0, row.seq - 1)),
        diff_href=""
        if str(cell.condition) not in review.plan.protocol.conditions
        else addresses.diff(review.id, cell.deployment, cell.bundle, cell.condition),
        run_href=_run_address(review, cell),
        wanted=wanted,
    )


def _run_address(review: Review, cell: Cell) -> str:
    if review.certificate_of(cell.deployment, str(cell.condition)) is None:
        return addresses.run(review.id)
    return addresses.run(review.id, cell.deployment, str(cell.condition))


def _told(review: Review, cell: Cell, member: Member, digest: str) -> Told:
    prompt = prompt_of(review, cell)
    twin = _compared_with(review, cell)
    return Told(
        request=review.bundles[cell.bundle].tasks.locked.request,
        flipped=flipped_words(review.bundles[cell.bundle], member),
        messages=shown_messages(prompt, prompt_of(review, twin) if twin else None),
        tools="\n".join(json.dumps(tool, indent=2, ensure_ascii=False) for tool in prompt.tools),
        digest=digest,
        rerenders=prompt.digest == digest,
        twin=twin.member if twin else "",
    )


def _compared_with(review: Review, cell: Cell) -> Cell | None:
    """Return the matched authorized twin; an authorized cell has none to differ from."""
    return None if cell.authorized else review.twin_of(cell)


def _proposed(body: Mapping[str, Any]) -> Proposed:
    answer, d1 = body["answer"] or {}, body["d1"]
    calls = answer.get("tool_calls") or []
    named = ("mode", "finish_reason", "completion_tokens", "max_tokens")
    purged = body["answer"] is None
    return Proposed(
        outcome=str(d1["outcome"]),
        words="the answer was purged" if purged else proposed_words(d1),
        answer=str(answer.get("text") or ""),
        calls=json.dumps(calls, indent=2, ensure_ascii=False) if calls else "",
        ended=tuple((name, str(answer[name])) for name in named if answer.get(name) is not None),
        parsed=_parsed(d1),
        rule=str(d1["rule"]),
        purged=purged,
    )


def _parsed(d1: Mapping[str, Any]) -> str:
    if "tool" not in d1:
        return ""
    arguments = ",\n".join(
        f"    {json.dumps(name, ensure_ascii=False)}: {argument_words(value)}"
        for name, value in sorted(d1["arguments"].items())
    )
    inside = f"{{\n{arguments}\n  }}" if arguments else "{}"
    tool = json.dumps(d1["tool"], ensure_ascii=False)
    return f'{{\n  "tool": {tool},\n  "arguments": {inside}\n}}'


def _decided(review: Review, cell: Cell, d2: Mapping[str, Any], member: Member) -> Decided:
    contract = review.bundles[cell.bundle].contract
    recorded: Mapping[str, Any] = d2["predicates"]
    read = evaluate(contract, read_snapshot(member.snapshot))
    predicates = tuple(
        Predicate(
            id=item.id,
            value=bool(recorded.get(item.id, item.value)),
            detail=item.detail,
            flipped=item.id == member.predicate,
        )
        for item in read
    )
    act = d2.get("act")
    return Decided(
        outcome=str(d2["outcome"]),
        door=DOORS[cell.condition.mediation],
        words=door_words(d2),
        reason=str(d2["reason"]),
        detail=str(d2["detail"]),
        parameter=str(d2["parameter"]),
        basis=str(d2["basis"]),
        predicates=predicates,
        recorded=bool(recorded),
        act=json.dumps(act, indent=2, ensure_ascii=False, sort_keys=True) if act else "",
        reached=d2["outcome"] != "not_reached",
    )


_SEEN = {
    "evidence_class": "Evidence class",
    "other_changes": "Other changes",
    "journal": "Journal entries",
    "last_seq": "Last journal number",
    "protected_seqs": "Numbers of protected changes",
    "reason": "Reason",
}


def _seen(review: Review, cell: Cell, d3: Mapping[str, Any]) -> Seen:
    rows = [
        (label, str(d3[name]))
        for name, label in _SEEN.items()
        if d3.get(name) not in (None, "", [])
    ]
    return Seen(
        words=seen_words(review.bundles[cell.bundle], d3),
        evidence_class=str(d3["evidence_class"]).replace("_", " "),
        complete=bool(d3["complete"]),
        intended=bool(d3["intended"]),
        protected=bool(d3["protected"]),
        earlier=bool(d3.get("leaked_in_earlier_attempt")),
        rows=tuple(rows),
    )


def _timings(spent: Mapping[str, int]) -> tuple[Timing, ...]:
    whole = sum(spent.values()) or 1
    order = ("freeze", "deployment", "decision", "observation")
    known = [name for name in order if name in spent]
    return tuple(Timing(name, spent[name], 1000 * spent[name] // whole) for name in known)


def _digests(trace: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    body = trace["body"]
    rows = [
        (name, str(body[part]))
        for name, part in (
            ("Prompt", "prompt"),
            ("Raw answer", "answer_digest"),
            ("Snapshot", "snapshot"),
            ("Contract", "contract"),
            ("Effect file", "effect"),
            ("Episode", "episode"),
        )
        if part in body
    ]
    for name, stage in (("Door's record", "d2"), ("Observer's record", "d3")):
        record = body[stage].get("record")
        if record:
            rows.append((f"{name}, entry {record.get('seq', '?')}", str(record["hash"])))
    rows.append(("This trace", str(trace["hash"])))
    rows.append(("Trace before it", str(trace["prev"])))
    rows.append(("Attempt", f"{body['attempt']} (number {body['attempt_number']})"))
    return tuple(rows)


def _signatures(review: Review, cell: Cell) -> tuple[tuple[str, str, str, str], ...]:
    """Return who signed the heads that cover this cell: record, numbers, key, signature."""
    wanted = (RECORD_OF[Mediation(cell.condition.mediation)], OBSERVER)
    return tuple(
        (name, f"up to entry {head['seq']}", str(head["key"]), str(head["signature"]))
        for name, head in review.heads.items()
        if name in wanted
    )


def _steps(review: Review, row: Row, wanted: TraceFilter) -> tuple[Step, ...]:
    index = review.index
    leaks = TraceFilter(member=INVALID, protected=YES)
    leak = index.next(leaks, row.seq) or index.next(leaks, 0)
    found: Sequence[tuple[str, str, str, Row | None]] = (
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
