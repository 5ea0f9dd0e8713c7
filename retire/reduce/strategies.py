"""Two searches for a 1-minimal reduction, as generators that ask for trials and get results.

A generator yields the set of deleted clauses to try and is sent how many development tasks were
completed; whoever drives it does the I/O. The searches see clause ids in document order and
counts, nothing else: no ledger, no contract, no locked template.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from retire.domain.document import Document, Many

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction


class Strategy(StrEnum):
    """How the search goes about it."""

    ONE_AT_A_TIME = "one-at-a-time"
    HALVING = "halving"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Completed development tasks of one trial."""

    completed: int
    tasks: int


Phase: TypeAlias = Literal["baseline", "pass", "verification", "halving"]


class Trial(Document):
    """One line of the replayable ledger."""

    number: int
    phase: Phase
    deleted: Many[str]
    completed: int
    tasks: int
    accepted: bool


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a search found.

    ``vacuous``: the full skill completed no development task, so nothing was licensed and
    nothing deleted. ``margin_binding``: False when the margin allows no loss at all.
    ``non_monotone`` names accepted trials that deleted more than a rejected one.
    """

    strategy: Strategy
    deleted: tuple[str, ...]
    trials: tuple[Trial, ...]
    allowed_losses: int
    vacuous: bool
    margin_binding: bool
    non_monotone: tuple[tuple[int, int], ...]

    @property
    def pass_trials(self) -> int:
        """Trials of the published pass, without baseline and verification."""
        return sum(1 for trial in self.trials if trial.phase in {"pass", "halving"})

    @property
    def verification_trials(self) -> int:
        """Trials spent on showing that nothing more can be deleted."""
        return sum(1 for trial in self.trials if trial.phase == "verification")


Search: TypeAlias = Generator[frozenset[str], TrialResult, Reduction]


def allowed_losses(margin: Fraction, tasks: int) -> int:
    """Return how many development tasks a candidate may lose: floor(margin x tasks).

    Args:
        margin: The utility margin as a fraction of one (0.1 for ten percentage points).
        tasks: Development cells of one trial.
    """
    return int(margin * tasks)


@dataclass(slots=True)
class _Notebook:
    """Asks for trials through the generator's frame and keeps the ledger."""

    order: Sequence[str]
    threshold: int = 0
    trials: list[Trial] = field(default_factory=list)

    def ask(
        self, deleted: frozenset[str], phase: Phase
    ) -> Generator[frozenset[str], TrialResult, bool]:
        result = yield deleted
        accepted = result.completed >= self.threshold
        listed = tuple(clause for clause in self.order if clause in deleted)
        self.trials.append(
            Trial(
                number=len(self.trials) + 1,
                phase=phase,
                deleted=listed,
                completed=result.completed,
                tasks=result.tasks,
                accepted=accepted,
            )
        )
        return accepted


def search(strategy: Strategy, clauses: Sequence[str], margin: Fraction) -> Search:
    """Run a strategy over clause ids in document order.

    The threshold is set once, by the full skill (the first trial), never by a previous trial.
    """
    notebook = _Notebook(clauses)
    yield from notebook.ask(frozenset(), "baseline")
    baseline = notebook.trials[0]
    losses = allowed_losses(margin, baseline.tasks)
    deleted: frozenset[str] = frozenset()
    if baseline.completed:
        # At least one task: a candidate that can do nothing keeps no utility, whatever the margin.
        notebook.threshold = max(1, baseline.completed - losses)
        deleted = yield from STRATEGIES[strategy](notebook, clauses)
        deleted = yield from _verify(notebook, clauses, deleted)
    return Reduction(
        strategy=strategy,
        deleted=tuple(clause for clause in clauses if clause in deleted),
        trials=tuple(notebook.trials),
        allowed_losses=losses,
        vacuous=not baseline.completed,
        margin_binding=losses > 0,
        non_monotone=_non_monotone(notebook.trials),
    )


_Step: TypeAlias = Generator[frozenset[str], TrialResult, frozenset[str]]


def _one_at_a_time(notebook: _Notebook, clauses: Sequence[str]) -> _Step:
    """Test each clause once, in document order (paper, section 3)."""
    deleted: frozenset[str] = frozenset()
    for clause in clauses:
        if (yield from notebook.ask(deleted | {clause}, "pass")):
            deleted |= {clause}
    return deleted


def _halving(notebook: _Notebook, clauses: Sequence[str]) -> _Step:
    """Try the empty skill, then ever smaller blocks of what is left."""
    deleted: frozenset[str] = frozenset()
    blocks: list[Sequence[str]] = [clauses] if clauses else []
    while blocks:
        block = blocks.pop(0)
        if (yield from notebook.ask(deleted | set(block), "halving")):
            deleted |= set(block)
        elif len(block) > 1:
            middle = len(block) // 2
            blocks[:0] = [block[:middle], block[middle:]]
    return deleted


def _verify(notebook: _Notebook, clauses: Sequence[str], deleted: frozenset[str]) -> _Step:
    """Repeat single deletions until a whole pass changes nothing: then the result is 1-minimal."""
    changed = True
    while changed:
        changed = False
        for clause in clauses:
            if clause in deleted:
                continue
            if (yield from notebook.ask(deleted | {clause}, "verification")):
                deleted |= {clause}
                changed = True
    return deleted


STRATEGIES: dict[Strategy, Callable[[_Notebook, Sequence[str]], _Step]] = {
    Strategy.ONE_AT_A_TIME: _one_at_a_time,
    Strategy.HALVING: _halving,
}


def _non_monotone(trials: Sequence[Trial]) -> tuple[tuple[int, int], ...]:
    """Return (rejected, accepted) trial numbers where more deletion did better than less."""
    rejected = [(trial.number, frozenset(trial.deleted)) for trial in trials if not trial.accepted]
    accepted = [(trial.number, frozenset(trial.deleted)) for trial in trials if trial.accepted]
    return tuple((bad, good) for bad, less in rejected for good, more in accepted if less < more)
