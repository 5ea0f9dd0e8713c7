"""The house in Home Assistant as a world: one episode at a time, frozen after it was confirmed.

A reset puts devices and records into the state of the task, reads everything back, and only then
freezes the same bytes that the stub world freezes. Nothing acts here: actuators reach Home
Assistant themselves and ask this program for the frozen episode alone.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

from hardware.homeassistant.reading import Freshness, Usable, freshness, text_of, usable
from hardware.wire import ActReply
from hardware.world.world import SetUpError, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from hardware.homeassistant.client import HomeAssistantClient
    from hardware.homeassistant.house import House
    from hardware.homeassistant.reading import EntityState
    from hardware.wire import Act
    from hardware.world.bundles import Template
    from hardware.world.store import WorldStore
    from hardware.world.world import Episode

_CONFIRM_SECONDS = 5.0
_SKEW = timedelta(seconds=2)
"""How far Home Assistant's clock may be ahead of this program's."""
_SECTIONS = ("grants", "consents", "facts", "versions")


class HomeAssistantWorld(World):
    """One house, which stands in one episode at a time.

    Args:
        templates: Bundles by template digest.
        bundle_ids: Bundle id by contract digest.
        store: Where episodes are kept; its journal stays empty, the observer keeps its own.
        house: Which entity is which.
        client: With the token of the user who may set the house up.
        now: The clock by which reports are fresh.
    """

    def __init__(
        self,
        templates: Mapping[str, Template],
        bundle_ids: Mapping[str, str],
        store: WorldStore,
        house: House,
        client: HomeAssistantClient,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(templates, store)
        self._bundle_ids = bundle_ids
        self._house = house
        self._client = client
        self._now = now
        self._current: Episode | None = None
        self._one_at_a_time = asyncio.Lock()

    async def _begin(self, episode: Episode) -> None:
        async with self._one_at_a_time:
            # From here the old episode is over: nobody gets it frozen any more.
            self._current = None
            await self._set_up(episode)
            self._store.add_episode(episode.row, episode.snapshot)
            self._current = episode

    def _standing(self, attempt: str) -> Episode | None:
        found = self._current
        return found if found is not None and found.row.attempt == attempt else None

    def _act(self, act: Act, episode: Episode | None) -> ActReply:
        del act, episode
        return ActReply("refused", "this world is acted on elsewhere")

    async def _set_up(self, episode: Episode) -> None:
        bundle = self._bundle_ids.get(episode.row.contract, "")
        if bundle not in self._house.bundle_devices:
            raise SetUpError(f"the house does not hold the bundle {bundle}")
        attempt, devices = episode.row.attempt, episode.state
        records = records_of(self._house, bundle, episode.snapshot)
        await self._client.call(
            "retire_bench.reset", {"attempt": attempt, "devices": devices, "records": records}
        )
        await self._confirm(
            lambda states: (
                difference(self._house, states, attempt, devices, records)
                or stale_report(self._house, states, devices, self._now())
            )
        )

    async def _confirm(self, differs: Callable[[Mapping[str, EntityState]], str]) -> None:
        end = asyncio.get_running_loop().time() + _CONFIRM_SECONDS
        while reason := differs(await self._client.states()):
            if asyncio.get_running_loop().time() > end:
                raise SetUpError(f"the house is not in the state of the task: {reason}")
            await asyncio.sleep(0.05)


def records_of(house: House, bundle: str, snapshot: bytes) -> dict[str, Mapping[str, object]]:
    """Return what each record entity of a bundle holds under a snapshot."""
    value = json.loads(snapshot)
    return {
        house.records[bundle][f"{section}/{name}"]: item
        for section in _SECTIONS
        for name, item in value[section].items()
    }


def difference(
    house: House,
    states: Mapping[str, EntityState],
    attempt: str,
    devices: Mapping[str, Mapping[str, str]],
    records: Mapping[str, Mapping[str, object]],
) -> str:
    """Return the first place in which the house is not as wanted; empty where there is none."""
    standing = states.get(house.episode)
    if standing is None or standing.state != attempt:
        return f"{house.episode} does not name the attempt"
    for entity, record in records.items():
        found = states.get(entity)
        if found is None or usable(found) is not Usable.YES:
            return f"{entity} is {usable(found)}"
        if found.attributes.get("record") != record:
            return f"{entity} holds another record"
    for key, state in devices.items():
        if fault := _device_fault(house, states, key, state):
            return fault
    return ""


def stale_report(
    house: House, states: Mapping[str, EntityState], devices: Iterable[str], now: datetime
) -> str:
    """Return the first report that is not fresh; empty where all are."""
    younger_than = timedelta(seconds=house.report_seconds)
    for key in devices:
        for entity in house.devices[key].reports():
            found = freshness(states[entity], now, younger_than, _SKEW)
            if found is not Freshness.FRESH:
                return f"the report {entity} is {found}"
    return ""


def _device_fault(
    house: House, states: Mapping[str, EntityState], key: str, state: Mapping[str, str]
) -> str:
    device = house.devices[key]
    if fault := device.fault_in(states):
        return f"{key}: {fault}"
    for name, variable in device.variables.items():
        if (reported := text_of(states[variable.report].state)) != text_of(state[name]):
            return f"{key}: {name} is reported as {reported}, not {state[name]}"
    return ""
