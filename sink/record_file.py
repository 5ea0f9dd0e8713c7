"""The record on disk: one writer, durable before anything is answered."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sink.checkpoint import EVERY, Checkpoint, open_sealed, seal
from sink.record import GENESIS, Entry, chains, digest, make_entry, parse_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


_BLOCK = 65_536
_LARGE_BLOCK = 1_048_576
_EVIDENCE = "Keep the file as evidence and start with an empty folder"


class RecordError(Exception):
    """The record cannot be read or written; nothing may be acted on."""


class RecordFile:
    """An append-only, hash-chained file with group commit.

    Entries that arrive in one turn of the event loop are written and synced together; each
    :meth:`append` returns only after its entry is on disk. A failed write is rolled back to the
    last durable entry, and every waiting caller gets the error. ``seq`` and ``hash`` are those of
    the last durable entry, so that a head never vouches for what may still be rolled back.

    Args:
        path: The file.
        key: Signs checkpoints, which keep a start short; without one all of it is followed.
        every: Entries between two checkpoints.
    """

    def __init__(
        self, path: Path, key: Ed25519PrivateKey | None = None, every: int = EVERY
    ) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise RecordError(f"{path} is in use by another process") from error
        self._waiting: list[tuple[Entry, asyncio.Future[Entry]]] = []
        self._size = os.fstat(self._fd).st_size
        self.seq = 0
        self.hash = GENESIS
        self._chained = (0, GENESIS)
        self._broken = ""
        self._key = key
        self._every = every
        self._checkpoint_path = path.with_name(f"{path.name}.checkpoint")
        self._covered = 0
        self._hasher = hashlib.sha256()
        self._torn = self._cut_torn_end()

    def load(self) -> Iterator[Mapping[str, Any]]:
        """Read the record from its start, yielding each body, and stand at its end.

        Bytes up to the last checkpoint are compared with it; entries behind it are followed.

        Raises:
            RecordError: An entry does not chain, or entries that were signed are missing or
                others. The record is evidence; it is not mended.
        """
        checkpoint = self._checkpoint()
        as_signed = checkpoint is not None and self._begins_as(checkpoint)
        with self._path.open("rb") as file:
            if checkpoint is not None and as_signed:
                read = 0
                while read < checkpoint.size:
                    line = file.readline()
                    read += len(line)
                    self._hasher.update(line)
                    yield json.loads(line)["body"]
                self.seq, self.hash = checkpoint.seq, checkpoint.hash
                self._covered = checkpoint.seq
            for line in file:
                entry = parse_line(line)
                if entry is None or not chains(entry, self.seq + 1, self.hash):
                    raise RecordError(
                        f"{self._path}: entry {self.seq + 1} does not chain. {_EVIDENCE}"
                    )
                self._hasher.update(line)
                self.seq, self.hash = entry.seq, entry.hash
                yield entry.body
        if checkpoint is not None and not as_signed:
            raise RecordError(
                f"{self._path}: the first {checkpoint.seq} entries are not those that were signed. "
                f"{_EVIDENCE}"
            )
        self._chained = (self.seq, self.hash)
        self._cover()

    def _checkpoint(self) -> Checkpoint | None:
        """Return the last checkpoint that can be relied on."""
        if self._key is None:
            return None
        try:
            found = open_sealed(self._key, self._checkpoint_path.read_bytes())
        except OSError:
            return None
        if found is not None and found.size > self._size:
            raise RecordError(
                f"{self._path}: {found.seq} entries were signed and some of them are missing. "
                f"{_EVIDENCE}"
            )
        return found

    def _begins_as(self, checkpoint: Checkpoint) -> bool:
        hasher = hashlib.sha256()
        for start in range(0, checkpoint.size, _LARGE_BLOCK):
            wanted = min(_LARGE_BLOCK, checkpoint.size - start)
            hasher.update(os.pread(self._fd, wanted, start))
        return f"sha256:{hasher.hexdigest()}" == checkpoint.digest

    def _cover(self) -> None:
        """Sign what is durable so far, if enough came since; a start is merely longer without."""
        if self._key is None or self.seq - self._covered < self._every:
            return
        self._covered = self.seq
        whole = f"sha256:{self._hasher.hexdigest()}"
        sealed = seal(self._key, Checkpoint(self.seq, self.hash, self._size, whole))
        part = self._checkpoint_path.with_name(f"{self._checkpoint_path.name}.part")
        with suppress(OSError):
            # What was read at a start may have been written without reaching the disk.
            os.fdatasync(self._fd)
            with part.open("wb") as file:
                file.write(sealed)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._checkpoint_path)

    def recovery(self) -> Mapping[str, Any] | None:
        """What must be recorded first because the last run ended within a write, or None."""
        return {"kind": "recovery", "torn": digest(self._torn)} if self._torn else None

    def _cut_torn_end(self) -> bytes:
        """Cut a half-written last line off, keeping its bytes beside the record."""
        end = self._end_of_last_line()
        torn = os.pread(self._fd, self._size - end, end)
        if torn:
            side = self._path.with_name(f"{self._path.name}.torn-{end}")
            side.write_bytes(torn)
            os.ftruncate(self._fd, end)
            self._size = end
        return torn

    def _end_of_last_line(self) -> int:
        """Look backwards from the end: a record outgrows what may be held in memory."""
        stop = self._size
        while stop > 0:
            start = max(0, stop - _BLOCK)
            found = os.pread(self._fd, stop - start, start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            stop = start
        return 0

    async def append(self, body: Mapping[str, Any]) -> Entry:
        """Chain a body, and return when it is durable.

        Raises:
            RecordError: The entry could not be written; it is not part of the record.
        """
        if self._broken:
            raise RecordError(self._broken)
        loop = asyncio.get_running_loop()
        entry = make_entry(self._chained[0] + 1, self._chained[1], body)
        self._chained = (entry.seq, entry.hash)
        future: asyncio.Future[Entry] = loop.create_future()
        self._waiting.append((entry, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._flush)
        return await future

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        data = b"".join(entry.line() for entry, _ in waiting)
        try:
            self._write(data)
        except OSError as error:
            self._roll_back()
            for _, future in waiting:
                if not future.done():
                    future.set_exception(RecordError(f"{self._path}: {error}"))
            return
        self._size += len(data)
        self._hasher.update(data)
        self.seq, self.hash = waiting[-1][0].seq, waiting[-1][0].hash
        self._cover()
        for entry, future in waiting:
            if not future.done():
                future.set_result(entry)

    def _write(self, data: bytes) -> None:
        written = os.write(self._fd, data)
        if written != len(data):
            raise OSError(f"{written} of {len(data)} bytes written")
        os.fdatasync(self._fd)

    def _roll_back(self) -> None:
        self._chained = (self.seq, self.hash)
        try:
            os.ftruncate(self._fd, self._size)
        except OSError as error:
            # Half an entry may stand at the end; a further one behind it would never chain.
            self._broken = f"{self._path}: a failed write could not be undone: {error}"

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)
