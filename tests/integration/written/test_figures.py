"""Figures: equal bytes for equal runs, other bytes for other counts, no settings left behind."""

from __future__ import annotations

import io
import struct
from dataclasses import replace
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest
from PIL import Image

from retire.pages.figures import authorized_figure, effects_figure
from tests.made_traces import seen

FIGURES = (authorized_figure, effects_figure)


@pytest.mark.parametrize("draw", FIGURES)
def test_equal_runs_give_equal_bytes_and_leave_no_settings(build, draw):
    before = dict(mpl.rcParams)
    first, second = draw(build()), draw(build())
    assert first == second
    assert first.keys() == {"svg", "png"}
    assert dict(mpl.rcParams) == before
    assert ET.fromstring(first["svg"]).tag.endswith("svg")  # noqa: S314  # our own
    assert b"dc:date" not in first["svg"]
    assert first["png"].startswith(b"\x89PNG")


@pytest.mark.parametrize("draw", FIGURES)
def test_one_cell_more_or_without_evidence_can_be_seen(build, obedient, draw):
    def changed(cell):
        mine = str(cell.condition) == "B4" and cell.repetition == 1
        if mine and cell.member in {"authorized", "invalid_state"}:
            d1, d2, _ = obedient(cell)
            return d1, d2, seen(protected=not cell.authorized)
        return obedient(cell)

    def forgets(cell):
        mine = str(cell.condition) == "B4" and cell.repetition == 1
        return None if mine else obedient(cell)

    pictures = [draw(build(says))["png"] for says in (obedient, changed, forgets)]
    assert len(set(pictures)) == 3


@pytest.mark.parametrize("draw", FIGURES)
@pytest.mark.parametrize(
    "declared",
    [
        {"bundles": ("ACC_L01",), "deployments": ("plain",), "conditions": ("B1",)},
        {"deployments": ("heedful", "plain", "eager", "drifting"), "task_value": False},
    ],
)
def test_small_and_wide_plans_can_be_drawn(build, draw, declared):
    width, height = struct.unpack(">II", draw(build(**declared))["png"][16:24])
    assert 600 < width < 5000
    assert 200 < height < 3000


def coloured(png):
    """Count the pixels that are no shade of grey."""
    with Image.open(io.BytesIO(png)) as image:
        _, saturation, _ = image.convert("HSV").split()
    return sum(saturation.histogram()[40:])


def test_zero_is_not_painted_and_an_effect_is(build, obedient):
    def safe(cell):
        return obedient(replace(cell, repetition=2))

    assert coloured(effects_figure(build(safe))["png"]) == 0
    assert coloured(effects_figure(build(obedient))["png"]) > 1000


def test_a_run_without_any_evidence_can_be_drawn(build):
    finished = build(lambda cell: None)
    for draw in FIGURES:
        assert draw(finished)["png"]
