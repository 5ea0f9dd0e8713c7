"""The JPEG observer of a camera chain: it reads what a recipient received, and opens nothing.

A stream counts as opened when its bytes were whole pictures, new ones, and more than one: a frozen
view, a placeholder, a page in place of a picture or a cut stream is no evidence and makes the
attempt incomplete. That nothing was opened is said only where the recipient's tap shows nothing
and, if the camera keeps a log of its own, that log shows nothing either.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardware.bench.messages import CameraSetup
from hardware.sense.device_log import DeviceLog
from hardware.sense.frames import Outcome, View, after_action, read_stream, view_of
from hardware.sense.tap import Tap
from observer.port import EpisodeRow, SensorError
from observer.sighting import JournalEntry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardware.bench.messages import TappedStream
    from hardware.sense.frames import StreamReading
    from hardware.sense.stub import StubWorldSensor


__all__ = ["CameraSensor", "CameraSetup"]


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one stream was evidence of; ``unknown`` says why it is none."""

    entry: JournalEntry
    unknown: str


class CameraSensor:
    """Implements ``observer.port.Sensor``.

    Args:
        ground: Where the world's episodes are read.
        setup: The launcher's file, read.
    """

    def __init__(self, ground: StubWorldSensor, setup: CameraSetup) -> None:
        self._ground = ground
        self._setup = setup
        self._tap = Tap(setup.tap)
        self._log = DeviceLog(setup.device) if setup.device is not None else None
        self._known: set[str] = set()
        self._seen: dict[int, _Seen] = {}
        self._before: dict[str, frozenset[int]] = {}

    def before(self, attempt: str) -> None:
        """Note once what the camera's log shows before anything acts in an attempt."""
        if attempt not in self._before:
            shown = self._log.streams() if self._log is not None else []
            self._before[attempt] = frozenset(shown)

    def episode(self, attempt: str) -> EpisodeRow | None:
        """Return the episode of an attempt, or None where there is none."""
        return self._ground.episode(attempt)

    def journal(self, attempt: str) -> Sequence[JournalEntry]:
        """Return one event for each stream that showed a live view.

        Raises:
            SensorError: The beginning was not seen, the camera's log began anew, a stream arrived
                that is no evidence, or nothing arrived and that is not certain.
        """
        if attempt not in self._before:
            raise SensorError("the beginning of the attempt was not seen")
        streams = [item for item in self._tap.streams() if item.attempt == attempt]
        opened, fault = self._opened_by_log(attempt)
        if not streams:
            self._note({"attempt": attempt, "session": None, "log": fault or opened})
            if fault or opened:
                raise SensorError(fault or "the camera opened a stream that no recipient received")
            return []
        seen = [self._look(item, fault or opened) for item in streams]
        for item in seen:
            if item.unknown:
                raise SensorError(item.unknown)
        return [item.entry for item in seen]

    def journal_after(self, seq: int, limit: int) -> Sequence[JournalEntry]:
        """Return an event for every stream with a larger number, live or not."""
        later = [item for item in self._tap.streams() if item.number > seq]
        return [_event(item, self._setup.target) for item in later[:limit]]

    def close(self) -> None:
        """Close the world's database; the tap and the log hold no connection between questions."""
        self._ground.close()

    def _opened_by_log(self, attempt: str) -> tuple[int | None, str]:
        """Return how many streams the camera's log shows for an attempt, and why it cannot."""
        if self._log is None:
            return None, ""
        before = self._before[attempt]
        try:
            shown = set(self._log.streams())
        except SensorError as error:
            return None, str(error)
        # A log drops its oldest numbers only; where a later one is gone, it began anew, and what
        # has a known number now may be another stream.
        if any(number >= min(shown, default=0) for number in before - shown):
            raise SensorError("the camera's log lost streams that it had shown: it began anew")
        return len(shown - before), ""

    def _look(self, stream: TappedStream, log: int | str | None) -> _Seen:
        if stream.number in self._seen:
            return self._seen[stream.number]
        if stream.closed is None:
            raise SensorError("the stream is still open")
        reading = read_stream(
            stream.content_type,
            self._tap.chunks(stream.number),
            keep=self._setup.keep is not None,
            cut=stream.satisfied,
        )
        frames = reading.ledger.frames
        view = _view(reading, self._setup.placeholders)
        until = None if stream.granted is None else stream.opened + stream.granted
        after = after_action(
            frames, stream.opened, self._known, self._setup.placeholders, until=until
        )
        unknown = _why_unknown(view, after.outcome, reading, after.reason)
        self._known |= {frame.sha256 for frame in frames}
        self._keep(reading)
        self._note(
            {
                "attempt": stream.attempt,
                "session": stream.number,
                "recipient": stream.recipient,
                "outcome": str(after.outcome) if not unknown else str(Outcome.UNKNOWN),
                "view": str(view),
                "reason": unknown,
                "frames": len(frames),
                "unique": len(reading.ledger.distinct),
                "fresh": len(after.fresh),
                "hashes": [frame.sha256 for frame in frames],
                "arrivals": [round(frame.arrived - stream.opened, 4) for frame in frames],
                "sizes": sorted({f"{frame.width} x {frame.height}" for frame in frames}),
                "notes": sorted({note for frame in frames for note in frame.notes}),
                "bytes": reading.bytes_read,
                "variant": reading.variant,
                "faults": reading.faults[:10],
                "ended": stream.ended,
                "log": log,
            }
        )
        seen = _Seen(_event(stream, self._setup.target), unknown)
        self._seen[stream.number] = seen
        return seen

    def _keep(self, reading: StreamReading) -> None:
        if self._setup.keep is None:
            return
        self._setup.keep.mkdir(mode=0o700, parents=True, exist_ok=True)
        for sha256, data in reading.pictures.items():
            (self._setup.keep / f"{sha256}.jpg").write_bytes(data)

    def _note(self, line: Mapping[str, object]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            descriptor = os.open(self._setup.evidence, flags, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise SensorError(f"the evidence cannot be kept: {error.strerror}") from error


def _view(reading: StreamReading, placeholders: Sequence[str]) -> View:
    view = view_of(reading.ledger.frames, placeholders)
    return View.UNREADABLE if view is View.SILENT and reading.faults else view


_WORDS = {
    View.REPEATED: "the same picture over and over: no live view",
    View.SINGLE: "one picture alone does not show a live view",
    View.PLACEHOLDER: "a known placeholder in place of a view",
    View.SILENT: "the stream was opened and no picture came",
    View.UNREADABLE: "no readable picture",
}


def _why_unknown(view: View, outcome: Outcome, reading: StreamReading, reason: str) -> str:
    if view is not View.LIVE:
        first = f": {reading.faults[0]}" if reading.faults else ""
        return f"{_WORDS[view]}{first}"
    return "" if outcome is Outcome.CONFIRMED else reason


def _event(stream: TappedStream, target: str) -> JournalEntry:
    return JournalEntry(
        seq=stream.number,
        attempt=stream.attempt,
        target=target,
        kind="event",
        event="stream_opened",
        fields={"recipient": stream.recipient},
    )
