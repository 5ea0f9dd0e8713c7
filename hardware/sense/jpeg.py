"""JPEG: a walk over its segments, then a full decode. Bytes in, a picture or a reason out.

The walk follows ITU-T T.81, annex B: segments by their length fields, fill bytes before a marker,
and inside scan data the stuffed ``FF 00`` and the restart markers, which are data. It finds where
a picture ends without looking for the end marker's two bytes, which may stand inside a segment.
"""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from PIL import Image, ImageFile

MAX_PIXELS = 40_000_000
"""Largest picture decoded: width times height. A household camera has a fifth of that."""

_START = b"\xff\xd8"
_SCAN, _END, _SECOND_START = 0xDA, 0xD9, 0xD8
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})
"""Markers without a length: TEM and the eight restart markers."""
_RESTARTS = frozenset(range(0xD0, 0xD8))
_FRAME_HEADERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_PROGRESSIVE = frozenset({0xC2, 0xC6, 0xCA, 0xCE})


class Fault(StrEnum):
    """Why bytes are no usable picture."""

    NO_START = "no start marker: these bytes are no JPEG"
    BAD_SEGMENT = "a segment that does not follow the format"
    NO_END = "no end marker: the picture is cut"
    NO_PICTURE = "no picture between start and end marker"
    TOO_LARGE = "more pixels than may be decoded"
    UNDECODABLE = "the picture does not decode"


class Walk(StrEnum):
    """How far a walk is."""

    MORE = "more bytes are needed"
    DONE = "the end marker was reached"
    FAILED = "the bytes are no JPEG"


class Walker:
    """Walks one picture whose bytes arrive bit by bit.

    Attributes:
        end: Offset behind the end marker once the walk is done; where it failed otherwise.
        scans: Scans seen; a progressive picture has several.
        restarts: Restart markers seen inside scan data.
        fill: Fill bytes seen before markers.
        size: Width and height in pixels, once a frame header was read.
    """

    def __init__(self) -> None:
        self.state = Walk.MORE
        self.fault: Fault | None = None
        self.end = 0
        self.scans = 0
        self.restarts = 0
        self.fill = 0
        self.progressive = False
        self.size: tuple[int, int] | None = None
        self._in_scan = False

    def advance(self, data: bytes | bytearray) -> Walk:
        """Go on with the bytes of the picture so far, always given from its first byte."""
        while self.state is Walk.MORE and self._step(data):
            pass
        return self.state

    def _step(self, data: bytes | bytearray) -> bool:
        """Take one step; False where more bytes are needed first."""
        if self.end == 0:
            return self._take_start(data)
        return self._skip_scan(data) if self._in_scan else self._take_segment(data)

    def _take_start(self, data: bytes | bytearray) -> bool:
        if not _START.startswith(bytes(data[:2])):
            self._fail(Fault.NO_START)
            return False
        if len(data) < 2:
            return False
        self.end = 2
        return True

    def _skip_scan(self, data: bytes | bytearray) -> bool:
        """Go to the marker that ends the scan data."""
        at = data.find(b"\xff", self.end)
        if at < 0:
            self.end = len(data)
            return False
        self.end = at
        if at + 1 >= len(data):
            return False
        following = data[at + 1]
        if following == 0x00 or following in _RESTARTS:
            self.restarts += following != 0x00
            self.end = at + 2
        elif following == 0xFF:
            self.fill += 1
            self.end = at + 1
        else:
            self._in_scan = False
        return True

    def _take_segment(self, data: bytes | bytearray) -> bool:
        at = self.end
        if len(data) < at + 2:
            if len(data) > at and data[at] != 0xFF:
                self._fail(Fault.BAD_SEGMENT)
            return False
        if data[at] != 0xFF:
            self._fail(Fault.BAD_SEGMENT)
            return False
        marker = data[at + 1]
        if marker == 0xFF:
            self.fill += 1
            self.end = at + 1
        elif marker == _END:
            self.end = at + 2
            self.state = Walk.DONE
        elif marker in {0x00, _SECOND_START}:
            self._fail(Fault.BAD_SEGMENT)
        elif marker in _ALONE:
            self.end = at + 2
        else:
            return self._take_length(data, at, marker)
        return self.state is Walk.MORE

    def _take_length(self, data: bytes | bytearray, at: int, marker: int) -> bool:
        if len(data) < at + 4:
            return False
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if length < 2:
            self._fail(Fault.BAD_SEGMENT)
            return False
        if len(data) < at + 2 + length:
            return False
        if marker in _FRAME_HEADERS:
            self._read_frame_header(bytes(data[at + 4 : at + 2 + length]), marker)
        self._in_scan = marker == _SCAN
        self.scans += marker == _SCAN
        self.end = at + 2 + length
        return self.state is Walk.MORE

    def _read_frame_header(self, header: bytes, marker: int) -> None:
        if len(header) < 6:
            self._fail(Fault.BAD_SEGMENT)
            return
        height, width = struct.unpack(">HH", header[1:5])
        self.size = (width, height)
        self.progressive = marker in _PROGRESSIVE

    def _fail(self, fault: Fault) -> None:
        self.state, self.fault = Walk.FAILED, fault


