"""A world, a clock and a record that a test can break at any step."""

from __future__ import annotations

import asyncio
import itertools

from sink.contract import read_snapshot
from sink.decision import Binding
from sink.monitor import Monitor, Surroundings
from sink.ports import ActResult, ActStatus, Frozen
from sink.record import digest
from sink.record_file import RecordError, RecordFile
from tests import houses

ATTEMPT = "0123456789abcdef" * 2
CONTRACT_BYTES = houses.file_bytes(houses.contract_data())
CONTRACT_DIGEST = digest(CONTRACT_BYTES)
EPISODE = digest(b"episode")


def snapshot_bytes(*changes):
    data = houses.snapshot_data()
    for path, value in changes:
        houses.put(data, path, value)
    return houses.file_bytes(data)


class FakeWorld:
    """Implements ``sink.ports.Actuator`` in memory and remembers what was sent, in order.

    ``fault`` is raised by the step named in ``broken``; "hang" never answers. ``sent_first`` lets
    a broken act arrive before it breaks.
    """

    def __init__(self, log=None):
        self.episodes = {}
        self.log = log if log is not None else []
        self.broken = ""
        self.fault = None
        self.sent_first = False
        self.status = ActStatus.DONE
        self.detail = ""

    def freeze(self, attempt=ATTEMPT, *changes, episode=EPISODE, contract=CONTRACT_DIGEST):
        data = snapshot_bytes(*changes)
        self.episodes[attempt] = Frozen(data, digest(data), episode, contract, 1)
        return digest(data)

    @property
    def sent(self):
        return [item for item in self.log if item[0] == "act"]

    async def frozen(self, attempt):
        await self._break("frozen")
        await asyncio.sleep(0)
        if attempt not in self.episodes:
            raise LookupError(attempt)
        return self.episodes[attempt]

    async def act(self, attempt, revision, action):
        if self.broken == "act" and not self.sent_first:
            await self._break("act")
        await asyncio.sleep(0)
        self.log.append(("act", attempt, action, revision))
        await self._break("act")
        return ActResult(self.status, self.detail)

    async def _break(self, step):
        if self.broken != step:
            return
        if self.fault == "hang":
            await asyncio.Event().wait()
        raise self.fault


class LoggingRecord:
    """A record file that notes each append and can refuse from some entry on."""

    def __init__(self, path, log):
        self._file = RecordFile(path)
        self._log = log
        self.refuse_from = None
        self._count = itertools.count(1)

    def __getattr__(self, name):
        return getattr(self._file, name)

    async def append(self, body):
        if self.refuse_from is not None and next(self._count) >= self.refuse_from:
            raise RecordError("no space left on device")
        entry = await self._file.append(body)
        self._log.append(("record", body["kind"], body))
        return entry


def surroundings(**changes):
    numbers = itertools.count(1)
    given = {
        "now": lambda: houses.NOW,
        "nonce": lambda: f"nonce-{next(numbers)}",
        "read_snapshot": read_snapshot,
        "deadline_seconds": 5.0,
    }
    return Surroundings(**{**given, **changes})


class Door:
    """A monitor over a fake world and a real record file in a folder."""

    def __init__(self, folder, binding=Binding.CANONICAL, world=None, **changes):
        self.log = [] if world is None else world.log
        self.world = world or FakeWorld(self.log)
        self.path = folder / "record.jsonl"
        self.record = LoggingRecord(self.path, self.log)
        self.monitor = Monitor(
            {CONTRACT_DIGEST: houses.contract()},
            binding,
            self.record,
            self.world,
            surroundings(**changes),
        )

    async def start(self):
        await self.monitor.start()
        return self

    async def ask(self, **changes):
        return await self.monitor.handle(self.message(**changes))

    def message(self, **changes):
        attempt = changes.get("attempt", ATTEMPT)
        frozen = self.world.episodes.get(attempt)
        given = {
            "op": "propose",
            "attempt": attempt,
            "contract": CONTRACT_DIGEST,
            "episode": EPISODE,
            "snapshot": frozen.snapshot_digest if frozen else digest(b""),
            "answer": houses.answer({"target": "climate.den", "temperature": 26.5}),
        }
        return {**given, **changes}

    @property
    def recorded(self):
        return [item[2] for item in self.log if item[0] == "record"]
