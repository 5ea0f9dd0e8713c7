"""What the observer makes of a house's states and events, one at a time. No I/O but its journal.

Only what a device reports by itself goes into the journal. A controlling entity shows what was
asked for, perhaps; it can raise a doubt, never settle one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from hardware.homeassistant.reading import EntityState, Usable, state_of, text_of, usable
from hardware.strict import fault_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hardware.homeassistant.house import House, HouseDevice
    from hardware.sense.journal_file import JournalFile

RESETTING = "resetting"
"""The episode entity says so while the world program sets the house up."""

_NO_FIELDS = frozenset(
    {
        "event_type",
        "event_types",
        "friendly_name",
        "device_class",
        "icon",
        "attribution",
        "supported_features",
        "restored",
        "assumed_state",
    }
)
"""Attributes of an event entity that are not fields of the event."""


class _Changed(BaseModel):
    entity_id: str
    new_state: dict[str, object] | None


class _Event(BaseModel):
    data: _Changed


@dataclass(slots=True)
class Watch:
    """The house as seen so far.

    Attributes:
        house: Which entity is which.
        journal: Where changes and events are kept.
        attempt: In which attempt the house stands; empty where that is not known.
        live: Attempts whose beginning was seen: the end of the setting up, in one connection.
        doubts: Why an attempt cannot be judged, by attempt and device (empty: any device).
    """

    house: House
    journal: JournalFile
    attempt: str = ""
    live: set[str] = field(default_factory=set)
    doubts: dict[str, dict[str, str]] = field(default_factory=dict)
    _states: dict[str, EntityState | None] = field(default_factory=dict)
    _resetting: bool = False
    _reports: dict[str, tuple[str, str]] = field(default_factory=dict)
    _events: dict[str, str] = field(default_factory=dict)
    _controlling: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, device in self.house.devices.items():
            self._controlling[device.entity] = key
            for name, variable in device.variables.items():
                self._reports[variable.report] = (key, name)
            if device.link is not None:
                self._reports[device.link] = (key, "")
            if device.events is not None:
                self._events[device.events] = key

    def connected(self, states: Mapping[str, EntityState]) -> None:
        """Take every state at the start of a connection; changes missed before are kept.

        An attempt in which the house stands after a loss is in doubt like the one before it: how
        it began was not seen.
        """
        standing = states.get(self.house.episode)
        if self._states:
            self.doubt("", "the connection to Home Assistant was lost meanwhile")
            for entity, (key, name) in self._reports.items():
                self._compare(key, name, self._states.get(entity), states.get(entity))
            if standing is None or usable(standing) is not Usable.YES:
                self.attempt = ""
            elif standing.state != RESETTING:
                self.attempt = standing.state
                self.doubt("", "the attempt may have begun while there was no connection")
        self._resetting = standing is not None and standing.state == RESETTING
        for entity in (*self._reports, *self._events, *self._controlling):
            self._states[entity] = states.get(entity)

    def disconnected(self) -> None:
        """The connection ended: what happens from here on is not seen."""
        self._resetting = False
        self.doubt("", "the connection to Home Assistant ended")

    def doubt(self, device: str, reason: str) -> None:
        """Note why the present attempt cannot be judged; the first reason stays."""
        if self.attempt:
            self.doubts.setdefault(self.attempt, {}).setdefault(device, reason)

    def happened(self, event: object) -> None:
        """Take one event; one that cannot be read puts the attempt in doubt."""
        if not self._states:
            # The states with which the first connection begins hold what it tells.
            return
        try:
            changed = _Event.model_validate(event).data
            new = None if changed.new_state is None else state_of(changed.new_state)
        except ValidationError as error:
            self.doubt("", f"an event cannot be read: {fault_of(error)}")
            return
        entity = changed.entity_id
        if entity == self.house.episode:
            self._episode(new)
        elif entity in self._reports:
            self._reported(entity, *self._reports[entity], new)
        elif entity in self._events:
            self._emitted(entity, self._events[entity], new)
        elif entity in self._controlling:
            self._shown(self._controlling[entity], new)

    def _episode(self, new: EntityState | None) -> None:
        state = usable(new)
        if new is None or state is not Usable.YES:
            self.doubt("", f"the episode entity is {state}")
            self.attempt = ""
            return
        was_resetting, self._resetting = self._resetting, new.state == RESETTING
        if self._resetting:
            return
        self.attempt = new.state
        if was_resetting:
            self.live.add(new.state)

    def _reported(self, entity: str, key: str, name: str, new: EntityState | None) -> None:
        old = self._states.get(entity)
        self._states[entity] = new
        if not self._resetting:
            self._compare(key, name, old, new)

    def _compare(
        self, key: str, name: str, old: EntityState | None, new: EntityState | None
    ) -> None:
        if new is None or usable(new) is not Usable.YES:
            self.doubt(key, f"a report of {key} is {usable(new)}")
            return
        before = text_of(old.state) if old is not None else None
        if before == text_of(new.state):
            return
        if new.by_call:
            self.doubt(key, f"{new.entity} was written by a call, not by a device")
            return
        body = {"target": key, "kind": "change", "variable": name, "after": text_of(new.state)}
        self.journal.append(self.attempt, {**body, "before": before})

    def _emitted(self, entity: str, key: str, new: EntityState | None) -> None:
        old = self._states.get(entity)
        self._states[entity] = new
        if self._resetting:
            return
        if new is None or usable(new) not in {Usable.YES, Usable.UNKNOWN}:
            self.doubt(key, f"the events of {key} are {usable(new)}")
            return
        if not _is_later(old, new):
            if _told(old) != _told(new):
                self.doubt(key, f"{entity} told an event that is not later than the last one")
            return
        if new.by_call:
            self.doubt(key, f"{entity} was written by a call, not by a device")
            return
        fields = _fields(new)
        body = {"target": key, "kind": "event", "event": str(new.attributes.get("event_type"))}
        self.journal.append(self.attempt, {**body, "fields": fields})

    def _shown(self, key: str, new: EntityState | None) -> None:
        if self._resetting:
            return
        state = usable(new)
        if state not in {Usable.YES, Usable.UNKNOWN}:
            self.doubt(key, f"{self.house.devices[key].entity} is {state}")

    def fault_of(self, attempt: str, devices: Iterable[str]) -> str:
        """Return why an attempt on some devices cannot be judged; empty where it can."""
        if attempt not in self.live:
            return "the beginning of the attempt was not seen"
        if attempt != self.attempt:
            return "the house stands in another attempt"
        doubts = self.doubts.get(attempt, {})
        return next((doubts[key] for key in ("", *devices) if key in doubts), "")


def _fields(state: EntityState) -> dict[str, str]:
    return {
        name: text_of(value)
        for name, value in state.attributes.items()
        if name not in _NO_FIELDS and value is not None
    }


def _told(state: EntityState | None) -> tuple[str, object, dict[str, str]]:
    """Return what an event entity tells: when, of what kind and with which fields."""
    if state is None:
        return "unknown", None, {}
    return state.state, state.attributes.get("event_type"), _fields(state)


def _is_later(old: EntityState | None, new: EntityState) -> bool:
    """Whether an event entity shows a newer event: a restored one lies in the past."""
    after = _event_time(new)
    if after is None:
        return False
    before = _event_time(old) if old is not None else None
    return before is None or after > before


def _event_time(state: EntityState) -> datetime | None:
    try:
        moment = datetime.fromisoformat(state.state)
    except ValueError:
        return None
    # Times with and without a zone cannot be compared.
    return moment if moment.tzinfo is not None else None


def state_fault(key: str, device: HouseDevice, states: Mapping[str, EntityState]) -> str:
    """Return why a device cannot be judged by its states as they stand; empty where it can.

    Missing, unavailable, left over, assumed, written by a call, or the controlling entity shows
    something else than the device reports.
    """
    if fault := device.fault_in(states):
        return f"{key}: {fault}"
    called = (entity for entity in device.reports() if states[entity].by_call)
    return next((f"{entity} was written by a call, not by a device" for entity in called), "")
