"""One suite for every implementation of the sink's actuator port."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace

import pytest

from hardware.actuate.homeassistant import HomeAssistantActuator
from hardware.actuate.stub import StubWorldActuator
from hardware.homeassistant.access import Access
from hardware.homeassistant.client import HomeAssistantClient
from hardware.homeassistant.layout import Bundle, house_of
from hardware.wire import serve
from hardware.world.bundles import Template, digest
from hardware.world.homeassistant import HomeAssistantWorld
from hardware.world.store import WorldStore
from hardware.world.world import StubWorld
from sink.decision import Action
from sink.ports import ActStatus, Frozen
from tests import houses
from tests.unit.homeassistant.lying_home import TOKEN, LyingHome, now
from tests.unit.sink.fake_world import ATTEMPT, CONTRACT_DIGEST, EPISODE, FakeWorld

pytestmark = pytest.mark.contract

ACTION = Action("climate.set", "climate.den", houses.contract().action.canonical)


class InMemory:
    """The fake that the monitor's own tests use."""

    async def open(self, folder):
        self.actuator = FakeWorld()

    async def freeze(self):
        self.actuator.freeze()

    def acts(self):
        return len(self.actuator.sent)

    async def close(self):
        pass


class StubWorldOverItsFace:
    """The stub world at the other end of a socket pair."""

    async def open(self, folder):
        template = Template(houses.world(), houses.tasks(), CONTRACT_DIGEST)
        self.store = WorldStore(folder / "world.sqlite")
        self.world = StubWorld({"t": template}, self.store)
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=theirs)
        self.serving = asyncio.ensure_future(serve(reader, writer, self.world.act_face))
        self.actuator = await StubWorldActuator.open(ours)

    async def freeze(self):
        reset = {"op": "reset", "attempt": ATTEMPT, "template": "t", "task": "locked"}
        reply = await self.world.reset_face({**reset, "patch": None, "episode": EPISODE})
        assert "error" not in reply

    def acts(self):
        found = self.store._connection.execute("SELECT count(*) FROM journal").fetchone()
        return found[0]

    async def close(self):
        self.actuator._channel.close()
        await self.serving
        self.store.close()


class HouseInHomeAssistant:
    """A house in the stand-in of Home Assistant, its world at the other end of a socket pair."""

    async def open(self, folder):
        bundle = Bundle("DEN_HEAT", houses.world(), houses.contract())
        self.house = house_of([bundle])
        self.home = LyingHome().start()
        self.home.on_call = self.obey
        self.home.registry = {key: key for key in self.house.devices}
        access = Access(self.home.url, TOKEN, self.house)
        self.client = HomeAssistantClient(access.url, access.token)
        self.store = WorldStore(folder / "world.sqlite")
        template = Template(houses.world(), houses.tasks(), CONTRACT_DIGEST)
        ids = {CONTRACT_DIGEST: "DEN_HEAT"}
        self.world = HomeAssistantWorld(
            {"t": template}, ids, self.store, self.house, self.client, now
        )
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=theirs)
        self.serving = asyncio.ensure_future(serve(reader, writer, self.world.act_face))
        self.actuator = await HomeAssistantActuator.open(ours, access, ids)

    def obey(self, service, data):
        if service != "retire_bench.reset":
            return
        for entity, record in data["records"].items():
            self.home.set(entity, "x", {"record": record})
        for key, state in data["devices"].items():
            self.home.set(key, "ready", state)
            for name, variable in self.house.devices[key].variables.items():
                self.home.set(variable.report, state[name])
            if self.house.devices[key].link:
                self.home.set(self.house.devices[key].link, "alive")
        self.home.set(self.house.episode, data["attempt"])

    async def freeze(self):
        reset = {"op": "reset", "attempt": ATTEMPT, "template": "t", "task": "locked"}
        reply = await self.world.reset_face({**reset, "patch": None, "episode": EPISODE})
        assert "error" not in reply, reply

    def acts(self):
        return sum(service == "climate.bench_set" for service, _ in self.home.calls)

    async def close(self):
        await self.actuator.close()
        await self.serving
        await self.client.close()
        self.home.stop()
        self.store.close()


@pytest.fixture(params=[InMemory, StubWorldOverItsFace, HouseInHomeAssistant])
async def world(request, tmp_path):
    world = request.param()
    await world.open(tmp_path)
    yield world
    await world.close()


async def test_an_unknown_attempt_is_a_lookup_error(world):
    with pytest.raises(LookupError):
        await world.actuator.frozen(ATTEMPT)


async def test_a_frozen_episode_has_the_digest_of_its_bytes(world):
    await world.freeze()
    frozen = await world.actuator.frozen(ATTEMPT)
    assert isinstance(frozen, Frozen)
    assert digest(frozen.snapshot) == frozen.snapshot_digest
    assert (frozen.episode, frozen.contract_digest) == (EPISODE, CONTRACT_DIGEST)
    assert houses.snapshot().as_of.encode() in frozen.snapshot
    again = await world.actuator.frozen(ATTEMPT)
    assert again.age_seconds >= frozen.age_seconds >= 0
    assert replace(again, age_seconds=frozen.age_seconds) == frozen


async def test_reading_does_not_act_and_acting_answers_done(world):
    await world.freeze()
    frozen = await world.actuator.frozen(ATTEMPT)
    assert world.acts() == 0
    result = await world.actuator.act(ATTEMPT, frozen.revision, ACTION)
    assert result.status is ActStatus.DONE
    assert world.acts() == 1
