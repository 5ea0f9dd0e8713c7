"""What a state of Home Assistant says, and whether it may be believed at all. Pure.

The rules come from how Home Assistant works: a state may be left over from before a restart
(``restored``), assumed rather than reported (``assumed_state``), or written while a service call
was under way (its context then names the caller); and an unchanged value moves no change time,
so that age is counted from the time of the last report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field, PlainValidator, TypeAdapter

if TYPE_CHECKING:
    from datetime import timedelta

_ENTITY = re.compile(r"[a-z0-9_]{1,64}\.[a-z0-9_]{1,190}\Z", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?\Z", re.ASCII)


class Usable(StrEnum):
    """Whether a state can be read, and if not, why."""

    YES = "yes"
    MISSING = "missing"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"
    RESTORED = "restored"
    ASSUMED = "assumed"


class Freshness(StrEnum):
    """How old a state is, by the time of its last report."""

    FRESH = "fresh"
    STALE = "stale"
    UNKNOWN = "age unknown"
    FROM_THE_FUTURE = "from the future"


def _moment(text: object) -> datetime:
    moment = datetime.fromisoformat(str(text))
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    return moment


def _is_by_call(context: object) -> bool:
    if not isinstance(context, dict | None):
        raise ValueError("a context that is no object")  # noqa: TRY004  # pydantic reports it
    return bool(context and (context.get("user_id") or context.get("parent_id")))


_Moment = Annotated[datetime, PlainValidator(_moment)]


@dataclass(frozen=True, slots=True)
class EntityState:
    """One state as Home Assistant gave it.

    Attributes:
        entity: The entity id.
        state: The state's text.
        attributes: The attributes.
        updated: When state or attributes last changed; None where nothing was said.
        reported: When the value was last reported, changed or not; None where Home Assistant
            does not offer it.
        by_call: Whether it was written in the context of somebody's call.
    """

    entity: Annotated[str, Field(validation_alias="entity_id")]
    state: str
    attributes: dict[str, object]
    updated: Annotated[_Moment | None, Field(validation_alias="last_updated")] = None
    reported: Annotated[_Moment | None, Field(validation_alias="last_reported")] = None
    by_call: Annotated[bool, Field(validation_alias="context"), PlainValidator(_is_by_call)] = False

    @property
    def report_time(self) -> datetime | None:
        """The latest moment at which the device is known to have reported."""
        return self.reported or self.updated


_STATE, _STATES = TypeAdapter(EntityState), TypeAdapter(list[EntityState])


class _Units(BaseModel):
    temperature: str | None = None


class Configuration(BaseModel):
    """What is read of how an instance is configured; it says much more."""

    state: str | None = None
    version: str = ""
    unit_system: _Units = _Units()


def state_of(data: object) -> EntityState:
    """Read the JSON form of a state.

    Raises:
        ValueError: It has another form, or a time in it is none.
    """
    return _STATE.validate_python(data)


def states_of(data: object) -> dict[str, EntityState]:
    """Read the JSON form of every state, by entity.

    Raises:
        ValueError: One has another form, or a time in it is none.
    """
    return {state.entity: state for state in _STATES.validate_python(data)}


def usable(state: EntityState | None) -> Usable:
    """Return whether a state can be read at all."""
    if state is None:
        return Usable.MISSING
    if state.attributes.get("restored"):
        return Usable.RESTORED
    if state.state == "unavailable":
        return Usable.UNAVAILABLE
    if state.state == "unknown":
        return Usable.UNKNOWN
    return Usable.ASSUMED if state.attributes.get("assumed_state") else Usable.YES


def freshness(
    state: EntityState, now: datetime, younger_than: timedelta, skew: timedelta
) -> Freshness:
    """Return whether a state was reported less than some time ago.

    A state whose report time is not offered is fresh only if it changed recently: then it was
    certainly reported. Otherwise its age is unknown, which counts as stale.

    Args:
        state: The state.
        now: The reader's clock.
        younger_than: A report exactly this old is stale.
        skew: How far ahead of the reader's clock a report may lie.
    """
    if state.attributes.get("restored"):
        return Freshness.STALE
    moment = state.report_time
    if moment is None:
        return Freshness.UNKNOWN
    if moment - now > skew:
        return Freshness.FROM_THE_FUTURE
    if now - moment < younger_than:
        return Freshness.FRESH
    return Freshness.STALE if state.reported is not None else Freshness.UNKNOWN


def is_entity(text: str) -> bool:
    """Whether a text is one literal entity id, byte for byte, before any lower-casing."""
    return bool(_ENTITY.match(text))


def text_of(value: object) -> str:
    """Return a state or attribute as the text that a variable holds; numbers canonical."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.match(value)):
        return canonical_number(str(value))
    return str(value)


def canonical_number(text: str) -> str:
    """Return a decimal number without trailing zeros or exponent; other text unchanged."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite():
        return text
    plain = f"{number.normalize():f}"
    return "0" if plain == "-0" else plain
