"""A skill that carries a code is held, and the finding never repeats the code."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from retire.bundle import load_bundle
from retire.domain.errors import InputError
from retire.skill import find_secrets

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("The code is 0042.", 4),
        ("Use code `4711` for the side door.", 4),
        ("alarm PIN: 123456", 6),
        ('The door code for the lock is "90210".', 5),
        ("password = hunter2hunter2hunter2", 21),
        ("Set the token to retire_0123456789abcdef.", 23),
    ],
)
def test_a_code_or_password_is_found(text: str, length: int) -> None:
    found = find_secrets(f"# Door\n\n{text}\n")
    assert [(item.line, item.length) for item in found] == [(3, length)]


@pytest.mark.parametrize(
    "text",
    [
        "Never ask for the code.",
        "The code block below shows a call.",
        "Enter the code within 30 seconds.",
        "The token expires after 3600 seconds.",
        "Pin the note to the board at 18:30.",
        "A key code has four digits.",
        "It delivers 1280 x 720 pixels.",
    ],
)
def test_talking_about_codes_is_no_secret(text: str) -> None:
    assert find_secrets(text) == ()


def test_the_panel_carries_none(panel: Path) -> None:
    for path in panel.glob("*/SKILL.md"):
        assert find_secrets(path.read_text()) == (), path


def test_a_bundle_with_a_code_is_held_without_repeating_it(panel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "PRV_L01"
    shutil.copytree(panel / "PRV_L01", folder)
    skill = folder / "SKILL.md"
    skill.write_text(skill.read_text() + "\nThe code is 0042.\n")
    with pytest.raises(InputError) as raised:
        load_bundle(folder)
    assert "SKILL.md" in raised.value.where
    assert "0042" not in str(raised.value)
