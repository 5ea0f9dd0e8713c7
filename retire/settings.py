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
        deployments: The operator's deployments file (``RETIRE_DEPLOYMENTS``), if there is one.
        models: Where fetched weights lie (``RETIRE_MODELS``, or ``models`` in the home).
    """

    home: Path
    plain: bool
    token: str | None = field(default=None, repr=False)
    deployments: Path | None = None
    models: Path = Path("models")


def read_settings() -> Settings:
    """Read the environment."""
    given = os.environ.get("RETIRE_HOME")
    home = Path(given) if given else Path.home() / ".retire"
    models = os.environ.get("RETIRE_MODELS")
    return Settings(
        home=home,
        models=Path(models) if models else home / "models",
        plain=bool(os.environ.get("RETIRE_PLAIN")),
        token=os.environ.get("RETIRE_TOKEN", "").strip() or None,
        deployments=Path(file) if (file := os.environ.get("RETIRE_DEPLOYMENTS")) else None,
    )


def read_secret(variable: str) -> str | None:
    """Return the value of the environment variable that a deployments file names for a key."""
    return os.environ.get(variable, "").strip() or None
