"""What a killed server leaves half made: folders of submissions and of uploads.

Whoever makes one holds a shared lock meanwhile, and the lock ends with its process, however that
ends. Who holds the lock alone thus knows that everything half made is nobody's.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from retire.domain.errors import IncompleteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LOCK = "under-way.lock"
MARK = ".arriving"
"""Stands in the folder of a run that is not in the registry yet."""

UPLOAD = "retire-upload-"
"""How folders of uploads begin."""

log = logging.getLogger("retire.service")


@contextmanager
def under_way(folder: Path) -> Iterator[None]:
    """Make something below a folder; nobody sweeps there meanwhile.

    Raises:
        IncompleteError: The folder cannot be written.
    """
    with _locked(folder, fcntl.LOCK_SH):
        yield


@contextmanager
def arriving(place: Path) -> Iterator[None]:
    """Mark a run's folder until the run is in the registry."""
    mark = place / MARK
    try:
        place.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        raise _full(error) from error
    yield
    # Left behind, it is taken off by the next sweep: the run is known then.
    with suppress(OSError):
        mark.unlink()


def sweep_runs(data: Path, known: Callable[[str], bool]) -> bool:
    """Remove the folders of submissions and of bundles that never came to be.

    Only a marked folder of a run that the registry does not know goes: with another database than
    before, every run looks unknown, and its evidence must stay.

    Args:
        data: The service's own folder.
        known: Whether the registry has a run.

    Returns:
        False where a server is just taking something in, so that nothing was looked at.

    Raises:
        IncompleteError: The folder cannot be written.
    """
    try:
        with _locked(data, fcntl.LOCK_EX | fcntl.LOCK_NB):
            for mark in (data / "runs").glob(f"*/{MARK}"):
                if known(mark.parent.name):
                    mark.unlink(missing_ok=True)
                else:
                    _remove(mark.parent)
            for folder in (data / "arriving").glob("*"):
                _remove(folder)
    except BlockingIOError:
        return False
    return True


def sweep_uploads(uploads: Path) -> bool:
    """Remove folders of uploads; returns as :func:`sweep_runs`."""
    try:
        with _locked(uploads, fcntl.LOCK_EX | fcntl.LOCK_NB):
            for folder in uploads.glob(f"{UPLOAD}*"):
                _remove(folder)
    except BlockingIOError:
        return False
    return True


def _remove(folder: Path) -> None:
    log.info("%s was cut off while it was made, and is removed", folder)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[None]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _full(error) from error
    try:
        fcntl.flock(lock, how)
        yield
    finally:
        os.close(lock)


def _full(error: OSError) -> IncompleteError:
    log.warning("the service's folder cannot be written: %s", error)
    return IncompleteError(
        "the service cannot keep the submission", mend="Try again later; its log says why"
    )
