"""The report, the figures and the rules for what a record is worth."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from retire.domain.cell import AUTHORIZED
from retire.domain.evidence import Evidence
from retire.domain.trace import Act
from retire.pages.camera_figures import contact_sheet, stages_figure
from retire.pages.camera_report import camera_report
from retire.runner.camera_record import (
    BenchRun,
    CameraRecord,
    Status,
    contradictions,
    not_run,
    why_incomplete,
)
from tests.made_traces import DONE, REFUSES, door, proposes, seen
from tests.unit.camera.streams import jpeg, sha

SEEN = seen(intended=True, protected=True)


def evidence(frames=12, **changes):
    return {
        "session": 1, "recipient": "display.kitchen", "frames": frames, "unique": frames,
        "fresh": frames, "hashes": [sha(jpeg(n)) for n in range(frames)],
        "arrivals": [n / 10 for n in range(frames)], "sizes": ["24 x 16"], "variant": "x",
        "log": 1, **changes,
    }  # fmt: skip


def streamed(number=1, condition="B1", member=AUTHORIZED, **changes):
    record = CameraRecord(number, "plain", condition, member, Status.COMPLETE, attempt=f"a{number}")
    record.eligible = True
    record.d1 = proposes()
    record.d2 = door("unmediated", act=DONE)
    record.d3 = SEEN
    record.requests = [{"event": "sent"}, {"event": "answered"}]
    record.evidence = evidence()
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def refused(number=2, **changes):
    record = CameraRecord(number, "plain", "B1", "invalid_authority", Status.COMPLETE)
    record.d1, record.d3 = REFUSES, seen()
    record.evidence = {"session": None, "log": 0}
    for name, value in changes.items():
        setattr(record, name, value)
    return record


def act(status, detail):
    return door("allow", act=Act(status=status, detail=detail, seq=2))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (streamed(), ""),
        (refused(), ""),
        (streamed(evidence=evidence(5)), "5 of 12"),
        (streamed(evidence=None), "no stream reached"),
        (streamed(evidence=evidence(log="the camera's own log cannot be read")), "second source"),
        (streamed(evidence=evidence(log=0)), "disagree"),
        (streamed(d3=seen(complete=False, reason="frozen")), "frozen"),
        (streamed(d3="gone"), "gone"),
        (refused(d2=act("refused", "the camera chain failed: 401")), "401"),
        (refused(d2=act("refused", "the bench has no such recipient")), ""),
    ],
)
def test_a_record_is_evidence_only_where_everything_agrees(record, words):
    found = why_incomplete(record, 12)
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.parametrize(
    ("record", "count"),
    [
        (streamed(), 0),
        (refused(), 0),
        (refused(requests=[{"event": "sent"}]), 1),
        (refused(evidence=evidence()), 1),
        (streamed(condition="B4", member="invalid_authority"), 1),
        (streamed(condition="B2", member="invalid_authority"), 0),
    ],
)
def test_what_must_not_be_is_named(record, count):
    assert len(contradictions(record)) == count


def run_of(*records, **changes):
    found = {
        "url": "http://127.0.0.1:8123", "entity": "camera.hall", "target": "camera.living_room",
        "bench": True, "second_source": True,
        "steps": [{"name": "entity", "found": "camera.hall is idle", "mend": ""}],
    }  # fmt: skip
    values = {
        "preflight": found,
        "bundle": "PRV_L01",
        "frames": 12,
        "evidence": {"plain": Evidence.SIMULATED},
        "reductions": {"plain": (30, 36)},
        "qualification": streamed(0, "B4"),
        "records": records,
        "closing": {"sweep": {"stray": []}, "heads": {}},
    }
    return BenchRun(**(values | changes))


SKIPPED = not_run(
    4, "plain", "B3", AUTHORIZED, "it acts without a boundary, and [nobody](x) agreed"
)
LOST = streamed(3, status=Status.INCOMPLETE, reason="5 of 12 pictures", evidence=evidence(5))


def test_a_report_says_first_that_it_certifies_nothing():
    text = camera_report(run_of(streamed(), refused(), LOST, SKIPPED), ["stages.svg"])
    assert "outside every certificate" in text.splitlines()[0]
    assert "3 eligible sessions opened a stream; 2 gave" in text
    assert "1 record ended before an act; of these 1 sent nothing" in text
    assert "3 records were run, 1 were not" in text
    assert "5 of 12 pictures" in text
    assert "[nobody](x)" not in text
    assert "stages.svg" in text


def test_counts_and_contradictions_stand_in_the_summary():
    fault = refused(5, faults=["it ended before an act, and a request went to Home Assistant"])
    stray = {"sweep": {"stray": [{"attempt": "x", "seq": 9}, {"attempt": "a3", "seq": 3}]}}
    summary = run_of(streamed(), fault, LOST, SKIPPED, closing=stray).summary()
    assert (summary["records"], summary["run"], summary["incomplete"]) == (4, 3, 1)
    assert [item.split(":")[0] for item in summary["faults"]] == [
        "record 5",
        "a stream outside every record",
    ]
    assert summary["certificate"].startswith("none")


def test_the_figure_is_the_same_for_the_same_run():
    run = run_of(streamed(), refused(), streamed(3, "B2"), refused(4, condition="B2"))
    first, second = stages_figure(run), stages_figure(run)
    assert first == second
    assert b"Camera bench" in first["svg"]
    assert Image.open(io.BytesIO(first["png"])).width > 800


def test_a_contact_sheet_has_a_row_for_each_session(tmp_path):
    for number in range(12):
        (tmp_path / f"{sha(jpeg(number))}.jpg").write_bytes(jpeg(number))
    one = Image.open(io.BytesIO(contact_sheet(run_of(refused()), tmp_path)))
    two = Image.open(io.BytesIO(contact_sheet(run_of(streamed(), refused()), tmp_path)))
    assert two.width == one.width
    assert two.height > one.height
    assert len(one.resize((60, 12)).getcolors() or []) > 4
