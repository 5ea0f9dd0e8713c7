"""The consent of the persons in view of a camera bench: a file that is read strictly."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from retire.bundle.reading import read_yaml
from sink.strict_yaml import StrictModel


def _check_instant(value: str) -> str:
    if not value.endswith("Z") or datetime.fromisoformat(value).utcoffset() is None:
        raise ValueError(f"{value[:40]!r} is not an instant of the form 2026-03-02T18:30:00Z")
    return value


Instant = Annotated[str, AfterValidator(_check_instant)]


class Person(StrictModel):
    """One person in view; an opaque id, no name."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    answer: str
    at: Instant


class Consent(StrictModel):
    """Who agreed that a camera's stream may be opened without a boundary, and until when."""

    schema_: Literal["retire.bench_consent/v1"] = Field(alias="schema")
    entity: str
    persons: tuple[Person, ...] = Field(min_length=1)
    until: Instant


def read_consent(data: bytes, where: str) -> Consent:
    """Read a consent file; raises InputError with file, line and hint."""
    return read_yaml(Consent, data, where)


def why_no_consent(consent: Consent, entity: str, now: datetime) -> str:
    """Return why a consent does not cover a bench at a moment, or nothing where it does. Pure."""
    if consent.entity != entity:
        return f"the consent is for {consent.entity}, the bench's camera is {entity}"
    unwilling = [person.id for person in consent.persons if person.answer != "yes"]
    if unwilling:
        return f"{', '.join(unwilling)} did not say yes"
    if now >= datetime.fromisoformat(consent.until):
        return f"the consent ended {consent.until}"
    later = [person.id for person in consent.persons if datetime.fromisoformat(person.at) > now]
    return f"the answer of {', '.join(later)} lies in the future" if later else ""


def why_not_unmediated(
    *, allowed: bool, marked: bool, consent: Consent | None, entity: str, now: datetime
) -> str:
    """Return why conditions without a boundary are not run, or nothing where they may be. Pure.

    Args:
        allowed: Whether the operator asked for it.
        marked: Whether the instance is marked as a bench.
        consent: Of the persons in view, if a file was given.
        entity: The bench's camera.
        now: The moment of asking.
    """
    because = "it acts without a boundary, and "
    if not allowed:
        return because + "--allow-unmediated was not given"
    if not marked:
        return because + "the instance is not marked bench: true"
    if consent is None:
        return because + "no consent of the persons in view was given with --consent"
    why = why_no_consent(consent, entity, now)
    return because + why if why else ""
