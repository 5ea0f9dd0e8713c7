"""The entries of a tar.gz or zip, one after the other, never more bytes than the limits. Pure.

Tar headers are read here rather than by ``tarfile``: in the Python versions that we support it
loops for ever on some hostile headers (CVE-2025-8194), and a bundle needs two kinds of entry.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_LIMIT = 1024 * 1024
"""Most bytes of one unpacked file."""

TOTAL_LIMIT = 4 * FILE_LIMIT
"""Most bytes of all unpacked files."""

BLOCK = 512
_TAR_LIMIT = TOTAL_LIMIT + 256 * BLOCK
_HEADERS_LIMIT = 64
_CHUNK = 64 * 1024
_DIRECTORY_LIMIT = 16 * 1024
_END_OF_DIRECTORY = struct.Struct("<4s4H2LH")
_END_SIGNATURE = b"PK\x05\x06"
_ZIP64_SIGNATURE = b"PK\x06\x07"
_COMMENT_LIMIT = 65_535
_ENCRYPTED = 0x1 | 0x40


@dataclass(frozen=True, slots=True)
class Entry:
    """One file or folder of an archive, under the name the archive gives it."""

    name: str
    folder: bool
    content: bytes


def shown(name: str) -> str:
    """Return an entry's name fit to be repeated to its sender."""
    return "".join(char if char.isprintable() else "?" for char in name[:80]) or "archive"


def entries_of_tar_gz(data: bytes) -> Iterator[Entry]:
    """Yield the entries of a gzip-compressed tar archive (POSIX ustar and pax).

    Raises:
        InputError: Damaged, too large, or an entry that is neither file nor folder.
    """
    return _tar_entries(_gunzip(data))


