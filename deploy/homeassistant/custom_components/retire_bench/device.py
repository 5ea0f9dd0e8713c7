"""A simulated device: takes a command, does it a moment later, and reports by itself.

The rules of a device are those of its bundle's ``world.yaml``: which variables a service sets and
which event it emits. What a device reports never carries the context of the call that moved it,
as with a contact sensor beside a lock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Callable, Mapping

    from homeassistant.core import HomeAssistant

WORK_SECONDS = 0.03
"""How long a device takes from a command to the movement that it reports."""

LATE_SECONDS = 1.0
"""How long a device takes that is told to be late."""


class Fault:
    """Ways in which a device lies, for tests."""

    NONE = "none"
    UNAVAILABLE = "unavailable"
    """Its entities are unavailable."""
    DEAF = "deaf"
    """Commands are taken and nothing happens."""
    OPTIMISTIC = "optimistic"
    """Commands are shown as done and nothing happens."""
    LATE = "late"
    """The movement comes a second later."""
    THERE_AND_BACK = "there_and_back"
    """It moves and goes back at once."""
    SILENT = "silent"
    """It works and reports nothing any more."""
    ALL = (NONE, UNAVAILABLE, DEAF, OPTIMISTIC, LATE, THERE_AND_BACK, SILENT)


def text_of(value: object) -> str:
    """Return a value as the text that a variable holds; numbers as canonical decimal text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        number = Decimal(str(value)).normalize()
        return f"{number:f}"
    return str(value)


class Rule(TypedDict, total=False):
    """What a service does: the variables it sets, and the event it emits with its fields.

    ``$name`` stands for a parameter, which ``defaults`` gives where a call leaves it out.
    """

    set: dict[str, str]
    emit: str
    fields: dict[str, str]
    defaults: dict[str, str]


class OwnService(TypedDict):
    """A service that only the bench has: its rule, and whether each field is required."""

    rule: str
    fields: dict[str, bool]


class Placed(TypedDict):
    """A device as the layout has it; ``reports`` is an entity for each variable."""

    name: str
    state: dict[str, str]
    rules: dict[str, Rule]
    reports: dict[str, str]
    events: str | None
    event_types: list[str]
    native: bool
    own_services: dict[str, OwnService]


class Layout(TypedDict):
    """The layout file: devices by entity, names of records by entity, the episode's entity."""

    episode: str
    records: dict[str, str]
    devices: dict[str, Placed]


@dataclass
class Device:
    """One device of the house."""

    hass: HomeAssistant
    key: str
    name: str
    start: Mapping[str, str]
    rules: Mapping[str, Rule]
    fault: str = Fault.NONE
    state: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    """What the controlling entity shows; differs from ``state`` where the device lies."""

    def __post_init__(self) -> None:
        self.state = dict(self.start)
        self.shown = dict(self.start)
        self._watching: list[Callable[[], None]] = []
        self._reporting: list[Callable[[], None]] = []
        self._emitting: list[Callable[[str, Mapping[str, str]], None]] = []
        self._timers: list[TimerHandle] = []

    @property
    def available(self) -> bool:
        """Whether the device can be reached."""
        return self.fault != Fault.UNAVAILABLE

    @property
    def assumed(self) -> bool:
        """Whether the controlling entity shows a state that nobody reported."""
        return self.shown != self.state

    def watch(self, controlling: Callable[[], None]) -> None:
        """Call back when the controlling entity has something new to show."""
        self._watching.append(controlling)

    def report_to(self, reporting: Callable[[], None]) -> None:
        """Call back when the device reports by itself."""
        self._reporting.append(reporting)

    def emit_to(self, emitting: Callable[[str, Mapping[str, str]], None]) -> None:
        """Call back with name and fields of each event."""
        self._emitting.append(emitting)

    def command(self, service: str, parameters: Mapping[str, object]) -> None:
        """Take a command; it is done after a moment."""
        rule = self.rules[service]
        texts = {key: text_of(value) for key, value in parameters.items()}
        if self.fault == Fault.DEAF:
            return
        if self.fault == Fault.OPTIMISTIC:
            self.shown = {**self.state, **self._filled(rule, rule.get("set", {}), texts)}
            self.show()
            return
        seconds = LATE_SECONDS if self.fault == Fault.LATE else WORK_SECONDS
        self._timers.append(self.hass.loop.call_later(seconds, self._done, rule, texts))

    def _done(self, rule: Rule, texts: Mapping[str, str]) -> None:
        before = dict(self.state)
        self._become({**self.state, **self._filled(rule, rule.get("set", {}), texts)})
        if (event := rule.get("emit")) and self.fault != Fault.SILENT:
            fields = self._filled(rule, rule.get("fields", {}), texts)
            for emitting in self._emitting:
                emitting(event, fields)
        if self.fault == Fault.THERE_AND_BACK:
            self._become(before)

    def _filled(
        self, rule: Rule, values: Mapping[str, str], texts: Mapping[str, str]
    ) -> dict[str, str]:
        known = {**rule.get("defaults", {}), **texts, "target": self.key}
        return {
            name: known[value[1:]] if value.startswith("$") else value
            for name, value in values.items()
        }

    def _become(self, state: dict[str, str]) -> None:
        self.state = state
        self.shown = dict(state)
        self.report()
        self.show()

    def restart(self, state: Mapping[str, str]) -> None:
        """Forget what is under way and stand in a given state."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._become(dict(state))

    def report(self) -> None:
        """Report by itself."""
        if self.fault != Fault.SILENT:
            for reporting in self._reporting:
                reporting()

    def show(self) -> None:
        """Let the controlling entity show what it is to show."""
        for watching in self._watching:
            watching()
