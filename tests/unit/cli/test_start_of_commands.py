"""A command starts fast: what it does not need is not even imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "PIL",
    "alembic",
    "asyncio",
    "cryptography",
    "fastapi",
    "httpx",
    "inspect_ai",
    "jinja2",
    "matplotlib",
    "numpy",
    "openai",
    "pyarrow",
    "reportlab",
    "scipy",
    "securesystemslib",
    "sqlalchemy",
    "uvicorn",
}


@pytest.mark.parametrize(
    ("arguments", "besides"),
    [
        (["--help"], {"pydantic", "retire.bundle", "retire.deployments", "retire.wiring"}),
        (["verify", "--help"], {"retire.bundle", "retire.deployments", "retire.wiring"}),
        (["lint", "bundles/panel/ACC_L01"], {"rich", "retire.wiring", "retire.store"}),
    ],
)
def test_heavy_libraries_are_left_alone(arguments: list[str], besides: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "retire.cli.main", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "retire.cli.verify" in loaded
    assert not (HEAVY | besides) & loaded
