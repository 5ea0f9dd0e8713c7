"""Fixtures that any test may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# A loaded machine makes single examples slow; slowness is for the benchmarks to say.
settings.register_profile("here", deadline=None)
settings.load_profile("here")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def panel(repository: Path) -> Path:
    """The folder of the panel's bundles."""
    return repository / "bundles" / "panel"
