"""``python -m tests.fuzz.framing [--seconds N] [--engine atheris|mutations]``."""

from __future__ import annotations

from tests.fuzz import engine

if __name__ == "__main__":
    engine.main("framing")
