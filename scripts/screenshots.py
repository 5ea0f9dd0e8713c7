#!/usr/bin/env python3
"""Picture every page of the reviewer, light and dark, into ``docs/screenshots``.

Usage: ``python scripts/screenshots.py RUN_DIR [--out FOLDER]``, with the Python that has ``retire``
and ``playwright``. RUN_DIR is the folder of a finished run, for example ``runs/panel``.

Chromium is taken from ``CHROMIUM``, else from ``/usr/bin/chromium``. Pictures are 1,280 by 900
pixels with 256 colours, so that each stays small.

Exit codes: 0 all pictures were made, 2 Chromium or the run is missing.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
RETIRE = Path(sys.executable).with_name("retire")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SIZE = {"width": 1280, "height": 900}
SCHEMES = ("light", "dark")
WAIT_MS = 300_000
"""Verifying a certificate of a large run takes time, which the first look at it waits for."""


def main() -> int:
    """Make the pictures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "screenshots")
    arguments = parser.parse_args()
    chromium = shutil.which(os.environ.get("CHROMIUM", "/usr/bin/chromium"))  # noqa: TID251
    if chromium is None:
        sys.stderr.write("there is no Chromium: install it, or name it with CHROMIUM\n")
        return 2
    if not (arguments.run / "seal.json").exists():
        sys.stderr.write(f"{arguments.run}: not the folder of a finished run\n")
        return 2
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, viewing(arguments.run) as address:
        report = Path(folder) / "report.html"
        subprocess.run(
            [str(RETIRE), "report", str(arguments.run), "--out", folder, "--no-pdf"], check=True
        )
        take(chromium, address, report, arguments.out)
    return 0


@contextmanager
def viewing(run: Path) -> Iterator[str]:
    """Run ``retire view``; yields its address."""
    process = subprocess.Popen(
        [str(RETIRE), "view", str(run), "--port", "0"],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},  # noqa: TID251
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stdout or ():
            if found := re.search(r"http://[^\s/]+", line):
                yield found[0]
                break
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def take(chromium: str, address: str, report: Path, out: Path) -> None:
    """Picture each page in each scheme."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        page.set_default_timeout(WAIT_MS)
        pages = {**addresses(page, address), "report": report.as_uri()}
        for scheme in SCHEMES:
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
            page.set_default_timeout(WAIT_MS)
            for name, place in pages.items():
                page.goto(place)
                page.wait_for_load_state("networkidle")
                target = out / f"{name}-{scheme}.png"
                target.write_bytes(small(page.screenshot()))
                sys.stdout.write(f"{target}: {target.stat().st_size // 1024} KB\n")
            page.close()
        browser.close()


def addresses(page: Page, address: str) -> dict[str, str]:
    """Find a page of each kind by following links, as a reviewer does."""

    def first(selector: str) -> str:
        return address + str(page.locator(selector).first.get_attribute("href"))

    page.goto(f"{address}/ui/runs")
    run = first("#runs tbody a")
    page.goto(run)
    found = {
        "runs": f"{address}/ui/runs",
        "run": run,
        "heat-map": f"{run}#map",
        "support-gap": f"{run}#gap",
        "traces": f"{run}/traces",
        "certificate": first("a[data-certificate]") + "?verify=yes",
        "compare": first('a[href*="/compare"]'),
    }
    page.goto(f"{run}/traces?condition=B2&protected=yes&member=invalid")
    found["cell"] = first("tr[data-seq] th a")
    page.goto(found["cell"])
    found["difference"] = first('[data-step="diff"]')
    found["cell-stages"] = found["cell"] + "#d1"
    return found


def small(picture: bytes) -> bytes:
    """Return a picture with 256 colours."""
    target = io.BytesIO()
    with Image.open(io.BytesIO(picture)) as opened:
        opened.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
            target, "PNG", optimize=True
        )
    return target.getvalue()


if __name__ == "__main__":
    sys.exit(main())
