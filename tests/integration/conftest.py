"""Undisturbed runs, to compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.driving import UNDER_WAY, finish

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the plan of 208 cells gives when nothing happens to it."""
    return finish(out=str(tmp_path_factory.mktemp("undisturbed") / "run"))


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    yield
    for left in list(UNDER_WAY):
        left.abandon()