@dataclass(frozen=True, slots=True)
class Picture:
    """One complete picture that decodes.

    Attributes:
        sha256: Over the bytes from start to end marker and nothing else, so a camera that
            appends something to each picture does not make equal pictures look different.
        length: Those bytes, counted.
        trailing: Bytes that followed the end marker.
        notes: What was unusual and harmless.
    """

    sha256: str
    length: int
    width: int
    height: int
    trailing: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unusable:
    """Bytes that show no picture, and why."""

    fault: Fault
    detail: str = ""


Examined: TypeAlias = Picture | Unusable


def examine(data: bytes) -> Examined:
    """Judge the body of one part: a complete picture that decodes, or why it is none.

    What the sender called the bytes plays no part. Nothing is completed and no tolerant decoding
    is used, so a picture that was cut is none.
    """
    walker = Walker()
    state = walker.advance(data)
    if state is Walk.FAILED:
        return Unusable(walker.fault or Fault.BAD_SEGMENT, f"at byte {walker.end}")
    if state is Walk.MORE:
        return Unusable(Fault.NO_END, f"{len(data)} bytes")
    if walker.size is None or not walker.scans or 0 in walker.size:
        return Unusable(Fault.NO_PICTURE, f"{walker.end} bytes")
    width, height = walker.size
    if width * height > MAX_PIXELS:
        return Unusable(Fault.TOO_LARGE, f"{width} x {height}")
    jpeg = data[: walker.end]
    fault = _decode(jpeg, walker.size)
    if fault:
        return Unusable(Fault.UNDECODABLE, fault)
    trailing = len(data) - len(jpeg)
    digest = hashlib.sha256(jpeg).hexdigest()
    return Picture(digest, len(jpeg), width, height, trailing, _notes(walker, trailing))


def _decode(jpeg: bytes, size: tuple[int, int]) -> str:
    """Decode every pixel; returns why that failed, or nothing."""
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        return "this process decodes cut pictures, so its word would mean nothing"
    try:
        with Image.open(io.BytesIO(jpeg), formats=["JPEG"]) as image:
            if image.size != size:
                return "two frame headers disagree about the size"
            image.load()
    except (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError) as error:
        return f"{type(error).__name__}: {error}"[:200]
    return ""


def _notes(walker: Walker, trailing: int) -> tuple[str, ...]:
    found = []
    if trailing:
        found.append(f"{trailing} trailing bytes")
    if walker.fill:
        found.append(f"{walker.fill} fill bytes")
    if walker.progressive:
        found.append(f"progressive, {walker.scans} scans")
    return tuple(found)
