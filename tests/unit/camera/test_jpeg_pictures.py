"""Pictures: where they end, what is hashed, and what is none."""

from __future__ import annotations

import io
import struct

import pytest
from PIL import Image

from hardware.sense.frames import read_stream
from hardware.sense.jpeg import Fault, Picture, Unusable, Walk, Walker, examine
from hardware.sense.mjpeg_grammar import Part
from tests.unit.camera.streams import CONTENT_TYPE, jpeg, part, read, sha

# A start and an end marker inside a segment, a stuffed byte in the scan, no frame header.
TRICKY = bytes.fromhex("FFD8 FFE1 0008 FFD8FFD94141 FFDA 0002 12FF0034 FFD9")
TRICKY_SHA = "0f5d4ae1817335b1fb886ae98c34fe3f2ef07cfe71dd3671e9c7abaf85cc8608"


def test_markers_inside_segments_and_scans_do_not_end_a_picture():
    reads = (b"FF", b"D8FFE10008FFD8FFD94141", b"FFDA000212FF0034FF", b"D90D0A2D2D63616D370D0A")
    head = b"--cam7\r\nContent-Type: image/jpeg\r\n\r\n"
    events, _ = read(CONTENT_TYPE, head, *(bytes.fromhex(item.decode()) for item in reads))
    (found,) = [event.body for event in events if isinstance(event, Part)]
    assert (len(found), sha(found)) == (22, TRICKY_SHA)


def test_a_walk_goes_over_fill_bytes_restarts_and_scans():
    data = bytes.fromhex("FFD8 FFFF FFDA 0002 11FFD022FFFF00 FFFFFFDA 0002 33 FFD9") + b"rest"
    walker = Walker()
    assert walker.advance(data) is Walk.DONE
    assert data[walker.end :] == b"rest"
    assert (walker.scans, walker.restarts) == (2, 1)
    assert walker.fill >= 2


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", Fault.NO_END),
        (b"\x89PNG\r\n\x1a\n" + b"0" * 40, Fault.NO_START),
        (b"<html>404</html>", Fault.NO_START),
        (b"\xff\xd8\xff\xd9", Fault.NO_PICTURE),
        (TRICKY, Fault.NO_PICTURE),
        (b"\xff\xd8garbage", Fault.BAD_SEGMENT),
        (b"\xff\xd8\xff\xe0\x00\x01", Fault.BAD_SEGMENT),
        (b"\xff\xd8\xff\xd8", Fault.BAD_SEGMENT),
        (jpeg()[:-2], Fault.NO_END),
        (jpeg()[:200], Fault.NO_END),
        (jpeg(progressive=True)[:-40], Fault.NO_END),
    ],
)
def test_what_is_no_whole_picture_gives_a_reason(data, fault):
    found = examine(data)
    assert isinstance(found, Unusable)
    assert found.fault is fault


@pytest.mark.parametrize("progressive", [False, True])
def test_a_whole_picture_is_described(progressive):
    data = jpeg(7, progressive=progressive)
    found = examine(data)
    assert isinstance(found, Picture)
    assert (found.sha256, found.length, found.width, found.height) == (sha(data), len(data), 24, 16)
    assert any("progressive" in note for note in found.notes) is progressive


def test_bytes_behind_the_end_marker_are_counted_and_not_hashed():
    data = jpeg(9)
    one, two = (examine(data + b"vend" + tail) for tail in (b"0001", b"0002"))
    assert isinstance(one, Picture)
    assert one == two
    assert (one.sha256, one.trailing) == (sha(data), 8)
    assert "8 trailing bytes" in one.notes


def test_a_picture_that_claims_to_be_huge_is_not_decoded():
    data = jpeg()
    at = data.index(b"\xff\xc0") + 5
    bomb = data[:at] + struct.pack(">HH", 65500, 65500) + data[at + 4 :]
    found = examine(bomb)
    assert isinstance(found, Unusable)
    assert found.fault is Fault.TOO_LARGE


def test_a_picture_whose_inside_is_broken_does_not_decode():
    data = jpeg(size=(64, 64))
    at = data.index(b"\xff\xc4")
    broken = data[: at + 5] + b"\xff" * 16 + data[at + 21 :]
    found = examine(broken)
    assert isinstance(found, Unusable)
    assert found.fault is Fault.UNDECODABLE


def test_another_image_format_with_the_right_name_is_no_frame():
    out = io.BytesIO()
    Image.new("RGB", (40, 40)).save(out, "PNG")
    reading = read_stream(CONTENT_TYPE, [(0.0, part(out.getvalue()) * 3)])
    assert reading.ledger.frames == []
    assert len(reading.faults) == 3


WRONG_LENGTHS = {
    "the stream ends before the announced end": part(jpeg(), length=len(jpeg()) + 48)[:-2],
    "less than announced, then a delimiter": part(jpeg()[:-100], length=len(jpeg()))
    + part(jpeg(1)),
    "more than announced": part(jpeg(), length=len(jpeg()) - 112) + part(jpeg(1)),
    "nothing but the two markers": part(b"\xff\xd8\xff\xd9") + b"--cam7\r\n",
}


@pytest.mark.parametrize("name", WRONG_LENGTHS)
def test_a_wrong_length_gives_no_frame_and_a_reason(name):
    reading = read_stream(CONTENT_TYPE, [(0.0, WRONG_LENGTHS[name])])
    assert reading.ledger.frames == []
    assert not reading.whole