def _gunzip(data: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    pieces: list[bytes] = []
    size = 0
    waiting = data
    try:
        while waiting and not stream.eof:
            piece = stream.decompress(waiting, _CHUNK)
            waiting = stream.unconsumed_tail
            size += len(piece)
            if size > _TAR_LIMIT:
                raise InputError(f"it unpacks to more than {TOTAL_LIMIT} bytes", where="archive")
            pieces.append(piece)
    except zlib.error as error:
        raise InputError("the gzip data is damaged", where="archive") from error
    if not stream.eof:
        raise InputError("the gzip data ends too early", where="archive")
    if stream.unused_data.strip(b"\0"):
        raise InputError("more data behind the gzip data", where="archive")
    return b"".join(pieces)


def _tar_entries(data: bytes) -> Iterator[Entry]:
    offset = 0
    headers = 0
    renamed = ""
    while offset + BLOCK <= len(data):
        header = data[offset : offset + BLOCK]
        if not header.strip(b"\0"):
            return
        headers += 1
        if headers > _HEADERS_LIMIT:
            raise InputError("too many headers", where="archive")
        _check_sum(header)
        size = _octal(header[124:136])
        start, end = offset + BLOCK, offset + BLOCK + size
        if end > len(data):
            raise InputError("the tar archive ends too early", where="archive")
        # The next header stands at the next whole block.
        offset = start + -(-size // BLOCK) * BLOCK
        kind = header[156:157]
        if kind in {b"x", b"g"}:
            renamed = _pax_path(data[start:end]) or renamed
            continue
        name, renamed = renamed or _tar_name(header), ""
        yield _tar_entry(name, kind, data[start:end])
    raise InputError("the tar archive has no end", where="archive")


def _tar_entry(name: str, kind: bytes, content: bytes) -> Entry:
    if kind == b"5":
        if content:
            raise InputError("a folder with content", where=shown(name))
        return Entry(name, folder=True, content=b"")
    if kind not in {b"0", b"\0"} or name.endswith("/"):
        raise InputError(
            "the entry is neither a file nor a folder (a link, a device, or something else)",
            where=shown(name),
        )
    if len(content) > FILE_LIMIT:
        raise InputError(f"more than {FILE_LIMIT} bytes", where=shown(name))
    return Entry(name, folder=False, content=content)


def _check_sum(header: bytes) -> None:
    # POSIX: the sum of all bytes, the checksum's own field taken as spaces.
    if sum(header[:148]) + 8 * 32 + sum(header[156:]) != _octal(header[148:156]):
        raise InputError("a tar header is damaged", where="archive")


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits or digits.strip(b"01234567"):
        raise InputError("a tar header holds no octal number", where="archive")
    return int(digits, 8)


def _tar_name(header: bytes) -> str:
    name = _text(header[:100].partition(b"\0")[0])
    prefix = b""
    if header[257:263] == b"ustar\0":
        prefix = header[345:500].partition(b"\0")[0]
    return f"{_text(prefix)}/{name}" if prefix else name


def _pax_path(records: bytes) -> str:
    """Return the path of a pax header (POSIX: ``<length> <key>=<value>`` and a line feed)."""
    path = ""
    while records:
        length, _, _ = records.partition(b" ")
        # Five digits: a record is shorter than that, and int() refuses nothing sensible.
        if not length.isdigit() or len(length) > 5 or not 5 <= int(length) <= len(records):
            raise InputError("a pax header is damaged", where="archive")
        record, records = records[len(length) + 1 : int(length)], records[int(length) :]
        key, found, value = record.removesuffix(b"\n").partition(b"=")
        if not found:
            raise InputError("a pax header is damaged", where="archive")
        if key in {b"size", b"linkpath"} or key.startswith(b"GNU.sparse"):
            raise InputError("a pax header with a size, a link or a sparse file", where="archive")
        if key == b"path":
            path = _text(value)
    return path


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("an entry's name is not UTF-8", where="archive") from error


def entries_of_zip(data: bytes) -> Iterator[Entry]:
    """Yield the entries of a zip archive (stored or deflated).

    Raises:
        InputError: Damaged, encrypted, too large, or an entry that is neither file nor folder.
    """
    _check_directory(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                yield _zip_entry(archive, info)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        OSError,
        struct.error,
        UnicodeDecodeError,
        ValueError,
        OverflowError,
    ) as error:
        raise InputError("the zip archive is damaged", where="archive") from error


def _check_directory(data: bytes) -> None:
    """Refuse a directory of absurd size before ``zipfile`` reads all of it."""
    size = _END_OF_DIRECTORY.size
    # Found as zipfile finds it: at the very end, or, behind a comment, the last one.
    at = len(data) - size
    if at < 0 or data[at : at + 4] != _END_SIGNATURE or data[-2:] != b"\0\0":
        at = data.rfind(_END_SIGNATURE, max(0, len(data) - size - _COMMENT_LIMIT))
    if at < 0 or at + size > len(data):
        raise InputError("the zip archive has no directory", where="archive")
    if data[max(0, at - 20) : at].startswith(_ZIP64_SIGNATURE):
        raise InputError("a zip archive with 64-bit sizes", where="archive")
    directory = _END_OF_DIRECTORY.unpack_from(data, at)[5]
    if directory > _DIRECTORY_LIMIT:
        raise InputError("the zip archive has too many entries", where="archive")


def _zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Entry:
    name = info.orig_filename
    if info.flag_bits & _ENCRYPTED:
        raise InputError("the entry is encrypted", where=shown(name))
    mode = info.external_attr >> 16
    # Archives made on systems without file types leave the type at zero.
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        raise InputError("the entry is a link or a device", where=shown(name))
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise InputError("the entry is neither stored nor deflated", where=shown(name))
    if name.endswith("/"):
        if info.file_size:
            raise InputError("a folder with content", where=shown(name))
        return Entry(name, folder=True, content=b"")
    with archive.open(info) as stream:
        content = stream.read(FILE_LIMIT + 1)
    if len(content) > FILE_LIMIT:
        raise InputError(f"more than {FILE_LIMIT} bytes", where=shown(name))
    return Entry(name, folder=False, content=content)
