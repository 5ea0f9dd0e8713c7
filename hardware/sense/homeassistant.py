"""The sensor of a house in Home Assistant: its own connection, its own read-only token.

Events come over a websocket that a thread of its own follows; states are read over the same
connection, so that each reading stands at an exact place among the events. The register of
episodes is the world's database, opened read-only. Nothing here comes from an actuator.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import TimeoutError as NoAnswerError
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import ValidationError

from hardware.homeassistant.errors import HomeAssistantError, UnauthorizedError
from hardware.homeassistant.reading import states_of
from hardware.homeassistant.websocket import Connection, check_token
from hardware.sense.homeassistant_watch import Watch, state_fault
from hardware.sense.journal_file import JournalFile
from hardware.strict import fault_of
from observer.port import EpisodeRow, SensorError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from hardware.homeassistant.access import Access
    from hardware.homeassistant.reading import EntityState
    from hardware.sense.stub import StubWorldSensor
    from observer.sighting import JournalEntry

_Answer = TypeVar("_Answer")

_AGAIN_SECONDS = 0.5
_START_SECONDS = 10.0
_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 0.1


class Link:
    """The websocket, followed by a thread; connects again after a loss, not after a refusal."""

    def __init__(self, access: Access, watch: Watch) -> None:
        self._access = access
        self._watch = watch
        self.lock = threading.Lock()
        self._connection: Connection | None = None
        self._reason = "not connected yet"
        self._settled = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="home-assistant", daemon=True)

    def start(self) -> None:
        """Start, and wait until the first connection stands or failed."""
        self._thread.start()
        self._settled.wait(_START_SECONDS)

    def close(self) -> None:
        """End the connection and the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_ANSWER_SECONDS)

    def states(self) -> dict[str, EntityState]:
        """Return every state; every event before it has been taken.

        Raises:
            SensorError: There is no connection, or no usable answer.
        """
        connection = self._connection
        if connection is None:
            raise SensorError(f"Home Assistant cannot be read: {self._reason}")
        return self._answer(_states(connection))

    def check_token(self) -> None:
        """Ask whether the token is still good; the connection outlives it.

        Raises:
            SensorError: It is not, or nobody says so.
        """
        self._answer(check_token(self._access.url, self._access.token))

    def _answer(self, question: Coroutine[object, None, _Answer]) -> _Answer:
        asked = asyncio.run_coroutine_threadsafe(question, self._loop)
        try:
            return asked.result(_ANSWER_SECONDS)
        except (NoAnswerError, HomeAssistantError) as error:
            asked.cancel()
            raise SensorError(f"Home Assistant cannot be read: {error}") from error

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._keep())
        finally:
            self._settled.set()
            self._loop.close()

    async def _keep(self) -> None:
        stopped = asyncio.ensure_future(self._stop.wait())
        while not stopped.done():
            try:
                await self._follow_once(stopped)
            except UnauthorizedError as error:
                # The same token would be refused again.
                self._reason = str(error)
                self._settled.set()
                await stopped
            except HomeAssistantError as error:
                self._reason = str(error)
            except SensorError as error:
                self._reason = str(error)
            self._settled.set()
            await asyncio.wait([stopped], timeout=_AGAIN_SECONDS)

    async def _follow_once(self, stopped: asyncio.Task[Literal[True]]) -> None:
        connection = await Connection.open(self._access.url, self._access.token, self._take)
        following = asyncio.ensure_future(connection.follow())
        try:
            await connection.ask("subscribe_events", event_type="state_changed")
            states = await _states(connection)
            with self.lock:
                self._watch.connected(states)
            self._connection = connection
            self._settled.set()
            ends: set[asyncio.Task[None] | asyncio.Task[Literal[True]]] = {following, stopped}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._connection = None
            self._reason = "the connection ended"
            with self.lock:
                self._watch.disconnected()
            await connection.close()
            await following

    def _take(self, event: object) -> None:
        with self.lock:
            self._watch.happened(event)


