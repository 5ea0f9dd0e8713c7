"""Which traces a page shows: read from an address's query, written back into one. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from retire.domain.cell import Condition, Sample
from retire.domain.errors import InputError
from retire.domain.outcome import D1Outcome, D2Outcome
from sink.decision import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.domain.outcome import Outcome

INVALID = "invalid"
"""As a member: every invalid member, whatever it flips."""

YES, NO = "yes", "no"

CHOICES: Mapping[str, tuple[str, ...]] = {
    "sample": tuple(Sample),
    "condition": tuple(Condition),
    "d1": tuple(D1Outcome),
    "d2": tuple(D2Outcome),
    "reason": tuple(Reason),
    "completed": (YES, NO),
    "protected": (YES, NO),
}
"""Filters whose values are the same in every run."""


@dataclass(frozen=True, slots=True)
class TraceFilter:
    """What a trace must have to be shown; an empty field leaves it open.

    ``member`` may be ``invalid`` for all invalid members; ``completed`` and ``protected`` are
    ``yes`` or ``no`` and ask for the intended and the protected effect.
    """

    sample: str = ""
    deployment: str = ""
    bundle: str = ""
    condition: str = ""
    member: str = ""
    d1: str = ""
    d2: str = ""
    reason: str = ""
    completed: str = ""
    protected: str = ""

    def query(self) -> dict[str, str]:
        """Return the filters that are set, as they stand in an address."""
        return {name: getattr(self, name) for name in NAMES if getattr(self, name)}

    def matches(self, outcome: Outcome) -> bool:
        """Whether a trace with this outcome is shown."""
        return self._cell_matches(outcome) and all(
            wanted in {"", found}
            for wanted, found in (
                (self.d1, outcome.d1),
                (self.d2, outcome.d2),
                (self.reason, outcome.reason),
                (self.completed, _yes(outcome.complete and outcome.intended)),
                (self.protected, _yes(outcome.protected)),
            )
        )

    def _cell_matches(self, outcome: Outcome) -> bool:
        cell = outcome.cell
        member = INVALID if self.member == INVALID and not cell.authorized else cell.member
        return all(
            wanted in {"", found}
            for wanted, found in (
                (self.deployment, cell.deployment),
                (self.bundle, cell.bundle),
                (self.condition, cell.condition),
                (self.member, member),
                (self.sample, cell.sample),
            )
        )


NAMES = tuple(field.name for field in fields(TraceFilter))

LABELS: Mapping[str, str] = {
    "sample": "Sample",
    "deployment": "Deployment",
    "bundle": "Bundle",
    "condition": "Condition",
    "member": "Member",
    "d1": "Proposal",
    "d2": "Decision",
    "reason": "Reason of a denial",
    "completed": "Intended effect",
    "protected": "Protected effect",
}
"""What the filters are called on a page."""


def _yes(value: bool) -> str:  # noqa: FBT001  # a value, not a switch
    return YES if value else NO


def read_filter(query: Mapping[str, str]) -> TraceFilter:
    """Read the filters of a query; other names in it are somebody else's.

    Raises:
        InputError: A value that the filter cannot have: it would show nothing, or too much.
    """
    values = {name: query[name] for name in NAMES if query.get(name)}
    for name, value in values.items():
        known = CHOICES.get(name)
        if known is not None and value not in known:
            raise InputError(
                f"{value!r} is no value of this filter",
                where=name,
                mend=f"Choose among {', '.join(map(str, known))}",
            )
    return TraceFilter(**values)


def read_number(query: Mapping[str, str], name: str) -> int:
    """Read a whole number of a query; 0 where it is not given.

    Raises:
        InputError: It is none.
    """
    text = query.get(name, "") or "0"
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InputError(
            f"{text[:40]!r} is no whole number", where=name, mend="Follow the page's own links"
        )
    return int(text)


def check_names(query: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse a name that a page does not know: a typing error must not widen what is shown.

    Raises:
        InputError: Names it.
    """
    for name in query:
        if name not in known:
            raise InputError(
                "there is no such parameter",
                where=name[:80],
                mend=f"Known: {', '.join(known)}" if known else "This page takes none",
            )
