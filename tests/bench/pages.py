"""Measure the reviewer's pages: ``python -m tests.bench.pages [RUN_DIR]``.

Prints, for a run of 25,920 cells, the time to the first byte and to the full load of the run's
page and of pages of traces, on the first look and afterwards. Without RUN_DIR it makes such a run
first (the panel with 30 repetitions, minutes). Full load needs Chromium and playwright; without
them only the bytes are timed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from retire.cli.signing import write_certificates
from tests.bench.panel import declared, report_run, run
from tests.browser.looking import FLAGS, chromium, viewing

LOOKS = 10
QUERIES = {
    "run": "",
    "traces, first page": "/traces",
    "traces, filtered": "/traces?condition=B2&protected=yes&member=invalid",
    "traces, filter that nothing matches": "/traces?condition=B4&protected=yes&member=invalid",
    "traces, end of the list": "/traces?after=25800",
    "cell": "/cells/1",
}


def first_byte(client: httpx.Client, address: str) -> tuple[float, float, int]:
    """Return milliseconds to the first byte and to the last, and the number of bytes."""
    began = time.perf_counter()
    with client.stream("GET", address) as answer:
        assert answer.status_code == 200, (address, answer.status_code)
        parts = answer.iter_raw()
        size = len(next(parts))
        first = time.perf_counter()
        size += sum(len(part) for part in parts)
    return 1000 * (first - began), 1000 * (time.perf_counter() - began), size


def full_load(address: str) -> list[float]:
    """Return milliseconds until a browser has loaded a page, for each look with a fresh cache."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    taken = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for _ in range(LOOKS):
            page = browser.new_page()
            page.goto(address, wait_until="load")
            taken.append(
                float(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            )
            page.close()
        browser.close()
    return taken


def measure(folder: Path) -> None:
    """Print one line a page."""
    began = time.perf_counter()
    with viewing(folder) as address, httpx.Client(timeout=60) as client:
        print(f"retire view is ready after {time.perf_counter() - began:.1f} s")
        name = f"{address}/ui/runs/{folder.resolve().name}"
        for title, query in QUERIES.items():
            cold, _, size = first_byte(client, name + query)
            warm = [first_byte(client, name + query) for _ in range(LOOKS)]
            firsts, wholes = zip(*((it[0], it[1]) for it in warm), strict=True)
            line = (
                f"{title}: {size / 1024:.0f} KiB; first byte {cold:.0f} ms at the first look, "
                f"then {statistics.median(firsts):.0f} ms (most {max(firsts):.0f}); last byte "
                f"{statistics.median(wholes):.0f} ms"
            )
            if chromium():
                loads = full_load(name + query)
                line += f"; loaded in a browser {statistics.median(loads):.0f} ms"
                line += f" (most {max(loads):.0f})"
            print(line)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a finished run")
    arguments = parser.parse_args()
    if arguments.run is not None:
        measure(arguments.run)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "large"
        finished, seconds, peak = run(declared(repetitions=30), folder)
        report_run("25,920 cells", finished, seconds, peak)
        write_certificates(finished, Path(name) / "home")
        measure(folder)


if __name__ == "__main__":
    main()
