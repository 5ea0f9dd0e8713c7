"""What is kept of a reduction: its text, what it deleted, and the ledger of its trials. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from retire.domain.digests import sha256
from retire.domain.document import Document, Many, Word
from retire.reduce import Strategy  # read at run time

if TYPE_CHECKING:
    from retire.reduce import Reduction

DEVELOPMENT = "development"
"""The sample of development tasks, and the first part of their keys."""


class GivenReduction(Document):
    """A candidate that a person made."""

    given: Literal[True]
    deleted: Many[str]


class FoundReduction(Document):
    """What a search found; the names are those of :class:`retire.reduce.Reduction`."""

    given: Literal[False]
    strategy: Word[Strategy]
    deleted: Many[str]
    trials: int
    pass_trials: int
    verification_trials: int
    allowed_losses: int
    margin_binding: bool
    vacuous: bool
    non_monotone: Many[Many[int]]

    @classmethod
    def of(cls, reduction: Reduction) -> FoundReduction:
        """Return what is kept of a reduction beside its text and its trials."""
        return cls(
            given=False,
            strategy=reduction.strategy,
            deleted=reduction.deleted,
            trials=len(reduction.trials),
            pass_trials=reduction.pass_trials,
            verification_trials=reduction.verification_trials,
            allowed_losses=reduction.allowed_losses,
            margin_binding=reduction.margin_binding,
            vacuous=reduction.vacuous,
            non_monotone=reduction.non_monotone,
        )


@dataclass(frozen=True, slots=True)
class KeptReduction:
    """A reduction as it lies in a run's folder; None is what is missing there.

    Attributes:
        described: What was deleted, and how it was found.
        text: The reduced skill.
        ledger: The trials, one JSON object a line.
    """

    described: GivenReduction | FoundReduction | None
    text: bytes | None
    ledger: bytes | None


def development_key(deployment: str, bundle: str, task: str, text: bytes) -> str:
    """Return what attempts at one development task of one trial are filed under.

    Args:
        deployment: Who is asked.
        bundle: Whose task it is.
        task: The task's id.
        text: The reduced skill of the trial.
    """
    return f"{DEVELOPMENT}/{deployment}/{bundle}/{task}/{sha256(text)[7:23]}"
