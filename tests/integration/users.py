"""Running our programs as users of their own, where the tests run as root."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.integration.commands import REPOSITORY

SINK, SERVICE, OBSERVER, WORLD, DIRECT = 61001, 61002, 61003, 61004, 61005
"""Numbers that no account of the machine has."""


def as_user(user: int) -> dict[str, Any]:
    """Arguments for ``subprocess`` that run a program as a user without any group of ours."""
    return {"user": user, "group": user, "extra_groups": []}


@cache
def python_for_everybody() -> str:
    """An interpreter with this environment's packages that any user can start; skips without."""
    if os.geteuid() != 0:
        pytest.skip("only root can run programs as other users")
    if _starts(sys.executable):
        return sys.executable
    # The interpreter lies in a folder that others cannot enter: take the system's, same version.
    system = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/local/bin:/usr/bin")
    if system is None:
        pytest.skip("no interpreter of this version can be started by another user")
    place = public_folder()
    subprocess.run([system, "-m", "venv", "--without-pip", str(place / "env")], check=True)
    made = place / "env"
    version = f"python3.{sys.version_info.minor}"
    listed = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), str(REPOSITORY))
    lines = "".join(f"{path}\n" for path in dict.fromkeys(listed))
    (made / "lib" / version / "site-packages" / "here.pth").write_text(lines)
    python = str(made / "bin" / "python")
    if not _starts(python):
        pytest.skip("the packages of this environment cannot be read by another user")
    return python


def _starts(python: str) -> bool:
    try:
        done = subprocess.run(
            [python, "-c", "import sink.__main__, retire.service.server"],
            cwd="/",
            capture_output=True,
            check=False,
            **as_user(SERVICE),
        )
    except PermissionError:
        return False
    return done.returncode == 0


def public_folder() -> Path:
    """A folder that every user can enter and only this one can write; gone with the tests."""
    place = Path(tempfile.mkdtemp(prefix="retire-users-"))
    place.chmod(0o755)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def own_folder(parent: Path, name: str, user: int, mode: int = 0o700) -> Path:
    """A folder that belongs to a user."""
    folder = parent / name
    folder.mkdir()
    folder.chmod(mode)
    os.chown(folder, user, user)
    return folder
