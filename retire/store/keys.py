"""The certifier's key and the list of keys that its owner trusts."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def certifier_key(home: Path) -> Ed25519PrivateKey:
    """Return the certifier's key, made on first use with mode 0600.

    Raises:
        InputError: The folder cannot be written, or the file is no key.
    """
    path = home / "certifier.key"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _make_key(path)
        return Ed25519PrivateKey.from_private_bytes(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"the certifier's key cannot be kept: {error.strerror}",
            where=str(path),
            mend="Set RETIRE_HOME to a folder that can be written",
        ) from error
    except ValueError as error:
        raise InputError(
            "the file is no Ed25519 key of 32 bytes",
            where=str(path),
            mend="Move it away; a new key is made on the next run",
        ) from error


def _make_key(path: Path) -> None:
    """Make a key; of several who do so at once, all find the same, and whole.

    Raises:
        OSError: The folder cannot be written.
    """
    own = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    fd = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(Ed25519PrivateKey.generate().private_bytes_raw())
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(own, path)
    finally:
        own.unlink()


def public_hex(key: Ed25519PrivateKey) -> str:
    """Return the public half as hex."""
    return key.public_key().public_bytes_raw().hex()


def read_trusted(path: Path) -> tuple[str, ...]:
    """Return the trusted public keys of a file: one hex key a line, ``#`` starts a comment.

    Raises:
        InputError: The file cannot be read, or a line is no key.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the list of keys cannot be read: {error}", where=str(path)) from error
    keys = []
    for number, line in enumerate(lines, start=1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        if len(text) != 64 or any(char not in "0123456789abcdefABCDEF" for char in text):
            raise InputError(
                "a public key is 64 hexadecimal digits",
                where=f"{path}:{number}",
                mend="`retire keys` prints the keys of this machine",
            )
        keys.append(text.lower())
    return tuple(keys)
