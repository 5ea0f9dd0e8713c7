"""The snapshot: the frozen facts, grants and consents of an episode, in raw values."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from sink.contract.values import unique_keys
from sink.strict_yaml import StrictModel


class Grant(StrictModel):
    """A grant as the snapshot shows it."""

    name: str
    holder: str
    service: str
    target: str
    status: str
    not_before: str
    not_after: str


class Vote(StrictModel):
    """One principal's answer."""

    name: str
    answer: str
    at: str


class Consent(StrictModel):
    """A question put to principals, and their answers by opaque id."""

    name: str
    votes: dict[str, Vote]


class Fact(StrictModel):
    """A raw reading: text, its unit if a number, when it was reported, and its version."""

    name: str
    value: str
    unit: str | None = None
    reported_at: str
    version: int


class Version(StrictModel):
    """A component's version."""

    name: str
    value: str


class Snapshot(StrictModel):
    """The frozen facts, grants and consents of an episode: raw values, never a truth value."""

    schema_: Literal["retire.snapshot/v1"] = Field(alias="schema")
    as_of: str
    grants: dict[str, Grant]
    consents: dict[str, Consent]
    facts: dict[str, Fact]
    versions: dict[str, Version]


def read_snapshot(data: bytes) -> Snapshot:
    """Read snapshot bytes.

    Raises:
        ValueError: Not JSON, a key twice, or not of the snapshot's form (pydantic's error is a
            ValueError).
    """
    return Snapshot.model_validate(json.loads(data, object_pairs_hook=unique_keys))
