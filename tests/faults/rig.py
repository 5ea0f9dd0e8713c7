"""A real monitor over a scripted world, and what was seen of both."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sink.contract import canonical_scalar, load_contract, read_snapshot
from sink.decision import Binding
from sink.monitor import Monitor, Surroundings
from sink.ports import ActResult, ActStatus, Frozen
from sink.record import digest, parse_line
from sink.record_file import RecordFile
from tests import houses
from tests.faults import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from sink.decision import Action

ATTEMPT = "0123456789abcdef" * 2
EPISODE = digest(b"episode")
PATIENT_SECONDS = 30.0
"""The deadline where nothing hangs: a slow disk must not look like a fault."""
SHORT_SECONDS = 0.05
"""The deadline where something hangs."""
GONE = object()
"""In place of a value: the snapshot lacks that place."""

MARKS = "#'"
"""What canonical values carry to keep a number apart from a text."""

Change = tuple[str, Any]


def contract_data() -> dict[str, Any]:
    """The household's contract, with an age for its second fact too."""
    data = houses.contract_data()
    for predicate in data["predicates"]:
        if predicate["id"] == "outdoor":
            predicate["maximum_age_seconds"] = 900
    return data


CONTRACT_BYTES = houses.file_bytes(contract_data())
CONTRACT = digest(CONTRACT_BYTES)


def snapshot_bytes(changes: tuple[Change, ...] = ()) -> bytes:
    """The snapshot in which everything holds, but for some places."""
    data = houses.snapshot_data()
    for path, value in changes:
        if value is GONE:
            *parents, last = path.split("/")[1:]
            place = data
            for part in parents:
                place = place[part]
            del place[last]
        else:
            houses.put(data, path, value)
    return json.dumps(data).encode()


@dataclass(frozen=True)
class Act:
    """One act that reached the device, and what was on record at that moment."""

    attempt: str
    text: str
    was_recorded: bool
    was_authorized: bool


def action_text(action: Action) -> str:
    """What was sent, in one line."""
    given = action.parameters.items()
    values = [f"{key}={str(canonical_scalar(value)).lstrip(MARKS)}" for key, value in given]
    return " ".join([action.service, action.target, *values])


@dataclass
class World:
    """Implements ``sink.ports.Actuator``: compares and acts; breaks where it is told to.

    An act does not move the revision: that nothing is sent twice is left to the sink alone.
    """

    authorized: Callable[[str, Frozen], bool]
    on_disk: Callable[[], list[Mapping[str, Any]]]
    episodes: dict[str, Frozen] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)
    frozen_fault: Exception | None = None
    before_act: Exception | None = None
    after_act: Exception | None = None
    hangs_when: str = ""
    moves: bool = False
    """Whether something changes between the decision and the act."""
    yields: int = 1
    """Turns of the event loop that an answer takes."""

    async def frozen(self, attempt: str) -> Frozen:
        await self._pause("frozen")
        if self.frozen_fault is not None:
            raise self.frozen_fault
        if attempt not in self.episodes:
            raise LookupError(attempt)
        return self.episodes[attempt]

    async def act(self, attempt: str, revision: int, action: Action) -> ActResult:
        await self._pause("before act")
        if self.before_act is not None:
            raise self.before_act
        self.revisions[attempt] += self.moves
        if revision != self.revisions[attempt]:
            return ActResult(ActStatus.REFUSED, "revision")
        intents = [body["attempt"] for body in self.on_disk() if body.get("decision") == "allow"]
        authorized = self.authorized(attempt, self.episodes[attempt])
        self.acts.append(Act(attempt, action_text(action), attempt in intents, authorized))
        await self._pause("after act")
        if self.after_act is not None:
            raise self.after_act
        return ActResult(ActStatus.DONE)

    async def _pause(self, step: str) -> None:
        if self.hangs_when == step:
            await asyncio.Event().wait()
        for _ in range(self.yields):
            await asyncio.sleep(0)


