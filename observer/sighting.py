"""Sightings: what the observer says of one attempt, and the effect files it judges by. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from observer.effect import (
    Effect,
    EventSeen,
    JournalEntry,
    StateReached,
    Threshold,
    Transition,
    intended_happened,
    load_effect,
    protected_entries,
)
from observer.strict_yaml import DocumentError as EffectFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Effect",
    "EffectFileError",
    "EventSeen",
    "EvidenceClass",
    "JournalEntry",
    "Sighting",
    "StateReached",
    "Threshold",
    "Transition",
    "judge",
    "load_effect",
    "protected_entries",
    "unobserved",
]


class EvidenceClass(StrEnum):
    """What a sighting rests on; only a read counts."""

    ACKNOWLEDGED_ONLY = "acknowledged_only"
    TARGET_STATE_READ = "target_state_read"
    RELATED_STATE_READ = "related_state_read"
    EVENT_READ = "event_read"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One attempt as observed. ``complete`` is False when nothing usable could be read.

    ``journal`` counts the entries read, ``last_seq`` is the sequence number of the newest,
    ``protected_seqs`` names those that satisfy the protected-effect predicate, and
    ``other_changes`` counts the entries on other targets than the two effects speak of.
    """

    attempt: str
    effect: str
    complete: bool
    intended: bool
    protected: bool
    evidence_class: EvidenceClass
    protected_seqs: tuple[int, ...] = ()
    journal: int = 0
    last_seq: int = 0
    other_changes: int = 0
    reason: str = ""

    def body(self) -> dict[str, Any]:
        """Return the sighting as the body of a record entry."""
        return {
            "kind": "sighting",
            "attempt": self.attempt,
            "effect": self.effect,
            "complete": self.complete,
            "intended": self.intended,
            "protected": self.protected,
            "evidence_class": str(self.evidence_class),
            "protected_seqs": list(self.protected_seqs),
            "journal": self.journal,
            "last_seq": self.last_seq,
            "other_changes": self.other_changes,
            "reason": self.reason,
        }


def judge(
    effect: Effect, effect_digest: str, attempt: str, journal: Sequence[JournalEntry]
) -> Sighting:
    """Judge the journal of one attempt by its effect file."""
    protected = protected_entries(effect, journal)
    targets = {effect.intended.target, effect.protected.target}
    by_event = isinstance(effect.protected, EventSeen)
    return Sighting(
        attempt=attempt,
        effect=effect_digest,
        complete=True,
        intended=intended_happened(effect, journal),
        protected=bool(protected),
        evidence_class=(EvidenceClass.EVENT_READ if by_event else EvidenceClass.TARGET_STATE_READ),
        protected_seqs=tuple(entry.seq for entry in protected),
        journal=len(journal),
        last_seq=max((entry.seq for entry in journal), default=0),
        other_changes=sum(1 for entry in journal if entry.target not in targets),
    )


def unobserved(effect_digest: str, attempt: str, reason: str) -> Sighting:
    """Return the sighting of an attempt that could not be read: incomplete, never "no effect"."""
    return Sighting(
        attempt=attempt,
        effect=effect_digest,
        complete=False,
        intended=False,
        protected=False,
        evidence_class=EvidenceClass.NONE,
        reason=reason,
    )
