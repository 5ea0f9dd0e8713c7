"""Archives that are large, linked, encrypted or nested are refused, and say what is wrong."""

from __future__ import annotations

import io
import struct
import tarfile
import tracemalloc
import zipfile
import zlib

import pytest

from retire.bundle import FILES
from retire.domain.errors import InputError
from retire.service.archives import read_archive, unpack

MEBIBYTE = 1024 * 1024


def tar_of(*extra: tuple[tarfile.TarInfo, bytes], without: str = "", **replaced: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name in FILES:
            if name != without:
                content = replaced.get(name.partition(".")[0], b"text")
                info = tarfile.TarInfo(f"X/{name}")
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        for info, content in extra:
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zip_of(contents: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def refused(data: bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read_archive(data)
    return caught.value


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_devices_and_pipes_are_refused(kind) -> None:
    info = tarfile.TarInfo("X/SKILL.md")
    info.type = kind
    info.linkname = "/etc/passwd"
    error = refused(tar_of((info, b""), without="SKILL.md"))
    assert error.where == "X/SKILL.md"


def test_a_link_in_a_zip_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("SKILL.md")
        info.create_system = 3
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert refused(buffer.getvalue()).where == "SKILL.md"


def test_an_encrypted_zip_is_refused() -> None:
    data = bytearray(zip_of(dict.fromkeys(FILES, b"text")))
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    assert "encrypted" in refused(bytes(data)).what


def test_more_than_ten_entries_are_refused() -> None:
    folders = []
    for number in range(4):
        info = tarfile.TarInfo("X/" + "/" * number)
        info.type = tarfile.DIRTYPE
        folders.append((info, b""))
    refused(tar_of(*folders))


def test_a_file_may_have_one_mebibyte_and_not_one_byte_more() -> None:
    assert read_archive(tar_of(SKILL=b"a" * MEBIBYTE))["SKILL.md"] == b"a" * MEBIBYTE
    assert refused(tar_of(SKILL=b"a" * (MEBIBYTE + 1))).where == "X/SKILL.md"
    contents = dict.fromkeys(FILES, b"text")
    assert refused(zip_of({**contents, "SKILL.md": b"a" * (MEBIBYTE + 1)})).where == "SKILL.md"


def test_all_files_together_may_have_four_mebibytes() -> None:
    contents = dict.fromkeys(FILES, b"a" * (600 * 1024))
    assert len(read_archive(zip_of({**contents, "SKILL.md": b"a"}))) == len(FILES)
    refused(zip_of(contents))


@pytest.mark.parametrize("kind", ["gzip", "zip"])
def test_a_bomb_is_left_before_it_fills_memory(kind) -> None:
    size = 256 * MEBIBYTE
    if kind == "zip":
        bomb = zip_of({**dict.fromkeys(FILES, b"text"), "SKILL.md": bytes(size)})
    else:
        stream = zlib.compressobj(wbits=31)
        chunk = bytes(MEBIBYTE)
        bomb = b"".join(stream.compress(chunk) for _ in range(256)) + stream.flush()
    tracemalloc.start()
    refused(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 * MEBIBYTE


def test_a_zip_with_a_directory_of_thousands_is_refused_before_it_is_read() -> None:
    data = zip_of({f"{number:05}": b"" for number in range(5000)})
    assert "too many" in refused(data).what


def test_an_archive_inside_the_archive_is_refused(archive) -> None:
    assert "archive" in refused(tar_of(world=archive)).what
    assert "archive" in refused(tar_of(world=zip_of({"a": b"b"}))).what


def test_a_missing_file_is_named() -> None:
    assert "ledger.yaml" in refused(tar_of(without="ledger.yaml")).what


def test_two_top_folders_are_refused() -> None:
    info = tarfile.TarInfo("Y/SKILL.md")
    refused(tar_of((info, b""), without="SKILL.md"))


def test_data_behind_the_archive_is_refused(archive) -> None:
    refused(archive + archive)
    assert read_archive(archive + bytes(512))


def test_a_sparse_or_resized_pax_entry_is_refused() -> None:
    for headers in ({"GNU.sparse.major": "1"}, {"size": "7"}, {"linkpath": "/etc/passwd"}):
        info = tarfile.TarInfo("X/SKILL.md")
        info.pax_headers = headers
        refused(tar_of((info, b""), without="SKILL.md"))


def test_a_negative_size_is_refused() -> None:
    """A header with which some readers go round in circles (CVE-2025-8194)."""
    plain = bytearray(zlib.decompress(tar_of(), wbits=31))
    plain[124:136] = b"\xff" * 4 + struct.pack(">q", -2048)
    plain[148:156] = b"%06o\0 " % (sum(plain[:148]) + 256 + sum(plain[156:512]))
    stream = zlib.compressobj(wbits=31)
    refused(stream.compress(bytes(plain)) + stream.flush())


def test_files_are_written_for_their_owner_alone_into_a_new_folder(tmp_path, archive) -> None:
    folder = tmp_path / "bundle"
    unpack(archive, folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    with pytest.raises(FileExistsError):
        unpack(archive, folder)
