"""A progress display that shows nothing."""

from __future__ import annotations


class Silent:
    """Implements ``retire.runner.engine.Progress``."""

    def begin(self, stage: str, total: int | None, done: int = 0) -> None:
        """Ignore."""

    def advance(self, stage: str, note: str = "") -> None:
        """Ignore."""
