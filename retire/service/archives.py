"""Uploaded archives: from bytes of a tar.gz or zip to the files of a bundle, or a refusal.

Everything is decided in memory under hard limits; only then are files written, under names of our
own. No name of an archive ever becomes a path.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from retire.bundle import FILES
from retire.domain.errors import InputError
from retire.service.archive_entries import (
    FILE_LIMIT,
    TOTAL_LIMIT,
    Entry,
    entries_of_tar_gz,
    entries_of_zip,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ENTRY_LIMIT = 10
"""Most entries, folders among them."""

_NESTED = (
    (0, b"PK\x03\x04"),
    (0, b"PK\x05\x06"),
    (0, b"\x1f\x8b"),
    (0, b"BZh"),
    (0, b"\xfd7zXZ\x00"),
    (0, b"7z\xbc\xaf\x27\x1c"),
    (0, b"\x28\xb5\x2f\xfd"),
    (0, b"Rar!"),
    (257, b"ustar"),
)


def read_archive(data: bytes) -> dict[str, bytes]:
    """Return the files of a bundle by name, from the bytes of an archive. Pure.

    Folders may stand in the archive, and one top folder around everything; nothing else besides
    the bundle's own files.

    Raises:
        InputError: Neither tar.gz nor zip, damaged, too large, or holding anything that a bundle
            does not; ``where`` is the entry.
    """
    if data.startswith(b"\x1f\x8b"):
        entries = entries_of_tar_gz(data)
    elif data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        entries = entries_of_zip(data)
    else:
        raise InputError(
            "the archive is neither tar.gz nor zip",
            where="archive",
            mend="For example: tar czf bundle.tar.gz -C bundles/panel PRV_L01",
        )
    files = _bundle_files(entries)
    missing = [name for name in FILES if name not in files]
    if missing:
        raise InputError(
            f"the archive has no {', '.join(missing)}",
            where="archive",
            mend="`retire new` writes every file a bundle needs",
        )
    return files


def _bundle_files(entries: Iterator[Entry]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    seen: set[str] = set()
    tops: set[str] = set()
    total = 0
    for number, entry in enumerate(entries, start=1):
        if number > ENTRY_LIMIT:
            raise InputError(f"more than {ENTRY_LIMIT} entries", where="archive")
        top, name = _place(entry)
        if (top, name) != ("", "") or not entry.folder:
            tops.add(top)
        path = f"{top}/{name}"
        if path in seen:
            raise InputError("the entry stands twice in the archive", where=shown(entry.name))
        seen.add(path)
        if entry.folder:
            continue
        total += len(entry.content)
        if total > TOTAL_LIMIT:
            raise InputError(f"more than {TOTAL_LIMIT} bytes in all", where=shown(entry.name))
        _check_content(entry)
        files[name] = entry.content
    if len(tops) > 1:
        raise InputError(
            "more than one top folder, or files beside it",
            where="archive",
            mend="Pack one bundle folder, or its files",
        )
    return files


def _place(entry: Entry) -> tuple[str, str]:
    """Return top folder and file name of an entry, each possibly empty."""
    parts = _parts(entry.name, folder=entry.folder)
    if entry.folder:
        if len(parts) <= 1:
            return (parts[0] if parts else ""), ""
    elif len(parts) in {1, 2} and parts[-1] in FILES:
        return (parts[0] if len(parts) == 2 else ""), parts[-1]
    raise InputError(
        "the entry is no file of a bundle",
        where=shown(entry.name),
        mend=f"A bundle has {', '.join(FILES)}, in one folder at most",
    )


def _parts(name: str, *, folder: bool) -> list[str]:
    path = name.rstrip("/") if folder and name.strip("/") else name
    parts = path.split("/")
    if parts[0] == ".":
        parts = parts[1:]
    for part in parts:
        if part in {"", ".", ".."} or "\\" in part or ":" in part or not part.isprintable():
            raise InputError("the entry's name is no plain relative path", where=shown(name))
    return parts


def _check_content(entry: Entry) -> None:
    if len(entry.content) > FILE_LIMIT:
        raise InputError(f"more than {FILE_LIMIT} bytes", where=shown(entry.name))
    for offset, magic in _NESTED:
        if entry.content.startswith(magic, offset):
            raise InputError("an archive inside the archive", where=shown(entry.name))


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of a bundle into a folder that this call creates.

    Raises:
        FileExistsError: The folder exists.
        OSError: It cannot be written.
    """
    folder.mkdir(mode=0o700)
    for name in FILES:
        # Exclusive creation: a file that is there already is somebody else's.
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(files[name])


def unpack(data: bytes, folder: Path) -> None:
    """Unpack an archive into a folder that this call creates; nothing is written on a refusal.

    Raises:
        InputError: As :func:`read_archive`.
        OSError: As :func:`write_files`.
    """
    write_files(read_archive(data), folder)
