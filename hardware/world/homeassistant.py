"""The house in Home Assistant as a world: one episode at a time, frozen after it was confirmed.

A reset puts devices and records into the state of the task, reads everything back, and only then
freezes the same bytes that the stub world freezes. Nothing acts here: actuators reach Home
Assistant themselves and ask this program for the frozen episode alone.
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from counterfactuals.devices import initial_state
from counterfactuals.template import TemplateError, patches_of, snapshot_bytes
from hardware.homeassistant.errors import HomeAssistantError
from hardware.homeassistant.reading import Freshness, Usable, freshness, text_of, usable
from hardware.world.bundles import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from hardware.homeassistant.client import HomeAssistantClient
    from hardware.homeassistant.house import House
    from hardware.homeassistant.reading import EntityState
    from hardware.world.bundles import Template
    from hardware.world.store import WorldStore

_ATTEMPT = re.compile(r"[0-9a-f]{32}\Z")
_CONFIRM_SECONDS = 5.0
_SKEW = timedelta(seconds=2)
"""How far Home Assistant's clock may be ahead of this program's."""
_SECTIONS = ("grants", "consents", "facts", "versions")


@dataclass(frozen=True, slots=True)
class _Episode:
    attempt: str
    episode: str
    contract: str
    snapshot: bytes
    snapshot_digest: str


class HomeAssistantWorld:
    """The reset face and the act face over one house.

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
        self._templates = templates
        self._bundle_ids = bundle_ids
        self._store = store
        self._house = house
        self._client = client
        self._now = now
        self._standing: _Episode | None = None
        self._one_at_a_time = asyncio.Lock()

    async def reset_face(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer the runner: reset, or say which templates exist. Acting is not offered here."""
        match message.get("op"):
            case "reset":
                return await self._reset(message)
            case "hello":
                return {"templates": sorted(self._templates)}
            case _:
                return {"error": "this face resets; it neither reads nor acts"}

    async def act_face(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer an actuator: the frozen episode, if it is the one in which the house stands."""
        standing = self._standing
        if message.get("op") != "frozen":
            return {"error": "this world is acted on elsewhere", "status": "refused"}
        if standing is None or standing.attempt != message.get("attempt"):
            return {"error": "no such attempt, or the house stands in another one"}
        return {
            "snapshot": standing.snapshot.decode(),
            "snapshot_digest": standing.snapshot_digest,
            "episode": standing.episode,
            "contract": standing.contract,
            "revision": 1,
        }

    async def _reset(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        attempt, template_key = str(message.get("attempt")), str(message.get("template"))
        patch, episode = message.get("patch"), str(message.get("episode"))
        template = self._templates.get(template_key)
        if template is None or not _ATTEMPT.match(attempt):
            return {"error": f"no template {template_key} or no attempt id {attempt}"}
        if not (patch is None or isinstance(patch, str)) or not episode.isascii():
            return {"error": "the patch is no path, or the episode is not ASCII"}
        try:
            patches = patches_of(template.tasks, str(message.get("task")), patch)
            snapshot = snapshot_bytes(template.world, patches)
        except TemplateError as error:
            return {"error": f"TemplateError: {error}"}
        frozen = _Episode(attempt, episode, template.contract_digest, snapshot, digest(snapshot))
        row = (
            attempt,
            template_key,
            str(message.get("task")),
            patch,
            episode,
            template.contract_digest,
            frozen.snapshot_digest,
        )
        async with self._one_at_a_time:
            # From here the old episode is over: nobody gets it frozen any more.
            self._standing = None
            try:
                await self._set_up(template, frozen)
                self._store.add_episode(row, snapshot)
            except (HomeAssistantError, SetUpError, sqlite3.Error) as error:
                return {"error": f"{type(error).__name__}: {error}"}
            self._standing = frozen
        return {"snapshot": snapshot.decode(), "snapshot_digest": frozen.snapshot_digest}

    async def _set_up(self, template: Template, frozen: _Episode) -> None:
        bundle = self._bundle_ids.get(template.contract_digest, "")
        if bundle not in self._house.bundle_devices:
            raise SetUpError(f"the house does not hold the bundle {bundle}")
        devices = initial_state(template.world.devices)
        records = records_of(self._house, bundle, frozen.snapshot)
        await self._client.call(
            "retire_bench.reset",
            {"attempt": frozen.attempt, "devices": devices, "records": records},
        )
        await self._confirm(
            lambda states: (
                difference(self._house, states, frozen.attempt, devices, records)
                or stale_report(self._house, states, devices, self._now())
            )
        )

    async def _confirm(self, differs: Callable[[Mapping[str, EntityState]], str]) -> None:
        end = asyncio.get_running_loop().time() + _CONFIRM_SECONDS
        while reason := differs(await self._client.states()):
            if asyncio.get_running_loop().time() > end:
                raise SetUpError(f"the house is not in the state of the task: {reason}")
            await asyncio.sleep(0.05)


class SetUpError(Exception):
    """The house could not be brought into the state of a task."""


def records_of(house: House, bundle: str, snapshot: bytes) -> dict[str, Mapping[str, Any]]:
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
    records: Mapping[str, Mapping[str, Any]],
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
    controlling = states.get(device.entity)
    if controlling is None or usable(controlling) not in {Usable.YES, Usable.UNKNOWN}:
        return f"{device.entity} is {usable(controlling)}"
    for entity in device.reports():
        if usable(states.get(entity)) is not Usable.YES:
            return f"{entity} is {usable(states.get(entity))}"
    for name, variable in device.variables.items():
        shown, reported = variable.shown(controlling), text_of(states[variable.report].state)
        if not shown == reported == text_of(state[name]):
            return f"{key}: {name} is shown as {shown}, reported as {reported}, not {state[name]}"
    return ""
