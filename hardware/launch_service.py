"""``python -m hardware.launch_service``: a launcher with privileges, for a runner without any.

A runner that may not become other users asks through a Unix socket. A connection is one run: its
one line says what to start, the answer is the launcher's line, and when it ends, whoever ended it,
all programs of the run end. The service manager passes the connection as standard input; with
``--listen`` this program takes connections itself, and starts itself for each.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.launch import Launcher, hold
from hardware.launch_request import (
    RemovalRequest,
    RequestError,
    check_peer,
    keep_bundles,
    read_request,
)
from hardware.users import (
    UsersError,
    read_users,
    refuse_writable,
    shared_folder,
    take_back,
    user_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardware.users import Users

_START_SECONDS, _REMOVAL_SECONDS = 20.0, 5.0
"""How long a request waits for the one that holds its state."""
_POLL_SECONDS = 0.5
_STOP_SECONDS = 10.0


def serve_connection(root: Path, users: Users, runner: int) -> int:
    """Do what the connection on standard input asks for; programs stay until it ends.

    Raises:
        RequestError: The request cannot be granted.
        UsersError: The folders are not root's alone.
        RuntimeError: A program did not become ready.
        OSError: Something cannot be read or written.
    """
    with socket.socket(fileno=os.dup(sys.stdin.fileno())) as connection:
        check_peer(connection, runner)
        request = read_request(connection)
    refuse_writable(root)
    state = root / request.state
    removal = isinstance(request, RemovalRequest)
    with _alone_with(state, users.readers, _REMOVAL_SECONDS if removal else _START_SECONDS):
        if isinstance(request, RemovalRequest):
            take_back(state)
            os.write(sys.stdout.fileno(), b'{"removed": true}\n')
            return 0
        bundles = keep_bundles(request, state)
        launcher = Launcher(state, bundles, request.settle_milliseconds, users=users)
        return hold(launcher, {"state": str(state)})


@contextmanager
def _alone_with(state: Path, readers: int, seconds: float) -> Iterator[None]:
    """Hold a state's folder; an earlier connection may still be ending its programs."""
    shared_folder(state, readers)
    folder = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + seconds
        while not _is_locked(folder):
            if time.monotonic() > deadline:
                raise RequestError("another connection still holds this state")
            time.sleep(0.05)
        yield
    finally:
        os.close(folder)


def _is_locked(folder: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def listen(path: Path, readers: int, command: list[str]) -> None:
    """Take connections at a path until SIGTERM, and start a program for each.

    Raises:
        UsersError: Others can replace the socket.
        OSError: The socket cannot be made.
    """
    refuse_writable(path.parent)
    if path.is_socket():
        path.unlink()
    children: list[subprocess.Popen[bytes]] = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        try:
            os.chown(path, -1, readers)
            path.chmod(0o660)
            server.listen()
            server.settimeout(_POLL_SECONDS)
            while True:
                children = [child for child in children if child.poll() is None]
                with suppress(TimeoutError):
                    connection, _ = server.accept()
                    with connection:
                        connection.settimeout(None)
                        end = connection.fileno()
                        children.append(subprocess.Popen(command, stdin=end, stdout=end))
        finally:
            path.unlink(missing_ok=True)
            _end(children)


def _end(children: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        child.terminate()
    for child in children:
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _refuse(words: str) -> int:
    """Say on both ends why nothing was started."""
    print(f"launch: {words}", file=sys.stderr)  # noqa: T201  # the operator reads this
    with suppress(OSError):
        os.write(sys.stdout.fileno(), json.dumps({"error": words}).encode() + b"\n")
    return 2


def _runner_of(name: str, users: Users) -> int:
    runner = user_of(name).user
    if runner in {0, *(account.user for account in users.accounts.values())}:
        raise UsersError("the runner must be neither root nor the user of a program")
    return runner


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hardware.launch_service", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="folder of root's, for all state")
    parser.add_argument(
        "--users", required=True, help="world=NAME,sink=NAME,direct=NAME,observer=NAME"
    )
    parser.add_argument("--group", required=True, help="who may reach the sockets")
    parser.add_argument("--runner", required=True, help="the user who may ask, and nobody else")
    parser.add_argument("--listen", type=Path, help="socket to take connections at")
    return parser


def main() -> int:
    """Serve one connection, or listen for them."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        users = read_users(arguments.users, arguments.group)
        runner = _runner_of(arguments.runner, users)
        if arguments.listen is None:
            return serve_connection(arguments.root, users, runner)
        command = [sys.executable, "-m", "hardware.launch_service"]
        for name in ("root", "users", "group", "runner"):
            command += [f"--{name}", str(getattr(arguments, name))]
        listen(arguments.listen, users.readers, command)
    except (RequestError, RuntimeError, UsersError, OSError) as error:
        return _refuse(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
