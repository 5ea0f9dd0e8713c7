"""Requests to the launcher: whatever is no request starts nothing and is answered in words."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from hardware.launch_request import (
    FILES,
    LaunchRequest,
    RemovalRequest,
    RequestError,
    check_peer,
    keep_bundles,
    read_request,
)

if TYPE_CHECKING:
    from pathlib import Path

STATE = "0123456789abcdef" * 2


def request(**other: Any) -> dict[str, Any]:
    files = {name: f"schema: {name}\n" for name in FILES}
    return {
        "schema": "retire.launch/v1",
        "state": STATE,
        "settle_milliseconds": 2,
        "bundles": {"ACC_L01": files},
        **other,
    }


def read(data: bytes) -> LaunchRequest | RemovalRequest:
    """What is made of bytes after which the connection ends."""
    asking, asked = socket.socketpair()
    with asked:
        with asking:
            asking.sendall(data)
        return read_request(asked)


def launch_request(**other: Any) -> LaunchRequest:
    found = read(json.dumps(request(**other)).encode() + b"\n")
    assert isinstance(found, LaunchRequest)
    return found


def test_a_request_is_read() -> None:
    found = launch_request()
    assert found.state == STATE
    assert set(found.bundles["ACC_L01"]) == set(FILES)
    removal = {"schema": "retire.launch-removal/v1", "state": STATE}
    assert isinstance(read(json.dumps(removal).encode() + b"\n"), RemovalRequest)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"[]\n",
        b"{}\n",
        b"\xff\xfe\n",
        b'{"schema": 1}\n',
        b"[" * 10_000 + b"\n",
        json.dumps(request()).encode(),
        json.dumps(request(schema="retire.launch-removal/v1")).encode() + b"\n",
    ],
)
def test_other_bytes_are_no_request(data: bytes) -> None:
    with pytest.raises(RequestError):
        read(data)


def test_only_one_user_may_ask() -> None:
    asking, asked = socket.socketpair()
    with asking, asked:
        check_peer(asked, os.geteuid())
        with pytest.raises(RequestError, match="may not start programs"):
            check_peer(asked, os.geteuid() + 1)
    with socket.socket() as network, pytest.raises(RequestError, match="Unix socket"):
        check_peer(network, os.geteuid())


def test_bundles_are_kept_as_sent_and_readable(tmp_path: Path) -> None:
    text = "name: Zürich \u2028 \U0001f512\r\n"
    files = dict.fromkeys(FILES, text)
    (folder,) = keep_bundles(launch_request(bundles={"A": files}), tmp_path)
    assert all((folder / name).read_bytes() == text.encode() for name in FILES)
    assert all((folder / name).stat().st_mode & 0o777 == 0o644 for name in FILES)
    assert folder.stat().st_mode & 0o777 == 0o755


def test_bundles_of_a_state_do_not_change(tmp_path: Path) -> None:
    keep_bundles(launch_request(), tmp_path)
    keep_bundles(launch_request(), tmp_path)
    files = dict.fromkeys(FILES, "")
    for other in ({"ACC_L01": files}, {**request()["bundles"], "B": files}, {"B": files}):
        with pytest.raises(RequestError, match="other bundles"):
            keep_bundles(launch_request(bundles=other), tmp_path)


def test_bundles_that_were_cut_off_half_written_are_written_again(tmp_path: Path) -> None:
    (tmp_path / "bundles.part" / "ACC_L01").mkdir(parents=True)
    (tmp_path / "bundles.part" / "ACC_L01" / "contract.yaml").write_text("sche")
    (folder,) = keep_bundles(launch_request(), tmp_path)
    assert (folder / "contract.yaml").read_text() == "schema: contract.yaml\n"
    assert not (tmp_path / "bundles.part").exists()
