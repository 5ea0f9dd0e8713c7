"""A real browser on the pages: Chromium, a ``retire view`` of its own, and what went wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.integration.commands import REPOSITORY, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT_MS = 180_000
"""Long: a loaded machine makes a page slow; slowness is for the benchmarks to say."""


def chromium() -> str | None:
    """Where Chromium is: what ``CHROMIUM`` names, else the system's own; None for neither."""
    named = os.environ.get("CHROMIUM")
    for candidate in (named, "/usr/bin/chromium") if named else ("/usr/bin/chromium",):
        found = shutil.which(candidate)
        if found:
            return found
    return None


@contextmanager
def viewing(folder: Path) -> Iterator[str]:
    """Run ``retire view`` over a folder; yields the address that it says."""
    process = subprocess.Popen(
        [str(SCRIPT), "view", str(folder), "--port", "0"],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            found = re.search(r"http://\S+", line)
            if found:
                yield found[0].rstrip("/.")
                break
        else:
            raise AssertionError(f"retire view ended without an address: {said}")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@contextmanager
def matrix_under_way(
    protocol: Path, bundles: Path, deployments: Path, out: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``retire matrix`` in the background."""
    process = subprocess.Popen(
        [
            str(SCRIPT), "matrix", "--protocol", str(protocol), "--bundles", str(bundles),
            "--out", str(out), "--no-figures", "--deployments", str(deployments),
        ],
        env={**os.environ, "RETIRE_HOME": str(out.parent / "home")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=sys.stderr,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(300)


class Faults:
    """What a page complained of: errors of scripts, refused loads, requests to elsewhere."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        page.on("pageerror", lambda error: self.found.append(f"script: {error}"))
        page.on("dialog", self._dialog)
        page.on("console", self._said)
        page.on("request", self._asked)

    def _dialog(self, dialog: object) -> None:
        self.found.append("a dialog was opened")
        dialog.dismiss()  # type: ignore[attr-defined]

    def _said(self, message: object) -> None:
        if message.type in {"error", "warning"}:  # type: ignore[attr-defined]
            self.found.append(f"console: {message.text}")  # type: ignore[attr-defined]

    def _asked(self, request: object) -> None:
        url = request.url  # type: ignore[attr-defined]
        if not re.match(r"(http://127\.0\.0\.1:\d+/|file:|data:|about:|blob:)", url):
            self.found.append(f"asked elsewhere: {url}")


@contextmanager
def fresh_page(browser: Browser, **wanted: Any) -> Iterator[Page]:  # the library's
    """A page in a context of its own, which ends with it."""
    context = browser.new_context(**wanted)
    context.set_default_timeout(TIMEOUT_MS)
    context.set_default_navigation_timeout(TIMEOUT_MS)
    yield context.new_page()
    context.close()


def settled(page: Page) -> None:
    """Wait until parts that load by themselves are there."""
    page.wait_for_load_state("networkidle")


def opened(page: Page, address: str) -> None:
    """Go to an address and wait until it is whole."""
    page.goto(address)
    settled(page)


def overflow(page: Page) -> int:
    """How many pixels the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def unfolded(page: Page) -> None:
    """Open every part that can be folded away."""
    page.evaluate("for (const it of document.querySelectorAll('details')) { it.open = true; }")
