"""The exact prompt of a cell, rendered again, and what differs from its twin's. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from retire.prompts import build_prompt
from retire.runner.job import cell_job, placed_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.domain.cell import Cell
    from retire.pages.html.review import Review
    from retire.prompts import Prompt


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a message; ``differs`` marks what the twin's message has otherwise."""

    text: str
    differs: bool


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message of a prompt; ``other`` is what the twin has in place of what differs."""

    role: str
    parts: tuple[Part, ...]
    other: str
    differs: bool


def prompt_of(review: Review, cell: Cell) -> Prompt:
    """Return the prompt of a cell, as a verifier renders it from the run's own copies."""
    bundle = review.bundles[cell.bundle]
    deleted = review.deleted.get((cell.deployment, cell.bundle), ())
    text = placed_text(bundle, cell.condition, deleted)
    job = cell_job(bundle, cell, text, review.plan.protocol.seed)
    snapshot = bundle.member(cell.member).snapshot.decode()
    return build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)


def shown_messages(prompt: Prompt, twin: Prompt | None) -> tuple[ShownMessage, ...]:
    """Return a prompt's messages, with what the twin's prompt has otherwise marked."""
    others: Sequence[str | None] = [None] * len(prompt.messages)
    if twin is not None and len(twin.messages) == len(prompt.messages):
        others = [message["content"] for message in twin.messages]
    return tuple(
        _message(message["role"], message["content"], other)
        for message, other in zip(prompt.messages, others, strict=True)
    )


def _message(role: str, text: str, other: str | None) -> ShownMessage:
    if other is None or other == text:
        return ShownMessage(role, (Part(text, differs=False),), "", differs=False)
    before, mine, theirs, after = differing(text, other)
    parts = (Part(before, differs=False), Part(mine, differs=True), Part(after, differs=False))
    return ShownMessage(role, parts, theirs, differs=True)


def differing(text: str, other: str) -> tuple[str, str, str, str]:
    """Return what two texts begin with, what either has alone, and what both end with.

    What differs is widened to whole words, so that a reader sees ``false`` and not ``fals``.
    """
    start = _alike(text, other)
    room = min(len(text), len(other)) - start
    end = min(room, _alike(text[::-1], other[::-1]))
    while start and text[start - 1].isalnum():
        start -= 1
    while end and text[len(text) - end].isalnum():
        end -= 1
    last, other_last = len(text) - end, len(other) - end
    return text[:start], text[start:last], other[start:other_last], text[last:]


def _alike(text: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False))
    )