class Rig:
    """One sink with everything around it in reach."""

    def __init__(
        self,
        folder: Path,
        binding: Binding = Binding.CANONICAL,
        deadline_seconds: float = PATIENT_SECONDS,
    ) -> None:
        self.path = folder / "record.jsonl"
        self.binding = binding
        self.deadline_seconds = deadline_seconds
        self.contracts = {CONTRACT: load_contract(CONTRACT_BYTES, "contract.yaml")}
        self.asked: list[Mapping[str, Any]] = []
        self.world = World(self._authorized, self.on_disk)
        self.now: Callable[[], str] = lambda: houses.NOW
        self.read: Callable[[bytes], Any] = read_snapshot
        self._nonces = itertools.count(1)
        self.open()

    def open(self) -> None:
        """Start a sink on the record, as after a restart; what the world holds stays."""
        self.record = self.make_record()
        self.monitor = Monitor(
            self.contracts,
            self.binding,
            self.record,
            self.world,
            Surroundings(
                now=self._time,
                nonce=lambda: f"nonce-{next(self._nonces)}",
                read_snapshot=self._snapshot,
                deadline_seconds=self.deadline_seconds,
            ),
        )

    def make_record(self) -> Any:
        """The record that the sink stands on."""
        return RecordFile(self.path)

    # A test may replace either while the sink runs.
    def _time(self) -> str:
        return self.now()

    def _snapshot(self, data: bytes) -> Any:
        return self.read(data)

    async def restart(self) -> None:
        self.record.close()
        self.open()
        await self.monitor.start()

    def freeze(self, data: bytes, attempt: str = ATTEMPT, stated: str | None = None) -> None:
        """Let the world hold an episode."""
        frozen = Frozen(data, stated or digest(data), EPISODE, CONTRACT, 1)
        self.world.episodes[attempt] = frozen
        self.world.revisions[attempt] = 1

    def message(self, **fields: Any) -> dict[str, Any]:
        """A message that is right in every way, but for the fields given."""
        frozen = self.world.episodes.get(fields.get("attempt", ATTEMPT))
        return {
            "op": "propose",
            "attempt": ATTEMPT,
            "contract": CONTRACT,
            "episode": EPISODE,
            "snapshot": frozen.snapshot_digest if frozen else digest(b""),
            "answer": houses.answer({"target": "climate.den", "temperature": 26.5}),
            **fields,
        }

    async def ask(self, **fields: Any) -> Mapping[str, Any]:
        """Hand the monitor one message."""
        message = self.message(**fields)
        self.asked.append(message)
        return await self.monitor.handle(message)

    def on_disk(self) -> list[Mapping[str, Any]]:
        """The bodies of all whole entries of the record file."""
        entries = [parse_line(line) for line in self.path.read_bytes().splitlines()]
        return [entry.body for entry in entries if entry is not None]

    def _authorized(self, attempt: str, frozen: Frozen) -> bool:
        """Whether the reference lets any message of this attempt act."""
        truth = reference.Truth(frozen.snapshot, frozen.episode, frozen.contract_digest)
        return any(
            reference.may_act({CONTRACT: contract_data()}, str(self.binding), message, truth)
            for message in self.asked
            if message.get("attempt") == attempt
        )


class Collected:
    """A stream's writing end that keeps what was written."""

    def __init__(self) -> None:
        self.data = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        self.closed = True

    def replies(self) -> list[Any]:
        """The messages that were written."""
        found, rest = [], self.data
        while rest:
            length = int.from_bytes(rest[:4], "big")
            found.append(json.loads(rest[4 : 4 + length]))
            rest = rest[4 + length :]
        return found


def framed(value: object) -> bytes:
    """A frame of the sink's socket around bytes or a JSON value."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return len(data).to_bytes(4, "big") + data


def folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="retire-faults-")
