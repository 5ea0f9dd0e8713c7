"""Programs that a launcher with privileges starts, which a runner without any asks for them."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import socket
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retire.domain.errors import IncompleteError, InputError
from retire.runner.processes import STOP_SECONDS, connected, to_the_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from retire.runner.processes import Programs

_READY_SECONDS = 90.0
_FILES = ("contract.yaml", "effect.yaml", "tasks.yaml", "world.yaml")
"""What the programs read of a bundle."""


@asynccontextmanager
async def launched_programs(
    launcher: Path, processes: Path, bundles: Sequence[Path], settle_milliseconds: int = 2
) -> AsyncIterator[Programs]:
    """Ask a launcher for programs, connect, and end everything on the way out.

    The launcher keeps their state in a folder of its own, out of this process's reach but for
    the records; ``processes`` becomes a link to it, which a later pass follows.

    Args:
        launcher: The launcher's socket.
        processes: Where the run looks for the state of its programs.
        bundles: Folders of the bundles; their files are sent.
        settle_milliseconds: How long the observer waits at the end of an attempt.

    Raises:
        InputError: The run was begun without a launcher.
        IncompleteError: The launcher cannot be reached, refuses, or could not start them.
    """
    request = {
        "schema": "retire.launch/v1",
        "state": _state_of(processes),
        "settle_milliseconds": settle_milliseconds,
        "bundles": {folder.name: _files_of(folder) for folder in bundles},
    }
    try:
        reader, writer = await asyncio.open_unix_connection(launcher)
    except OSError as error:
        raise IncompleteError(
            f"the launcher cannot be reached: {error.strerror}",
            where=str(launcher),
            mend="Start it, and see that this user may connect; then run the same command again",
        ) from error
    programs: Programs | None = None
    try:
        started = await _asked(reader, writer, request, launcher)
        _link(processes, Path(started["state"]))
        programs = await connected(started)
        yield programs
    finally:
        if programs is not None:
            for channel in programs.all_channels():
                channel.close()
        await to_the_end(_end(reader, writer))


def remove_launched(launcher: Path | None, processes: Path) -> None:
    """Have a launcher remove what it keeps of a run, if it keeps anything.

    Raises:
        IncompleteError: It cannot be asked, or does not remove it; the same call again goes on.
    """
    if not processes.is_symlink():
        return
    request = {"schema": "retire.launch-removal/v1", "state": _state_of(processes)}
    try:
        if launcher is None:
            raise ConnectionError("no launcher is given")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_READY_SECONDS)
            connection.connect(str(launcher))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answer:
                told = json.loads(answer.readline(65_536) or b"{}")
        if not told.get("removed"):
            raise ConnectionError(str(told.get("error", "it gave no answer")))
    except (OSError, ValueError) as error:
        raise IncompleteError(
            f"a launcher keeps records of the run, and removes none: {error}",
            mend="Give its socket with --launcher, see that it runs, and purge again",
        ) from error


def refuse_launched(processes: Path) -> None:
    """Check that a run that goes on without a launcher was begun without one.

    Raises:
        InputError: A launcher keeps the state of its programs.
    """
    if processes.is_symlink():
        raise InputError(
            "a launcher keeps the state of this run's programs",
            where=str(processes),
            mend="Give --launcher as before, or begin in another folder",
        )


def _state_of(processes: Path) -> str:
    """Return the name of the run's state at the launcher; a new run gets a new one."""
    if processes.is_symlink():
        name = processes.readlink().name
        if re.fullmatch(r"[0-9a-f]{32}", name):
            return name
        raise InputError("this is no link that a run makes", where=str(processes))
    if processes.exists():
        raise InputError(
            "this run was begun without a launcher, and its records belong to its programs",
            where=str(processes),
            mend="Leave --launcher out to go on, or begin in another folder",
        )
    return secrets.token_hex(16)


def _files_of(folder: Path) -> dict[str, str]:
    try:
        return {name: (folder / name).read_bytes().decode() for name in _FILES}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"a file of the bundle cannot be read: {error}", where=str(folder)
        ) from error


def _link(processes: Path, state: Path) -> None:
    if not processes.is_symlink():
        try:
            processes.symlink_to(state)
        except OSError as error:
            raise InputError(
                f"the run's folder cannot be written: {error.strerror}", where=str(processes)
            ) from error


async def _asked(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    request: Mapping[str, Any],
    launcher: Path,
) -> dict[str, Any]:
    told: Any = None
    with suppress(ConnectionError, ValueError, TimeoutError):
        writer.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
        async with asyncio.timeout(_READY_SECONDS):
            told = json.loads(await reader.readline())
    if not isinstance(told, dict) or "sockets" not in told or "state" not in told:
        words = told.get("error") if isinstance(told, dict) else None
        raise IncompleteError(
            f"the launcher started nothing: {words or 'it gave no answer'}",
            where=str(launcher),
            mend="Its own log says more",
        )
    return told


async def _end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say that this is the end, and wait until the programs have let go of their records."""
    with suppress(ConnectionError, OSError, TimeoutError):
        writer.write_eof()
        async with asyncio.timeout(STOP_SECONDS):
            while await reader.read(65_536):
                pass
    writer.close()
