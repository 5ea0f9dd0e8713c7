"""The approvals file on disk: read only where nobody but its owner could have written it.

The house file of a real world is read in the same way.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sink.approvals import file_fault, folder_fault, parse_approvals
from sink.strict_yaml import MAX_BYTES, DocumentError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sink.approvals import Approvals

_MEND = {
    errno.ENOENT: ("there is no approvals file", "Make one with `retire approve`"),
    errno.ELOOP: ("it is a symbolic link", "Name the file itself"),
    errno.ENOTDIR: ("its folder is a symbolic link or no folder", "Name the folder itself"),
}


@contextmanager
def approvals_folder(path: Path, user: int) -> Iterator[int]:
    """Open the folder of an approvals file; gives its descriptor.

    Raises:
        DocumentError: There is none, it is a link, or somebody else may write in it.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder = os.open(path.parent, flags)
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        fault = folder_fault(os.fstat(folder), user)
        if fault is not None:
            raise DocumentError(
                fault, where=str(path), mend=f"Give the folder to user {user} with mode 0700"
            )
        yield folder
    finally:
        os.close(folder)


def read_approvals(path: Path, user: int) -> Approvals:
    """Read an approvals file.

    Raises:
        DocumentError: As :func:`read_relied_on`, or its content cannot be used.
    """
    return parse_approvals(read_relied_on(path, user), str(path))


def read_relied_on(path: Path, user: int) -> bytes:
    """Return the content of a file that nobody but its owner could have written.

    The checks are made on what was opened, so that a name which changes in between gains nothing.

    Args:
        path: The file.
        user: The number of the user that relies on it; the file must be that user's.

    Raises:
        DocumentError: It is missing, a symbolic link, another user's, writable by group or
            others (or its folder is).
    """
    with approvals_folder(path, user) as folder:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(path.name, flags, dir_fd=folder)
        except OSError as error:
            raise _unreadable(path, error) from error
        try:
            fault = file_fault(os.fstat(descriptor), user)
            if fault is not None:
                raise DocumentError(
                    fault, where=str(path), mend=f"Give it to user {user} alone: mode 0600"
                )
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)


def _unreadable(path: Path, error: OSError) -> DocumentError:
    message, mend = _MEND.get(error.errno or 0, (f"it cannot be read: {error.strerror}", ""))
    return DocumentError(message, where=str(path), mend=mend)