async def _states(connection: Connection) -> dict[str, EntityState]:
    try:
        return states_of(await connection.ask("get_states"))
    except ValidationError as error:
        raise HomeAssistantError(f"the states cannot be read: {fault_of(error)}") from error


class HomeAssistantSensor:
    """Implements ``observer.port.Sensor``.

    Args:
        access: Address, this program's own token, and the house.
        register: The world's register of episodes.
        bundles: Bundle id by contract digest.
        journal: Path of the observer's own journal.

    Raises:
        SensorError: The journal cannot be used.
    """

    def __init__(
        self,
        access: Access,
        register: StubWorldSensor,
        bundles: Mapping[str, str],
        journal: Path,
    ) -> None:
        self._house = access.house
        self._register = register
        self._bundles = bundles
        self._journal = JournalFile(journal)
        self._watch = Watch(access.house, self._journal)
        self._link = Link(access, self._watch)

    def start(self) -> None:
        """Connect; a house that cannot be reached is told with the first question."""
        self._link.start()

    def close(self) -> None:
        """End the connection, and close the journal and the register."""
        self._link.close()
        self._journal.close()
        self._register.close()

    def before(self, attempt: str) -> None:
        """Note nothing: whether the beginning was seen is known from the house's own events."""

    def episode(self, attempt: str) -> EpisodeRow | None:
        """Return the episode of an attempt, or None where there is none."""
        self._link.states()
        self._link.check_token()
        return self._register.episode(attempt)

    def journal(self, attempt: str) -> Sequence[JournalEntry]:
        """Return what the devices reported in one attempt, after each has reported once more.

        Raises:
            SensorError: The attempt was not watched from its beginning without a gap, or a device
                of its bundle cannot be judged: silent, missing, unavailable, left over, assumed,
                written by a call, or at odds with what is shown.
        """
        row = self._register.episode(attempt)
        bundle = self._bundles.get(row.contract_digest, "") if row is not None else ""
        devices = self._house.bundle_devices.get(bundle)
        if devices is None:
            if row is None:
                return self._journal.of(attempt)
            raise SensorError("the house does not hold the bundle of the attempt")
        self._await_reports(devices)
        states = self._link.states()
        self._link.check_token()
        with self._link.lock:
            fault = self._watch.fault_of(attempt, devices)
        for key in devices:
            fault = fault or state_fault(key, self._house.devices[key], states)
        if fault:
            raise SensorError(fault)
        return self._journal.of(attempt)

    def journal_after(self, seq: int, limit: int) -> Sequence[JournalEntry]:
        """Return up to ``limit`` entries of all attempts with larger sequence numbers."""
        self._link.states()
        return self._journal.after(seq, limit)

    def _await_reports(self, devices: Iterable[str]) -> None:
        """Wait until every device has reported since now: a dead one looks steady.

        Report times are compared with each other only, so that no two clocks have to agree.
        """
        entities = [entity for key in devices for entity in self._house.devices[key].reports()]
        first = _report_times(self._link.states(), entities)
        end = time.monotonic() + self._house.report_seconds
        while silent := _silent(first, _report_times(self._link.states(), entities)):
            if time.monotonic() > end:
                raise SensorError(
                    f"{silent} did not report for {self._house.report_seconds:g} seconds"
                )
            time.sleep(_LOOK_SECONDS)


def _report_times(
    states: Mapping[str, EntityState], entities: Iterable[str]
) -> dict[str, datetime | None]:
    found = {}
    for entity in entities:
        state = states.get(entity)
        found[entity] = state.report_time if state is not None else None
    return found


def _silent(first: Mapping[str, datetime | None], now: Mapping[str, datetime | None]) -> str:
    """Return the first entity without a newer report; a missing one is judged elsewhere."""
    for entity, before in first.items():
        after = now[entity]
        if before is not None and after is not None and after <= before:
            return entity
    return ""
