"""One leaking cell in plain words: asked, flipped, proposed, decided, seen. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, assert_never

from counterfactuals.template import pointer_parts
from observer.sighting import EventSeen, Threshold, Transition
from retire.domain.outcome import D2Outcome
from retire.domain.trace import ProposalStage
from retire.pages.text import paragraph, quoted, shortened

if TYPE_CHECKING:
    from counterfactuals.generate import Member
    from retire.bundle import Bundle
    from retire.domain.trace import D1, D2, D3, Trace

_INDENT = "    "
_REST = " " * 14
_LONG = 200


def trace_words(bundle: Bundle, trace: Trace) -> str:
    """Return one trace of an invalid member as five labelled paragraphs."""
    member = bundle.member(trace.cell.member)
    parts = {
        "asked": quoted(bundle.tasks.locked.request, _LONG),
        "flipped": flipped_words(bundle, member),
        "proposed": proposed_words(trace.d1),
        "door": door_words(trace.d2),
        "observer": seen_words(bundle, trace.d3),
    }
    return "\n".join(
        paragraph(words, f"{_INDENT}{name:<10}", _REST) for name, words in parts.items()
    )


def flipped_words(bundle: Bundle, member: Member) -> str:
    """Return which fact an invalid member flips, from what to what."""
    if member.path is None:
        return "nothing: this is the authorized member"
    before = json.loads(bundle.member("authorized").snapshot)
    after = json.loads(member.snapshot)
    names, old = _follow(before, member.path)
    _, new = _follow(after, member.path)
    place = shortened(", ".join(names), _LONG)
    return (
        f"{place}: from {quoted(old, 80)} to {quoted(new, 80)} "
        f"(predicate {member.predicate}, {member.path})"
    )


def _follow(value: object, path: str) -> tuple[list[str], str]:
    """Return what people call the steps of a pointer, and the value at its end."""
    names: list[str] = []
    parts = pointer_parts(path)
    for part in parts:
        value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            names.append(value["name"])
    return [*names, parts[-1].replace("_", " ")], str(value)


def proposed_words(d1: D1) -> str:
    """Return the first stage: what the model proposed, or why nothing."""
    if not isinstance(d1, ProposalStage):
        return f"nothing ({d1.outcome}): {quoted(d1.text, _LONG)}"
    arguments = ", ".join(
        shortened(f"{name}={argument_words(value)}", 80)
        for name, value in sorted(d1.arguments.items())
    )
    return shortened(f"{shortened(d1.tool, 80)}({arguments})", 2 * _LONG)


def argument_words(value: object) -> str:
    """Return an argument of a trace as JSON writes it: text in quotes, numbers bare.

    A trace marks text with ' and numbers with #, so that 21 and "21" stay apart.
    """
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return json.dumps(text[1:], ensure_ascii=False) if text.startswith("'") else text.lstrip("#")


def door_words(d2: D2) -> str:
    """Return the second stage: what the door decided, and what the device answered."""
    match d2.outcome:
        case D2Outcome.UNMEDIATED:
            words = "no check stood before the device; the proposal was sent"
        case D2Outcome.ALLOW:
            words = f"the sink allowed it ({d2.basis.replace('_', ' ')})"
        case D2Outcome.DENY:
            words = f"the sink denied it ({d2.reason.replace('_', ' ')})"
        case _:
            words = "nothing reached the door"
    detail = f": {shortened(d2.detail, _LONG)}" if d2.detail else ""
    status = f"; the device answered {quoted(d2.act.status, 40)}" if d2.act else ""
    return words + detail + status


def seen_words(bundle: Bundle, d3: D3) -> str:
    """Return the third stage: what the observer saw."""
    kind = d3.evidence_class.replace("_", " ")
    effect = protected_words(bundle)
    if d3.leaked_in_earlier_attempt:
        return f"the protected effect in an earlier, cut attempt at this cell: {effect}"
    if d3.protected:
        return f"the protected effect: {effect} ({kind})"
    return f"no protected effect ({kind})"


def protected_words(bundle: Bundle) -> str:
    """Return in words what a bundle's protected effect is."""
    protected = bundle.effect.protected
    device = bundle.world.devices.get(protected.target)
    target = device.name if device is not None else protected.target
    match protected:
        case Transition():
            return f"{target}, {protected.variable} became {quoted(protected.to, 80)}"
        case Threshold(at_least=None):
            return f"{target}, {protected.variable} set above {protected.above} {protected.unit}"
        case Threshold():
            return (
                f"{target}, {protected.variable} set to {protected.at_least} {protected.unit} "
                "or more"
            )
        case EventSeen():
            fields = ", ".join(f"{name} {value}" for name, value in protected.fields.items())
            return f"{target}, {protected.event.replace('_', ' ')}" + (
                f" ({fields})" if fields else ""
            )
        case _:
            assert_never(protected)
