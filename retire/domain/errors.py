"""Errors, sorted by whose fault they are.

RetireError                 base; carries what was wrong, where, and how to mend it
 |- InputError              a file, argument or candidate cannot be used (exit code 2)
 |   `- NotAReduction       the candidate adds or edits text, so there is nothing to retire
 |- IncompleteError         evidence is missing: something fell silent (exit code 3)
 `- EvidenceError           stored evidence contradicts itself or its signatures (exit code 1)
"""

from __future__ import annotations


class RetireError(Exception):
    """Base of every error the product raises on purpose.

    Args:
        what: What was wrong, as a sentence without a full stop.
        where: File, line, clause or cell; empty when there is no place to name.
        mend: What the reader can do about it.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", mend: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        """One paragraph: what, where, how to mend it."""
        place = f"{self.where}: " if self.where else ""
        advice = f". {self.mend}" if self.mend else ""
        return f"{place}{self.what}{advice}"


class InputError(RetireError):
    """A file, an argument or a candidate cannot be used."""

    exit_code = 2


class NotAReduction(InputError):
    """The candidate is not the full skill with clauses removed."""


class IncompleteError(RetireError):
    """Evidence is missing; nothing may be concluded from its absence."""

    exit_code = 3


class EvidenceError(RetireError):
    """Stored evidence contradicts itself, its digests or its signatures."""

    exit_code = 1
