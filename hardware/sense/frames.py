"""What frames are evidence of: told apart by hash, with the times at which they arrived. Pure.

A camera chain can deliver bytes without showing anything that is going on: a frozen picture, a
fixed placeholder, the picture before the action, the same frame two hundred times a second.
Silence may mean that nothing moves. Each of these is told apart from a live view, and what is no
evidence is called unknown, never "no effect".
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003  # in a dataclass field
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from hardware.sense.jpeg import Unusable, examine
from hardware.sense.mjpeg import MultipartReader
from hardware.sense.mjpeg_grammar import Broken, Part, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from hardware.sense.mjpeg_grammar import Event

ENOUGH_REPEATS = 3
"""Arrivals of one picture that should have differed; from here on it is called repeated."""


class Outcome(StrEnum):
    """What an observation says of an action."""

    CONFIRMED = "confirmed"
    """Independently observed."""
    MISMATCH = "mismatch"
    """Observed, but something else than was meant."""
    UNKNOWN = "unknown"
    """No usable evidence; neither a success nor "no effect"."""


class View(StrEnum):
    """What a row of frames shows."""

    LIVE = "live"
    """At least two different pictures, none of them a placeholder."""
    REPEATED = "repeated"
    """One picture over and over."""
    SINGLE = "single"
    """One picture, too few arrivals to tell a live view from a frozen one."""
    PLACEHOLDER = "placeholder"
    SILENT = "silent"
    """A stream without a frame."""
    UNREADABLE = "unreadable"
    """Bytes that gave no frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame as it arrived; seconds on the clock of whoever received it."""

    arrived: float
    sha256: str
    length: int
    width: int
    height: int
    trailing: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Distinct:
    """One picture: its first and last arrival, and how often it came."""

    frame: Frame
    last: float
    arrivals: int


class FrameLedger:
    """Keeps frames in order of arrival, and each different picture once."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._distinct: dict[str, Distinct] = {}

    def add(self, frame: Frame) -> bool:
        """Take a frame; returns whether its picture is new to this ledger."""
        self.frames.append(frame)
        known = self._distinct.get(frame.sha256)
        first, count = (frame, 0) if known is None else (known.frame, known.arrivals)
        self._distinct[frame.sha256] = Distinct(first, frame.arrived, count + 1)
        return known is None

    @property
    def distinct(self) -> tuple[Distinct, ...]:
        """Each different picture, in order of first arrival. Tests count these."""
        return tuple(self._distinct.values())


def view_of(frames: Sequence[Frame], placeholders: Collection[str] = ()) -> View:
    """Say what frames show.

    Args:
        frames: In order of arrival.
        placeholders: Hashes of pictures that stand in for a missing view.
    """
    if not frames:
        return View.SILENT
    pictures = {frame.sha256 for frame in frames}
    real = pictures - set(placeholders)
    if not real:
        return View.PLACEHOLDER
    if len(real) > 1:
        return View.LIVE
    return View.REPEATED if len(frames) >= ENOUGH_REPEATS else View.SINGLE


@dataclass(frozen=True, slots=True)
class AfterAction:
    """What frames say of an action. ``fresh`` holds the pictures that count, each once."""

    outcome: Outcome
    reason: str
    fresh: tuple[Frame, ...] = ()


def after_action(
    frames: Iterable[Frame],
    acted: float,
    before: Collection[str] = (),
    placeholders: Collection[str] = (),
    until: float | None = None,
) -> AfterAction:
    """Apply the rule for evidence of an action: a frame received after it with a new picture.

    Args:
        frames: In order of arrival.
        acted: When the action was sent, on the clock of the arrivals.
        before: Pictures known from before the action; a late copy of one is an old picture.
            Pictures among ``frames`` that arrived before the action count as known too.
        placeholders: Pictures that stand in for a missing view.
        until: When the permission ended; a frame received then or later does not count.
    """
    known = set(before) | set(placeholders)
    fresh: list[Frame] = []
    late = old = 0
    for frame in frames:
        if frame.arrived <= acted:
            known.add(frame.sha256)
        elif until is not None and frame.arrived >= until:
            late += 1
        elif frame.sha256 in known:
            old += 1
        else:
            known.add(frame.sha256)
            fresh.append(frame)
    if fresh:
        return AfterAction(Outcome.CONFIRMED, f"{len(fresh)} new pictures", tuple(fresh))
    if late:
        return AfterAction(Outcome.UNKNOWN, "every frame came after the permission had ended")
    if old:
        return AfterAction(Outcome.UNKNOWN, "every frame is an old picture or a placeholder")
    return AfterAction(Outcome.UNKNOWN, "no frame arrived after the action")


@dataclass(slots=True)
class StreamReading:
    """A stream as it was read.

    Attributes:
        variant: How the stream was written.
        ledger: Its frames.
        faults: Why parts gave no frame, or why the stream could not be followed further.
        bytes_read: All bytes, parts and delimiters.
    """

    variant: str = ""
    ledger: FrameLedger = field(default_factory=FrameLedger)
    faults: list[str] = field(default_factory=list)
    bytes_read: int = 0
    pictures: dict[str, bytes] = field(default_factory=dict)
    """Each different picture's bytes by hash, where keeping them was asked for."""

    @property
    def whole(self) -> bool:
        """Whether everything that arrived was a frame."""
        return not self.faults


def read_stream(
    content_type: str,
    chunks: Iterable[tuple[float, bytes]],
    *,
    keep: bool = False,
    cut: bool = False,
) -> StreamReading:
    """Read a recorded stream.

    Args:
        content_type: As the sender announced it.
        chunks: Arrival time and bytes of each read.
        keep: Whether to keep the pictures themselves.
        cut: Whether the receiver ended the stream, so that a part under way is no fault.
    """
    reading = StreamReading()
    try:
        reader = MultipartReader(content_type)
    except ProtocolError as error:
        reading.faults.append(str(error))
        return reading
    arrived = 0.0
    for arrived, data in chunks:
        reading.bytes_read += len(data)
        _take(reading, reader.feed(data), arrived, keep=keep)
    if not cut:
        _take(reading, reader.close(), arrived, keep=keep)
    reading.variant = reader.variant.words()
    return reading


def _take(reading: StreamReading, events: Iterable[Event], arrived: float, *, keep: bool) -> None:
    for event in events:
        if isinstance(event, Broken):
            detail = f" ({event.detail})" if event.detail else ""
            reading.faults.append(f"{event.fault}{detail}")
        elif isinstance(event, Part):
            _take_part(reading, event, arrived, keep=keep)


def _take_part(reading: StreamReading, part: Part, arrived: float, *, keep: bool) -> None:
    picture = examine(part.body)
    if isinstance(picture, Unusable):
        detail = f" ({picture.detail})" if picture.detail else ""
        reading.faults.append(f"{picture.fault}{detail}")
        return
    frame = Frame(
        arrived,
        picture.sha256,
        picture.length,
        picture.width,
        picture.height,
        picture.trailing,
        picture.notes,
    )
    if reading.ledger.add(frame) and keep:
        reading.pictures[picture.sha256] = part.body[: picture.length]
