"""The observer's record: a hash chain in a file, and signed heads.

A twin of the sink's record in a few lines, on purpose: the two processes share a format, held by
golden vectors, and no code.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

GENESIS = "sha256:" + "0" * 64


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
    """An append-only file; :meth:`append` writes, :meth:`sync` makes durable."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise RecordError(f"{path} is in use by another process") from error
        data = path.read_bytes()
        end = data.rfind(b"\n") + 1
        self._torn = data[end:]
        if self._torn:
            path.with_name(f"{path.name}.torn-{end}").write_bytes(self._torn)
            os.ftruncate(self._fd, end)
        self.seq = 0
        self.hash = GENESIS

    def load(self) -> Iterator[Mapping[str, Any]]:
        """Read the record from its start, yielding bodies, and note a torn end as recovery.

        Raises:
            RecordError: An entry does not chain.
        """
        with self._path.open("rb") as file:
            for line in file:
                try:
                    value = json.loads(line)
                    seq, prev, body, own = (value[k] for k in ("seq", "prev", "body", "hash"))
                    expected = (self.seq + 1, self.hash, chain_hash(self.seq + 1, self.hash, body))
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise RecordError(f"{self._path}: line {self.seq + 1} is no entry") from error
                if (seq, prev, own) != expected:
                    raise RecordError(f"{self._path}: entry {self.seq + 1} does not chain")
                self.seq, self.hash = seq, own
                yield body
        if self._torn:
            self.append({"kind": "recovery", "torn": digest(self._torn)})

    def append(self, body: Mapping[str, Any]) -> tuple[int, str]:
        """Chain and write a body; returns its sequence number and hash.

        Raises:
            RecordError: The line could not be written whole.
        """
        seq, prev = self.seq + 1, self.hash
        own = chain_hash(seq, prev, body)
        value = {"seq": seq, "prev": prev, "body": body, "hash": own}
        line = json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        size = os.fstat(self._fd).st_size
        try:
            whole = os.write(self._fd, line) == len(line)
        except OSError as error:
            raise RecordError(f"{self._path}: {error}") from error
        if not whole:
            os.ftruncate(self._fd, size)
            raise RecordError(f"{self._path}: the disk is full")
        self.seq, self.hash = seq, own
        return seq, own

    def sync(self) -> None:
        """Make everything written so far durable."""
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise RecordError(f"{self._path}: {error}") from error

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)
