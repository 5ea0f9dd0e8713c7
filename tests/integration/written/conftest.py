"""Files that a run is turned into and other programs open: figures, a report, logs."""

from __future__ import annotations

from tests.unit.exports.conftest import certified, sealed
from tests.unit.pages.conftest import build, obedient

__all__ = ["build", "certified", "obedient", "sealed"]
