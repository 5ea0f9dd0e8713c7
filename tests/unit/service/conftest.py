"""What the tests of the service share."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from retire.bundle import FILES
from tests.unit.service.fake_keeper import House

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
def archive(panel: Path) -> bytes:
    """A tar.gz of one sound bundle, as `tar czf` makes it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in FILES:
            tar.add(panel / "PRV_L01" / name, f"PRV_L01/{name}")
    return buffer.getvalue()
