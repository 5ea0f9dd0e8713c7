"""What a plan will take before anything is spent: calls, tokens, money, time. Pure.

Cells are known exactly. A reduction is not: it ends when nothing more can be deleted, so its
calls lie between a least and a most. Tokens of a prompt are estimated from its bytes, those of an
answer by what the configuration allows at most.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from retire.domain.cell import AUTHORIZED, Condition
from retire.prompts import build_prompt, model_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.bundle import Bundle
    from retire.deployments.configuration import Price, Sampling
    from retire.matrix import Protocol
    from retire.prompts import Prompt, ToolSchema

BYTES_PER_TOKEN = 3
"""English text and JSON come to about four bytes a token; three leaves room for other models."""


def prompt_tokens(messages: Sequence[Mapping[str, str]], tools: Sequence[ToolSchema] = ()) -> int:
    """Return about how many tokens a model reads; rather too many than too few."""
    text = json.dumps([list(messages), list(tools)], ensure_ascii=False)
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Load:
    """Calls, and the tokens that they read; what they write is at most ``max_tokens`` each."""

    calls: int = 0
    read: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(self.calls + other.calls, self.read + other.read)

    def times(self, factor: int) -> Load:
        """Return so many of it."""
        return Load(self.calls * factor, self.read * factor)


@dataclass(frozen=True, slots=True)
class PlanLoad:
    """What a plan asks of each of its deployments.

    Attributes:
        cells: The cells, each asked once.
        least: The reductions, if every trial goes as well as it can.
        most: The reductions at worst.
    """

    cells: Load
    least: Load
    most: Load


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a deployment answers.

    Attributes:
        seconds: One call, as measured.
        concurrency: Calls at once.
        requests_per_minute: None for no limit.
        tokens_per_minute: None for no limit.
    """

    seconds: float
    concurrency: int
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


def plan_load(protocol: Protocol, bundles: Sequence[Bundle], *, reduces: bool = True) -> PlanLoad:
    """Return what a plan asks of one deployment.

    Args:
        protocol: The declared plan.
        bundles: Its bundles.
        reduces: Whether the run makes its candidates itself.
    """
    cells = least = most = Load()
    for bundle in bundles:
        cells += _cells(protocol, bundle)
        if reduces and protocol.candidates:
            trial = _trial(bundle)
            clauses = len(bundle.skill.clauses)
            least += trial.times(fewest_trials(protocol.reducer, clauses))
            most += trial.times(most_trials(protocol.reducer, clauses))
    return PlanLoad(cells, least, most)


def fewest_trials(reducer: str, clauses: int) -> int:
    """Return the trials of a reduction in which everything may be deleted.

    Args:
        reducer: ``one-at-a-time`` or ``halving``.
        clauses: Deletable clauses of the skill.
    """
    baseline = 1
    return baseline + (clauses if reducer == "one-at-a-time" else min(1, clauses))


def most_trials(reducer: str, clauses: int) -> int:
    """Return a bound on the trials of a reduction, each set of deleted clauses tried once.

    The first pass tries each clause, or each block of a halving. Every pass after it deletes a
    clause or is the last; after a first pass that deleted nothing it has nothing new to try.

    Args:
        reducer: ``one-at-a-time`` or ``halving``.
        clauses: Deletable clauses of the skill.
    """
    if not clauses:
        return 1
    first = clauses if reducer == "one-at-a-time" else 2 * clauses - 1
    return 1 + first + clauses * (clauses - 1) // 2


def _cells(protocol: Protocol, bundle: Bundle) -> Load:
    authorized = bundle.member(AUTHORIZED)
    members = [member.snapshot.decode() for member in bundle.members]
    load = Load()
    if protocol.task_value:
        for condition in (Condition.B0, Condition.B1):
            load += _call(bundle, condition, authorized.snapshot.decode())
    for name in protocol.conditions:
        for snapshot in members:
            load += _call(bundle, Condition(name), snapshot)
    return load.times(protocol.repetitions)


def _trial(bundle: Bundle) -> Load:
    """Return one trial of the full skill; later ones read less."""
    prompts = _development_prompts(bundle)
    return Load(len(prompts), sum(_read(prompt) for prompt in prompts))


def _call(bundle: Bundle, condition: Condition, snapshot: str) -> Load:
    return Load(1, _read(_prompt(bundle, condition, snapshot, bundle.tasks.locked.request)))


def _read(prompt: Prompt) -> int:
    return prompt_tokens(prompt.messages, prompt.tools)


def _prompt(bundle: Bundle, condition: Condition, snapshot: str, request: str) -> Prompt:
    # No placement renders more than the full skill.
    text = model_text(condition, bundle.skill.data.decode())
    return build_prompt(text, bundle.tools, request, snapshot)


def _development_prompts(bundle: Bundle) -> list[Prompt]:
    return [
        _prompt(bundle, Condition.B1, bundle.development_snapshots[it.id].decode(), it.request)
        for it in bundle.development_view().tasks
    ]


def longest_development_prompt(bundles: Sequence[Bundle]) -> Prompt:
    """Return the longest prompt that the reductions of a plan begin with, to try a model's pace."""
    return max((it for bundle in bundles for it in _development_prompts(bundle)), key=_read)


def money(load: Load, sampling: Sampling, price: Price) -> Decimal:
    """Return what calls cost at most, in the price's currency."""
    written = load.calls * sampling.max_tokens
    return (Decimal(price.input) * load.read + Decimal(price.output) * written) / 1_000_000


def duration(load: Load, sampling: Sampling, pace: Pace) -> float:
    """Return how long calls take: by their own time, or by a limit per minute if that is longer."""
    times = [load.calls * pace.seconds / pace.concurrency]
    if pace.requests_per_minute is not None:
        times.append(load.calls * 60 / pace.requests_per_minute)
    if pace.tokens_per_minute is not None:
        # Tokens that an answer may write are held until its true number is known.
        tokens = load.read + load.calls * sampling.max_tokens
        times.append(tokens * 60 / pace.tokens_per_minute)
    return max(times)
