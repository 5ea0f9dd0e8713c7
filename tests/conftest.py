"""Fixtures that any test may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def panel(repository: Path) -> Path:
    """The folder of the panel's bundles."""
    return repository / "bundles" / "panel"
