"""The certifier's key: made once, whoever asks first, and never half."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from retire.domain.errors import InputError
from retire.store.keys import certifier_key, public_hex

if TYPE_CHECKING:
    from pathlib import Path


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = public_hex(certifier_key(home))
    assert public_hex(certifier_key(home)) == first
    assert [path.name for path in home.iterdir()] == ["certifier.key"]
    assert (home / "certifier.key").stat().st_mode & 0o777 == 0o600


def test_all_who_ask_at_once_get_the_same_key(tmp_path: Path) -> None:
    for number in range(40):
        home = tmp_path / f"{number}"
        barrier = threading.Barrier(8)

        def ask(_: int, home: Path = home, barrier: threading.Barrier = barrier) -> str:
            barrier.wait(20)
            return public_hex(certifier_key(home))

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(ask, range(8)))) == 1
        assert [path.name for path in home.iterdir()] == ["certifier.key"]


def test_a_file_that_is_no_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "certifier.key").write_bytes(b"short")
    with pytest.raises(InputError, match="no Ed25519 key") as caught:
        certifier_key(tmp_path)
    assert caught.value.where.endswith("certifier.key")
