"""Chromium, found or said to be missing, and runs to look at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.browser.looking import FLAGS, Faults, chromium, fresh_page, viewing
from tests.browser.runs import hostile_run
from tests.integration.commands import small_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker that these tests have."""
    config.addinivalue_line("markers", "browser: a real browser looks at the pages")


def _missing(reason: str) -> None:
    if os.environ.get("RETIRE_REQUIRE_BROWSER") == "1":
        pytest.fail(f"RETIRE_REQUIRE_BROWSER is set, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, headless."""
    path = chromium()
    if path is None:
        _missing("no Chromium was found: install it, or name it with CHROMIUM=/path/to/chromium")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ModuleNotFoundError:
        _missing("the library playwright is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS, headless=True)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of its own; it may complain of nothing."""
    with fresh_page(browser, viewport={"width": 1280, "height": 900}) as made:
        faults = Faults(made)
        yield made
        assert faults.found == []


@pytest.fixture(scope="module")
def small(browser: Browser) -> Iterator[str]:
    """The address of a run of two bundles and two deployments."""
    del browser  # no run where there is no browser
    folder, done = small_matrix()
    assert done.code == 0, done.err
    with viewing(folder) as address:
        yield address


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a run whose skill, title and answers were written to break a page."""
    del browser
    folder: Path = hostile_run(tmp_path_factory.mktemp("hostile"))
    with viewing(folder) as address:
        yield address
