"""A request to the launcher that came through a socket: who asks, and what is to be started.

The one who asks holds no privilege and the launcher does, so nothing that was sent is taken for a
path: state is named by a number below the launcher's own folder, and the files of the bundles are
sent whole and written by the launcher itself.
"""

from __future__ import annotations

import shutil
import socket
import struct
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from hardware.strict import Strict, fault_of

if TYPE_CHECKING:
    from pathlib import Path

_MAX_BYTES = 33_554_432
_SECONDS = 30.0
_CREDENTIALS = struct.Struct("iII")
"""Process, user and group of whoever connected (unix(7), ``SO_PEERCRED``)."""

FileName = Literal["contract.yaml", "effect.yaml", "tasks.yaml", "world.yaml"]
FILES: tuple[FileName, ...] = ("contract.yaml", "effect.yaml", "tasks.yaml", "world.yaml")
"""What world, sinks, direct and observer read of a bundle."""

StateName = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
BundleName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class RequestError(Exception):
    """The request cannot be granted."""


class LaunchRequest(Strict):
    """What is to be started: the same state again goes on where it was."""

    schema_: Literal["retire.launch/v1"] = Field(alias="schema")
    state: StateName
    settle_milliseconds: Annotated[int, Field(ge=0, le=60_000)]
    bundles: Annotated[
        dict[BundleName, Annotated[dict[FileName, str], Field(min_length=len(FILES))]],
        Field(min_length=1, max_length=256),
    ]


class RemovalRequest(Strict):
    """What is to be removed for good: the state of a run that was purged."""

    schema_: Literal["retire.launch-removal/v1"] = Field(alias="schema")
    state: StateName


_REQUEST: TypeAdapter[LaunchRequest | RemovalRequest] = TypeAdapter(
    Annotated[LaunchRequest | RemovalRequest, Field(discriminator="schema_")]
)


def check_peer(connection: socket.socket, runner: int) -> None:
    """Check who asks.

    Raises:
        RequestError: Somebody else than the runner's user, or not through a Unix socket.
    """
    if connection.family != socket.AF_UNIX:
        raise RequestError("the launcher is asked through a Unix socket, and this is none")
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(data)
    if user != runner:
        raise RequestError(f"user {user} may not start programs here; only user {runner} may")


def read_request(connection: socket.socket) -> LaunchRequest | RemovalRequest:
    """Read one line.

    Raises:
        RequestError: It does not come, is too long, or is no request.
    """
    received = bytearray()
    connection.settimeout(_SECONDS)
    try:
        while not received.endswith(b"\n"):
            part = connection.recv(1_048_576)
            received += part
            if not part or len(received) > _MAX_BYTES:
                raise RequestError("the request ended before its line did, or is too long")
    except TimeoutError as error:
        raise RequestError(f"no request came within {_SECONDS:g} seconds") from error
    finally:
        connection.settimeout(None)
    try:
        return _REQUEST.validate_json(bytes(received))
    except ValidationError as error:
        raise RequestError(f"this is no request: {fault_of(error, 'the line')}") from error


def keep_bundles(request: LaunchRequest, state: Path) -> list[Path]:
    """Write the bundles' files where every program can read them; returns the folders.

    Args:
        request: What was sent.
        state: The folder of this state, which root alone can change.

    Raises:
        RequestError: The state was begun with other bundles.
    """
    kept = state / "bundles"
    if not kept.exists():
        partial = state / "bundles.part"
        shutil.rmtree(partial, ignore_errors=True)
        for name, files in request.bundles.items():
            (partial / name).mkdir(parents=True)
            for file, text in files.items():
                (partial / name / file).write_bytes(text.encode())
        for path in (partial, *partial.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        partial.rename(kept)
    found = {
        folder.name: {file.name: file.read_bytes().decode() for file in folder.iterdir()}
        for folder in kept.iterdir()
    }
    if found != request.bundles:
        raise RequestError("this state was begun with other bundles; begin a new run")
    return [kept / name for name in request.bundles]
