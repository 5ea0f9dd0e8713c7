"""Which frames are evidence of what."""

from __future__ import annotations

import pytest

from hardware.sense.frames import (
    Frame,
    FrameLedger,
    Outcome,
    View,
    after_action,
    read_stream,
    view_of,
)
from tests.unit.camera.streams import CONTENT_TYPE, jpeg, part, sha


def frame(arrived, name):
    return Frame(arrived, name, 100, 4, 4)


# The first picture twice, silence, an action at 9.9, one new picture, a late copy of the old one,
# then the new one a hundred and sixty times.
ROW = [frame(0.0, "a1"), frame(0.0, "a1"), frame(10.0, "b2"), frame(10.1, "a1")]
ROW += [frame(10.2 + n * 0.005, "b2") for n in range(160)]


def test_pictures_count_once_and_arrivals_are_kept():
    ledger = FrameLedger()
    new = [ledger.add(item) for item in ROW]
    assert sum(new) == 2
    assert [item.frame.sha256 for item in ledger.distinct] == ["a1", "b2"]
    assert [item.arrivals for item in ledger.distinct] == [3, 161]
    assert ledger.distinct[1].frame.arrived == 10.0
    assert len(ledger.frames) == 164


def test_only_a_new_picture_received_after_the_action_counts():
    found = after_action(ROW, 9.9)
    assert found.outcome is Outcome.CONFIRMED
    assert [(item.arrived, item.sha256) for item in found.fresh] == [(10.0, "b2")]


@pytest.mark.parametrize(
    "frames",
    [
        [],
        ROW[:2],
        [frame(0.0, "a1"), frame(10.1, "a1")],
        [frame(9.9, "b2"), frame(10.3, "b2")],
    ],
)
def test_no_or_old_pictures_leave_the_outcome_unknown(frames):
    found = after_action(frames, 9.9)
    assert found.outcome is Outcome.UNKNOWN
    assert found.reason


def test_what_is_known_from_an_earlier_session_is_old():
    assert after_action([frame(2.0, "a1")], 1.0, before={"a1"}).outcome is Outcome.UNKNOWN
    assert after_action([frame(2.0, "p")], 1.0, placeholders={"p"}).outcome is Outcome.UNKNOWN


def test_frames_after_the_permission_has_ended_do_not_count():
    row = [frame(1.0, "a"), frame(2.0, "b"), frame(3.0, "c")]
    found = after_action(row, 0.0, until=2.0)
    assert [item.sha256 for item in found.fresh] == ["a"]
    assert after_action(row[1:], 0.0, until=2.0).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("names", "view"),
    [
        ("", View.SILENT),
        ("a", View.SINGLE),
        ("aa", View.SINGLE),
        ("aaa", View.REPEATED),
        ("ab", View.LIVE),
        ("ppp", View.PLACEHOLDER),
        ("ppa", View.REPEATED),
        ("pab", View.LIVE),
    ],
)
def test_a_live_view_is_told_apart_from_what_looks_like_one(names, view):
    row = [frame(float(n), name) for n, name in enumerate(names)]
    assert view_of(row, placeholders={"p"}) is view


def test_a_recorded_stream_gives_its_frames_with_their_times():
    pictures = [jpeg(n) for n in range(4)]
    chunks = [(10.0 + n, part(item)) for n, item in enumerate(pictures)]
    reading = read_stream(CONTENT_TYPE, [*chunks, (14.0, b"--cam7\r\n")], keep=True)
    assert reading.whole
    assert [item.sha256 for item in reading.ledger.frames] == [sha(item) for item in pictures]
    # A part is known to be whole when its delimiter has arrived.
    assert [item.arrived for item in reading.ledger.frames] == [11.0, 12.0, 13.0, 14.0]
    assert reading.pictures == {sha(item): item for item in pictures}
    assert read_stream(CONTENT_TYPE, chunks).pictures == {}
