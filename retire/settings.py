"""Settings: the only reader of the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Read once at start.

    Attributes:
        home: Where the certifier's key and the trusted keys are kept (``RETIRE_HOME``).
        plain: Print plain lines instead of a live display (``RETIRE_PLAIN`` or no terminal).
        token: Bearer token for a certification server (``RETIRE_TOKEN``); never printed.
    """

    home: Path
    plain: bool
    token: str | None = field(default=None, repr=False)


def read_settings() -> Settings:
    """Read the environment."""
    home = os.environ.get("RETIRE_HOME")
    return Settings(
        home=Path(home) if home else Path.home() / ".retire",
        plain=bool(os.environ.get("RETIRE_PLAIN")),
        token=os.environ.get("RETIRE_TOKEN", "").strip() or None,
    )
