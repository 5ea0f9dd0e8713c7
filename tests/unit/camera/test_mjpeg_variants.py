"""Streams as cameras write them: one reader, equal pictures, the variant on record."""

from __future__ import annotations

import pytest

from hardware.sense.frames import read_stream
from hardware.sense.mjpeg import MultipartReader
from hardware.sense.mjpeg_grammar import Broken, Ended, Fault, Limits, Part, ProtocolError
from tests.unit.camera.streams import CONTENT_TYPE, jpeg, part, read, sha

PICTURES = [jpeg(shade) for shade in (0, 40, 80)]


def bodies(events):
    return [event.body for event in events if isinstance(event, Part)]


def fault(events):
    (broken,) = [event for event in events if isinstance(event, Broken)]
    return broken.fault


def stream(delimiter=b"--cam7", **options):
    return b"".join(part(item, delimiter=delimiter, **options) for item in PICTURES) + delimiter


VARIANTS = {
    "dashes announced": ("multipart/x-mixed-replace; boundary=--cam7", stream()),
    "quoted, upper case": (
        'multipart/x-mixed-replace;BOUNDARY="cam7"',
        stream(header=b"content-type"),
    ),
    "dashes announced and doubled": (
        "multipart/x-mixed-replace; boundary=--cam7",
        stream(b"----cam7"),
    ),
    "no first delimiter": (CONTENT_TYPE, stream().removeprefix(b"--cam7\r\n")),
    "no lengths": (CONTENT_TYPE, stream(length=None)),
    "line feeds alone": (CONTENT_TYPE, stream(length=None).replace(b"\r\n", b"\n")),
    "blank lines first": (CONTENT_TYPE, b"\r\n\r\n" + stream()),
    "upper-case type": ("Multipart/X-Mixed-Replace; charset=x; boundary=cam7", stream()),
    "closed": (CONTENT_TYPE, stream() + b"--\r\nlater"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_way_of_writing_gives_the_same_pictures(name):
    content_type, data = VARIANTS[name]
    events, _ = read(content_type, data)
    assert bodies(events) == PICTURES
    reading = read_stream(content_type, [(1.0, data)])
    assert [frame.sha256 for frame in reading.ledger.frames] == [sha(item) for item in PICTURES]


def test_the_variant_is_on_record():
    words = {name: read_stream(*[v[0], [(0.0, v[1])]]).variant for name, v in VARIANTS.items()}
    assert "dashes" in words["dashes announced"]
    assert "dashes" not in words["dashes announced and doubled"]
    assert "quoted" in words["quoted, upper case"]
    assert "first delimiter" in words["no first delimiter"]
    assert "length" in words["no lengths"]
    assert "line feeds" in words["line feeds alone"]
    assert words["closed"] == words["blank lines first"] == words["upper-case type"]


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/x-mixed-replace",
        "multipart/x-mixed-replace; boundary=",
        'multipart/x-mixed-replace; boundary=""',
        "multipart/x-mixed-replace; boundary=a; boundary=b",
        "multipart/x-mixed-replace; boundary=a b",
        "multipart/x-mixed-replace; boundary=" + "a" * 200,
        'multipart/x-mixed-replace; boundary="caf\u00e9"',
        "image/jpeg; boundary=cam7",
        "text/html",
        "",
    ],
)
def test_what_announces_no_boundary_is_refused(content_type):
    with pytest.raises(ProtocolError):
        MultipartReader(content_type)
    assert read_stream(content_type, [(0.0, stream())]).faults


def test_no_boundary_is_taken_from_the_first_line():
    events, _ = read(CONTENT_TYPE, stream(b"--other"))
    assert fault(events) is Fault.FOREIGN_DELIMITER
    assert bodies(events) == []


def test_a_delimiter_that_begins_like_ours_is_an_error():
    """The part before it is not confirmed either."""
    for length in ("own", None):
        data = part(PICTURES[0], length=length) + part(PICTURES[1], length=length)
        data += b"--cam77\r\n" + part(PICTURES[2], length=length)
        events, _ = read(CONTENT_TYPE, data)
        assert bodies(events) == PICTURES[:1]
        assert fault(events) is Fault.FOREIGN_DELIMITER


def test_the_first_delimiter_may_be_left_out_once_only():
    later = b"Content-Type: image/jpeg\r\n\r\n" + PICTURES[1]
    events, _ = read(CONTENT_TYPE, part(PICTURES[0]) + later)
    assert bodies(events) == []
    assert fault(events) is Fault.LENGTH_WRONG


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"<html>\r\n<p>Not here</p>", Fault.NO_DELIMITER),
        (b"\r\n" * 5 + stream(), Fault.NO_DELIMITER),
        (b"--cam7\r\nno colon here\r\n\r\n", Fault.BAD_HEADER),
        (b"--cam7\r\nContent-Length: 12a\r\n\r\n", Fault.BAD_HEADER),
        (b"--cam7\r\nContent-Length: -1\r\n\r\n", Fault.BAD_HEADER),
        (b"--cam7\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n", Fault.BAD_HEADER),
        (b"--cam7\r\nContent-Length: 999999999\r\n\r\n", Fault.PART_TOO_LARGE),
        (b"--cam7\r\nX: " + b"y" * 2000, Fault.HEADER_TOO_LONG),
        (b"--cam7\r\n" + b"".join(b"X%d: %s\r\n" % (n, b"y" * 900) for n in range(12)),
         Fault.HEADER_TOO_LONG),
        (b"--cam7" + b" " * 100 + b"\r\n", Fault.FOREIGN_DELIMITER),
        (b"--cam7\r\nContent-Ty", Fault.TRUNCATED),
    ],
)  # fmt: skip
def test_what_follows_no_rule_stops_the_reading_with_a_reason(data, expected):
    events, _ = read(CONTENT_TYPE, data)
    assert fault(events) is expected
    assert bodies(events) == []


def test_no_more_is_held_than_the_limits_allow():
    limits = Limits(part=4000, trailing=100)
    reader = MultipartReader(CONTENT_TYPE, limits)
    reader.feed(b"--cam7\r\n\r\n" + jpeg()[:-2])
    events = []
    for _ in range(100):
        events += reader.feed(b"\x00" * 100)
    assert [event.fault for event in events] == [Fault.PART_TOO_LARGE]
    reader = MultipartReader(CONTENT_TYPE, limits)
    events = reader.feed(b"--cam7\r\n\r\n" + jpeg() + b"x" * 200)
    assert [event.fault for event in events] == [Fault.PART_TOO_LARGE]
    assert reader.feed(stream()) == []


def test_the_end_of_a_stream_is_told_apart_from_its_last_delimiter():
    assert read(CONTENT_TYPE, stream() + b"--\r\n")[0][-1] == Ended(closed=True)
    assert read(CONTENT_TYPE, stream())[0][-1] == Ended(closed=False)
    assert read(CONTENT_TYPE)[0] == [Ended(closed=False)]
    # A whole last part counts without the delimiter that can no longer come.
    events, _ = read(CONTENT_TYPE, part(PICTURES[0]) + part(PICTURES[1])[:-2])
    assert bodies(events) == PICTURES[:2]
