"""The actuator of a house in Home Assistant: one literal entity, one service, one request.

Home Assistant answers 200 to a call for an entity that does not exist, widens a call without a
literal id, and takes values beyond an entity's own bounds. So everything is tested before the
call: the entity's grammar, its place in the house, the registry and its domain, its availability,
the parameters' names, types, units, bounds and steps, and that the governed records are still
what was frozen. A call is sent once; what comes back is evidence of nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from hardware.actuate.stub import frozen_episode
from hardware.homeassistant.client import HomeAssistantClient
from hardware.homeassistant.errors import HomeAssistantError, RefusedError, UnauthorizedError
from hardware.homeassistant.parameters import ParameterError, payload_of
from hardware.homeassistant.reading import Usable, is_entity, usable
from hardware.homeassistant.websocket import registry
from hardware.wire import Channel
from sink.ports import ActResult, ActStatus

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from hardware.homeassistant.access import Access
    from hardware.homeassistant.house import House, HouseDevice, HouseService
    from hardware.homeassistant.reading import EntityState
    from sink.contract import Scalar
    from sink.decision import Action
    from sink.ports import Frozen

WORLD_FAILED = "the world failed"
"""Begins the detail of a refusal that says nothing about the candidate: the attempt is lost."""

_KEPT = 64
_SECTIONS = ("grants", "consents", "facts", "versions")


@dataclass(frozen=True, slots=True)
class _Call:
    """What is to be done, and in which attempt."""

    attempt: str
    service: str
    target: str
    parameters: Mapping[str, Scalar]


class HomeAssistantActuator:
    """Implements ``sink.ports.Actuator`` for a house in Home Assistant.

    Args:
        world: The world's act face, asked for frozen episodes alone.
        access: Address, this program's own token, and the house.
        client: Made from the same access.
        bundles: Bundle id by contract digest, for the records that govern it.
        pinned: The registry's own id of each entity when this program started.
        approved: Whether the targets of actions are the entities that were approved. Then the
            house's own names for devices mean nothing, and cannot lead to another entity.
    """

    def __init__(
        self,
        world: Channel,
        access: Access,
        client: HomeAssistantClient,
        bundles: Mapping[str, str],
        pinned: Mapping[str, str],
        *,
        approved: bool = False,
    ) -> None:
        self._world = world
        self._access = access
        self._house: House = access.house
        self._client = client
        self._bundles = bundles
        self._pinned = pinned
        self._device_of = access.house.device_with if approved else access.house.device_of
        self._frozen: OrderedDict[str, Frozen] = OrderedDict()

    @classmethod
    async def open(
        cls,
        face: socket.socket,
        access: Access,
        bundles: Mapping[str, str],
        *,
        approved: bool = False,
    ) -> HomeAssistantActuator:
        """Take over the inherited end of the act face, and pin the registry as it is now.

        Raises:
            HomeAssistantError: The house cannot be reached, or the token is refused.
        """
        face.setblocking(False)  # noqa: FBT003  # the standard library has no keyword
        reader, writer = await asyncio.open_connection(sock=face, limit=2**22)
        pinned = await registry(access.url, access.token)
        client = HomeAssistantClient(access.url, access.token)
        return cls(Channel(reader, writer), access, client, bundles, pinned, approved=approved)

    async def frozen(self, attempt: str) -> Frozen:
        """Return the frozen episode; raises LookupError where the house stands in another one."""
        found = await frozen_episode(self._world, attempt)
        self._frozen[attempt] = found
        if len(self._frozen) > _KEPT:
            self._frozen.popitem(last=False)
        return found

    async def act(self, attempt: str, revision: int, action: Action) -> ActResult:
        """Read the governed records again, and send only if they are what was frozen."""
        frozen = self._frozen.get(attempt)
        if frozen is None or frozen.revision != revision:
            return ActResult(ActStatus.REFUSED, "revision")
        call = _Call(attempt, action.service, action.target, action.parameters)
        return await self._act(call, frozen)

    async def act_unmonitored(
        self, attempt: str, service: str, target: str, parameters: Mapping[str, Scalar]
    ) -> ActResult:
        """Act without comparing records; used by ``hardware.direct`` alone, on a bench alone.

        The house has to stand in the attempt: an act outside of it would be nobody's.
        """
        if not self._house.bench:
            return ActResult(ActStatus.REFUSED, "this house is no bench: nothing acts unmediated")
        try:
            await self.frozen(attempt)
        except LookupError as error:
            return ActResult(ActStatus.REFUSED, str(error))
        return await self._act(_Call(attempt, service, target, parameters), None)

    async def close(self) -> None:
        """End the connections to the world and to Home Assistant."""
        self._world.close()
        await self._client.close()

    async def _act(self, call: _Call, frozen: Frozen | None) -> ActResult:
        device = self._device_of(call.target) if is_entity(call.target) else None
        rule = device.services.get(call.service) if device is not None else None
        if device is None or rule is None:
            detail = f"missing: the house offers no {call.service} there"
            return ActResult(ActStatus.REFUSED, detail)
        try:
            payload = payload_of(rule, call.parameters)
        except ParameterError as error:
            return ActResult(ActStatus.REFUSED, str(error))
        try:
            return await self._checked(device, rule, payload, call.attempt, frozen)
        except HomeAssistantError as error:
            # Nothing was sent yet: only reads precede the call.
            return ActResult(ActStatus.REFUSED, f"{WORLD_FAILED}: {error}")

    async def _checked(
        self,
        device: HouseDevice,
        rule: HouseService,
        payload: Mapping[str, object],
        attempt: str,
        frozen: Frozen | None,
    ) -> ActResult:
        if fault := await self._instance_fault(device.entity, rule):
            return ActResult(ActStatus.REFUSED, fault)
        read = time.monotonic()
        states = await self._client.states()
        found = states.get(device.entity)
        state = usable(found)
        if state not in {Usable.YES, Usable.ASSUMED, Usable.UNKNOWN}:
            return ActResult(ActStatus.REFUSED, f"{WORLD_FAILED}: {device.entity} is {state}")
        standing = states.get(self._house.episode)
        if standing is None or standing.state != attempt:
            detail = f"{WORLD_FAILED}: the house stands in another attempt"
            return ActResult(ActStatus.REFUSED, detail)
        if found is not None and (fault := _out_of_entity_bounds(found, payload)):
            return ActResult(ActStatus.REFUSED, fault)
        if frozen is not None and (fault := self._changed(frozen, states)):
            return ActResult(ActStatus.REFUSED, fault)
        return await self._send(device, rule, payload, read)

    async def _instance_fault(self, entity: str, rule: HouseService) -> str:
        entries = await registry(self._access.url, self._access.token)
        if entity not in entries:
            return f"{WORLD_FAILED}: {entity} is not in the registry"
        if entries[entity] != self._pinned.get(entity):
            return f"{WORLD_FAILED}: {entity} is another device than at the start"
        if any(item.unit == "C" for item in rule.parameters.values()):
            unit = (await self._client.config()).unit_system.temperature
            if unit != self._house.temperature_unit:
                return f"{WORLD_FAILED}: the instance counts in {unit}"
        return ""

    def _changed(self, frozen: Frozen, states: Mapping[str, EntityState]) -> str:
        """Return why the governed records are not what was frozen; empty where they are."""
        records = self._house.records.get(self._bundles.get(frozen.contract_digest, ""), {})
        snapshot = json.loads(frozen.snapshot)
        for section in _SECTIONS:
            for name, record in snapshot[section].items():
                found = states.get(records.get(f"{section}/{name}", ""))
                if found is None or usable(found) is not Usable.YES:
                    return f"{WORLD_FAILED}: the record {section}/{name} is {usable(found)}"
                if found.attributes.get("record") != record:
                    return "revision"
        return ""

    async def _send(
        self,
        device: HouseDevice,
        rule: HouseService,
        payload: Mapping[str, object],
        read: float,
    ) -> ActResult:
        sent = time.monotonic()
        noted = f"records read at most {(sent - read) * 1000:.1f} ms before the call"
        try:
            await self._client.call(rule.service, {**payload, "entity_id": device.entity})
        except UnauthorizedError as error:
            return ActResult(ActStatus.REFUSED, f"{WORLD_FAILED}: {error}")
        except RefusedError as error:
            return ActResult(ActStatus.REFUSED, f"refused by Home Assistant: {error}")
        except HomeAssistantError as error:
            return ActResult(ActStatus.IN_DOUBT, f"{error}; {noted}")
        took = (time.monotonic() - sent) * 1000
        return ActResult(ActStatus.DONE, f"acknowledged only; {noted}, which took {took:.1f} ms")


_BOUNDS = {"temperature": ("min_temp", "max_temp"), "value": ("min", "max")}
"""The attributes in which an entity states the bounds of a value it takes."""


def _out_of_entity_bounds(state: EntityState, payload: Mapping[str, object]) -> str:
    for key, names in _BOUNDS.items():
        low, high = (state.attributes.get(name) for name in names)
        if key in payload and not _lies_between(payload[key], low, high):
            return f"{key} lies outside what {state.entity} says it takes"
    return ""


def _lies_between(value: object, low: object, high: object) -> bool:
    """Whether a value is within the bounds that are stated; no number is within any."""
    if low is None and high is None:
        return True
    least, most = (-inf if low is None else low), (inf if high is None else high)
    return (
        isinstance(value, int | float)
        and isinstance(least, int | float)
        and isinstance(most, int | float)
        and least <= value <= most
    )
