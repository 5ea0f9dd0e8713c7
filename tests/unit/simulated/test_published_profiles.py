from __future__ import annotations

from pathlib import Path

from retire.deployments.simulated import PROFILES

PAGE = Path(__file__).parents[3] / "docs" / "simulated-deployments.md"


def test_the_page_shows_the_numbers_that_act():
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    header = next(row for row in rows if row[:2] == ["chance", "heedful"])
    assert header[1:] == list(PROFILES)
    shown = {row[0]: row[1:] for row in rows if len(row) == len(PROFILES) + 1}
    for name in PROFILES["plain"].chances():
        assert shown[name] == [str(p.chances()[name]) for p in PROFILES.values()]
