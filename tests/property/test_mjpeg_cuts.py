"""However a stream is cut into reads, the reader says the same of it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hardware.sense.jpeg import Walker
from hardware.sense.mjpeg import MultipartReader
from hardware.sense.mjpeg_grammar import Limits, Part
from tests.unit.camera.streams import CONTENT_TYPE, jpeg, part
from tests.unit.camera.test_jpeg_pictures import TRICKY, WRONG_LENGTHS
from tests.unit.camera.test_mjpeg_variants import VARIANTS

pytestmark = pytest.mark.property

HEAD = b"--cam7\r\nContent-Type: image/jpeg\r\n\r\n"
STREAMS = {
    **VARIANTS,
    **{name: (CONTENT_TYPE, data) for name, data in WRONG_LENGTHS.items()},
    "markers inside": (CONTENT_TYPE, HEAD + TRICKY + b"\r\n--cam7\r\n"),
    "a page": (CONTENT_TYPE, HEAD + b"<html>\r\n\r\n--other\r\n</html>\r\n--cam7\r\n"),
    "trailing bytes": (CONTENT_TYPE, part(jpeg() + b"vend1234", length=None) * 2),
    "foreign": (CONTENT_TYPE, part(jpeg()) + b"--cam77\r\n"),
}


def told(content_type, chunks, limits=None):
    reader = MultipartReader(content_type, limits)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return events + reader.close(), reader.variant


@pytest.mark.parametrize("name", STREAMS)
def test_a_cut_at_every_place_changes_nothing(name):
    content_type, data = STREAMS[name]
    whole = told(content_type, [data])
    for at in range(len(data) + 1):
        assert told(content_type, [data[:at], data[at:]]) == whole, at


@pytest.mark.parametrize("name", STREAMS)
def test_single_bytes_change_nothing(name):
    content_type, data = STREAMS[name]
    single = [data[at : at + 1] for at in range(len(data))]
    assert told(content_type, single) == told(content_type, [data])


PIECES = st.sampled_from(
    [
        b"--cam7", b"\r\n", b"\n", b"\r", b"-", b"--", b" ", b"Content-Length: 4\r\n",
        b"Content-Type: image/jpeg\r\n", b"\r\n\r\n", b"\xff", b"\xff\xd8", b"\xff\xd9",
        b"\xff\xda\x00\x02", b"\xff\xe1\x00\x06", b"abcd", b"\x00", b"x" * 40, TRICKY,
        b"--cam7\r\n", b"--cam7\r\n\r\n" + TRICKY + b"\r\n", b"----cam7\r\n",
        b"Content-Length: 22\r\n",
    ]
)  # fmt: skip


@settings(max_examples=600)
@example(HEAD + b"\r\n--other\r\n" + b"x" * 40 + b"--cam7\r\n", list(range(200)), "cam7")
@given(
    st.lists(PIECES, max_size=30).map(b"".join),
    st.lists(st.integers(0, 400), max_size=12),
    st.sampled_from(["cam7", "--cam7"]),
)
def test_any_bytes_are_read_alike_however_they_are_cut(data, cuts, boundary):
    content_type = f"multipart/x-mixed-replace; boundary={boundary}"
    limits = Limits(part=120, header_line=60, header=150, trailing=30)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    chunks = [data[a:b] for a, b in itertools.pairwise(places)]
    events, variant = told(content_type, chunks, limits)
    assert (events, variant) == told(content_type, [data], limits)
    assert all(len(event.body) <= 120 for event in events if isinstance(event, Part))


@given(st.binary(max_size=300), st.integers(0, 300))
def test_a_walk_in_two_steps_is_a_walk(data, cut):
    picture = b"\xff\xd8" + data
    once, twice = Walker(), Walker()
    once.advance(picture)
    twice.advance(picture[:cut])
    twice.advance(picture)
    assert vars(once) == vars(twice)
