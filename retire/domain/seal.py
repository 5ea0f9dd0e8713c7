"""The seal of a run: the signed head of every record, and which attempt served which cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from retire.domain.document import Document, JsonData
from sink.record import Head

if TYPE_CHECKING:
    from collections.abc import Mapping


class SealedHead(Document):
    """A signed head as documents write it."""

    signer: str
    seq: int
    hash: str
    countersigned: str
    key: str
    signature: str

    @classmethod
    def of(cls, head: Head) -> SealedHead:
        """Return a head for a document."""
        return cls(
            signer=head.signer,
            seq=head.seq,
            hash=head.hash,
            countersigned=head.countersigned,
            key=head.key,
            signature=head.signature,
        )

    @property
    def head(self) -> Head:
        """The head that the chain of its record is checked against."""
        return Head(**dict(self))


Heads = dict[str, SealedHead]
"""Signed heads by the name of their record."""


class Seal(Document):
    """What vouches for a run's records.

    ``stray`` are the observer's findings of its last sweep, ``passes`` the users of the programs.
    """

    schema_: Literal["retire.seal/v1"] = Field(alias="schema")
    heads: Heads
    stray: list[dict[str, JsonData]]
    attempts: dict[str, str]
    passes: list[dict[str, int]] = Field(default_factory=list)


def heads_of(heads: Mapping[str, Head]) -> Heads:
    """Return signed heads for a document."""
    return {name: SealedHead.of(head) for name, head in heads.items()}
