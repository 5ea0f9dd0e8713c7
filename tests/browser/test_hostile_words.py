"""Words that were written to break a page are shown as words, on every page that shows them."""

from __future__ import annotations

import re

import pytest

from tests.browser.looking import opened, overflow
from tests.browser.runs import MARKUP

pytestmark = pytest.mark.browser

RAW = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\x1b]")


def check(page):
    """Nothing of the hostile words was taken for markup, ran, or moved other words."""
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator("img").count() == 0
    assert page.locator("script:not([src])").count() == 0
    assert not RAW.search(page.locator("html").inner_text())
    assert not RAW.search(page.content())


def run_address(page, hostile):
    opened(page, f"{hostile}/ui/runs")
    check(page)
    return hostile + page.locator("#runs tbody a").first.get_attribute("href")


@pytest.mark.parametrize("width", [400, 1280, 2000])
def test_the_cell_of_a_hostile_answer(page, hostile, width):
    page.set_viewport_size({"width": width, "height": 900})
    run = run_address(page, hostile)
    for query in ("protected=yes&member=invalid", "d1=invalid", "d1=refusal"):
        opened(page, f"{run}/traces?{query}")
        check(page)
        assert overflow(page) <= 0
        page.locator("tr[data-seq] th a").first.click()
        page.locator("#raw").wait_for()
        check(page)
        raw = page.locator("#raw").inner_text()
        assert "onerror=hacked=1" in raw
        assert "\\u202e" in raw
        assert "w" * 5000 in raw
        assert overflow(page) <= 0


@pytest.mark.parametrize("width", [400, 1280, 2000])
def test_a_hostile_skill_and_title(page, hostile, width):
    page.set_viewport_size({"width": width, "height": 900})
    run = run_address(page, hostile)
    opened(page, run)
    check(page)
    assert overflow(page) <= 0
    page.locator("a[data-diff]").first.click()
    page.locator('body[data-page="diff"]').wait_for()
    check(page)
    assert MARKUP in page.locator("table.diff").inner_text()
    assert overflow(page) <= 0


def test_a_hostile_filter_is_refused_or_shown_as_text(page, hostile):
    run = run_address(page, hostile)
    opened(page, f"{run}/traces?deployment=%3Cscript%3Ehacked%3D1%3C/script%3E%E2%80%AE")
    check(page)
