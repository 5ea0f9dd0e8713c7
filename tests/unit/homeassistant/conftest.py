"""A house that lies, fresh for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.homeassistant.lying_home import LyingHome
from tests.unit.homeassistant.small_house import furnish

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def home() -> Iterator[LyingHome]:
    """A furnished house."""
    home = LyingHome().start()
    furnish(home)
    yield home
    home.stop()
