"""The observer's record: a hash chain in a file, and signed heads.

A twin of the sink's record in a few lines, on purpose: the two processes share a format, held by
golden vectors, and no code.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from observer.checkpoint import EVERY, Checkpoint, open_sealed, seal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

GENESIS = "sha256:" + "0" * 64

_BLOCK = 65_536
_LARGE_BLOCK = 1_048_576
_EVIDENCE = "Keep the file as evidence and start with an empty folder"


class RecordError(Exception):
    """The record cannot be read or written."""


def digest(data: bytes) -> str:
    """Return ``sha256:<hex>`` of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def chain_hash(seq: int, prev: str, body: Mapping[str, Any]) -> str:
    """Return the hash of an entry over the RFC 8785 form of its other three fields."""
    return digest(rfc8785.dumps({"seq": seq, "prev": prev, "body": dict(body)}))


def signed_head(
    key: Ed25519PrivateKey, signer: str, seq: int, head_hash: str, countersigned: str
) -> dict[str, Any]:
    """Sign the present end of a record, naming the sink's head that was seen."""
    statement: dict[str, Any] = {
        "signer": signer,
        "seq": seq,
        "hash": head_hash,
        "countersigned": countersigned,
    }
    payload = rfc8785.dumps({"schema": "retire.head/v1", **statement})
    return {
        **statement,
        "key": key.public_key().public_bytes_raw().hex(),
        "signature": key.sign(payload).hex(),
    }


def load_or_create_key(path: Path) -> Ed25519PrivateKey:
    """Return the observer's key, made on first start, mode 0600."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return Ed25519PrivateKey.from_private_bytes(path.read_bytes())
    key = Ed25519PrivateKey.generate()
    with os.fdopen(fd, "wb") as file:
        file.write(key.private_bytes_raw())
        file.flush()
        os.fsync(file.fileno())
    return key


class RecordFile:
    """An append-only file; :meth:`append` writes, :meth:`sync` makes durable.

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
        self._size = os.fstat(self._fd).st_size
        self._torn = self._cut_torn_end()
        self.seq = 0
        self.hash = GENESIS
        self._key = key
        self._every = every
        self._checkpoint_path = path.with_name(f"{path.name}.checkpoint")
        self._covered = 0
        self._hasher = hashlib.sha256()

    def _cut_torn_end(self) -> bytes:
        """Cut a half-written last line off, keeping its bytes beside the record."""
        end = stop = self._size
        while stop > 0:
            start = max(0, stop - _BLOCK)
            found = os.pread(self._fd, stop - start, start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            stop = end = start
        torn = os.pread(self._fd, self._size - end, end)
        if torn:
            self._path.with_name(f"{self._path.name}.torn-{end}").write_bytes(torn)
            os.ftruncate(self._fd, end)
            self._size = end
        return torn

    def load(self) -> Iterator[Mapping[str, Any]]:
        """Read the record from its start, yielding bodies, and note a torn end as recovery.

        Bytes up to the last checkpoint are compared with it; entries behind it are followed.

        Raises:
            RecordError: An entry does not chain, or entries that were signed are missing or others.
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
                try:
                    value = json.loads(line)
                    seq, prev, body, own = (value[k] for k in ("seq", "prev", "body", "hash"))
                    expected = (self.seq + 1, self.hash, chain_hash(self.seq + 1, self.hash, body))
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise RecordError(f"{self._path}: line {self.seq + 1} is no entry") from error
                if (seq, prev, own) != expected:
                    raise RecordError(f"{self._path}: entry {self.seq + 1} does not chain")
                self._hasher.update(line)
                self.seq, self.hash = seq, own
                yield body
        if checkpoint is not None and not as_signed:
            raise RecordError(
                f"{self._path}: the first {checkpoint.seq} entries are not those that were signed. "
                f"{_EVIDENCE}"
            )
        self._cover()
        if self._torn:
            self.append({"kind": "recovery", "torn": digest(self._torn)})

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

    def append(self, body: Mapping[str, Any]) -> tuple[int, str]:
        """Chain and write a body; returns its sequence number and hash.

        Raises:
            RecordError: The line could not be written whole.
        """
        seq, prev = self.seq + 1, self.hash
        own = chain_hash(seq, prev, body)
        value = {"seq": seq, "prev": prev, "body": body, "hash": own}
        line = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        try:
            whole = os.write(self._fd, line) == len(line)
        except OSError as error:
            raise RecordError(f"{self._path}: {error}") from error
        if not whole:
            os.ftruncate(self._fd, self._size)
            raise RecordError(f"{self._path}: the disk is full")
        self._size += len(line)
        self._hasher.update(line)
        self.seq, self.hash = seq, own
        return seq, own

    def sync(self) -> None:
        """Make everything written so far durable."""
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise RecordError(f"{self._path}: {error}") from error
        self._cover()

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)
