"""What a cell's page is made of: the steps from it, and its three stages. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retire.pages.html.prompt_parts import ShownMessage


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
class Told:
    """What the model was told."""

    request: str
    flipped: str
    messages: tuple[ShownMessage, ...]
    tools: str
    digest: str
    rerenders: bool
    twin: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """D1: what came back, and how it was read."""

    outcome: str
    words: str
    answer: str
    calls: str
    ended: tuple[tuple[str, str], ...]
    parsed: str
    rule: str
    purged: bool


@dataclass(frozen=True, slots=True)
class Decided:
    """D2: the decision with every predicate. ``recorded`` says that the sink evaluated them."""

    outcome: str
    door: str
    words: str
    reason: str
    detail: str
    parameter: str
    basis: str
    predicates: tuple[Predicate, ...]
    recorded: bool
    act: str
    reached: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """D3: what the observer saw."""

    words: str
    evidence_class: str
    complete: bool
    intended: bool
    protected: bool
    earlier: bool
    rows: tuple[tuple[str, str], ...]
