"""``python -m hardware.launch``: start world, sinks, direct and observer, and hold them together.

The launcher makes the act face as socket pairs and hands the ends down as inherited descriptors:
one end to the world, the other to a sink or to direct. Whoever started the launcher learns the
paths of the sockets for proposing, observing and resetting from one JSON line, and nothing else.

With ``--home-assistant`` the world is a house in Home Assistant: each program that reaches it is
given the path of a token file of its own. Nobody else is: not whoever started the launcher.

With ``--users``, started by root, each program runs as a user of its own; the members of
``--group`` may reach the sockets and read the records, and nobody else.

When its standard input ends, or any child ends, the launcher ends all of them: a run with a dead
part stops and is resumed, it never goes on half blind.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from hardware.homeassistant.house import HouseError, load_instance
from hardware.users import (
    UsersError,
    own_folder,
    read_users,
    readable_file,
    refuse_writable,
    shared_folder,
    take_back,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardware.homeassistant.house import Instance
    from hardware.users import Users

_READY_SECONDS = 60.0
_ACCEPTS = 0x10000
"""Flag of a listening socket in ``/proc/net/unix`` (Linux, proc(5))."""
_PROGRAMS = ("world", "sink-canonical", "sink-exact", "direct", "observer")


class _Identity(TypedDict, total=False):
    """As which user a program is started; nothing where users are not told apart."""

    user: int
    group: int
    extra_groups: list[int]
    umask: int
    cwd: str


class Launcher:
    """Starts the five programs and waits for the first end of anything."""

    def __init__(
        self,
        state: Path,
        bundles: list[Path],
        settle_milliseconds: int,
        instance: Instance | None = None,
        users: Users | None = None,
    ) -> None:
        self._state = state if users is None else state.absolute()
        self._users = users
        self._instance = instance
        self._bundles = [str(folder.resolve()) for folder in bundles]
        self._settle = settle_milliseconds
        self._sockets = Path(tempfile.mkdtemp(prefix="retire-"))
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        # Children watch the read end: it becomes readable when the launcher is gone, however
        # it went.
        self._life_read, self._life_write = os.pipe()

    def start(self) -> dict[str, str]:
        """Start everything; returns the socket path of each program.

        Raises:
            RuntimeError: A program did not become ready; its own message is on standard error.
        """
        with ExitStack() as ends:
            pairs = [socket.socketpair() for _ in range(3)]
            for pair in pairs:
                for end in pair:
                    ends.enter_context(end)
            world_ends = [pair[0].fileno() for pair in pairs]
            acting = [pair[1].fileno() for pair in pairs]
            faces = ["--act-face", *map(str, world_ends), *self._house("world")]
            self._spawn("world", ["hardware.world", *faces], world_ends)
            self._await_sockets(("world",))
            for binding, face in zip(("canonical", "exact"), acting[:2], strict=True):
                arguments = ["sink", "--binding", binding, "--act-face", str(face)]
                arguments += self._house("sink")
                self._spawn(f"sink-{binding}", arguments, [face])
            unmediated = ["--act-face", str(acting[2]), *self._house("sink")]
            self._spawn("direct", ["hardware.direct", *unmediated], [acting[2]])
            truth = str(self._state / "world" / "world.sqlite")
            settle = ["--settle-milliseconds", str(self._settle)]
            observing = ["--ground-truth", truth, *settle, *self._house("observer")]
            self._spawn("observer", ["observer", *observing], [])
        self._await_sockets(_PROGRAMS)
        return {name: self._socket(name) for name in _PROGRAMS}

    def _house(self, program: Literal["world", "sink", "observer"]) -> list[str]:
        """Return the options by which a program reaches the house with its own token."""
        if self._instance is None:
            return []
        token: str = getattr(self._instance.tokens, program)
        address = ["--home-assistant", self._instance.url, "--house", self._instance.house]
        return [*address, "--token-file", token]

    def _socket(self, name: str) -> str:
        """Return the path of a program's socket; a user's own lies in a folder of that user."""
        place = self._sockets / name
        return str(place if self._users is None else place / "socket")

    def _prepare(self, name: str) -> _Identity:
        """Make a program's folders; returns how it is started as the user it is to be."""
        if self._users is None:
            (self._state / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            return {}
        account, readers = self._users.of(name), self._users.readers
        refuse_writable(self._state.parent)
        shared_folder(self._state, readers)
        self._sockets.chmod(0o711)
        own_folder(self._sockets / name, account, readers, inherited=True)
        if name == "world":
            # The database is the observer's to read, with the files that SQLite puts beside it.
            group = self._users.of("observer").group
            own_folder(self._state / name, account, group, inherited=True)
        else:
            (self._state / name).mkdir(mode=0o700, exist_ok=True)
            readable_file(self._state / name / "record.jsonl", account, readers)
            own_folder(self._state / name, account, readers, inherited=False)
        return {
            "user": account.user,
            "group": account.group,
            "extra_groups": [],
            # The group needs to write to a socket to connect to it.
            "umask": 0o007,
            # Modules are imported from here first, so it must not be anybody's but root's.
            "cwd": "/",
        }

    def _spawn(self, name: str, arguments: list[str], descriptors: list[int]) -> None:
        module, *rest = arguments
        identity = self._prepare(name)
        command = [sys.executable, "-m", module, *rest]
        command += ["--state", str(self._state / name), "--socket", self._socket(name)]
        command += ["--life", str(self._life_read), "--bundles", *self._bundles]
        self._children[name] = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[*descriptors, self._life_read],
            # An interrupt at the terminal must not reach them: the launcher decides.
            start_new_session=True,
            **identity,
        )

    def _await_sockets(self, names: tuple[str, ...]) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        wanted = {self._socket(name) for name in names}
        while not wanted <= _listening():
            for name, child in self._children.items():
                if child.poll() is not None:
                    raise RuntimeError(f"{name} ended while starting (exit {child.returncode})")
            if time.monotonic() > deadline:
                raise RuntimeError("the programs were not ready in time")
            time.sleep(0.01)

    def pids(self) -> dict[str, int]:
        """Return the process id of each program."""
        return {name: child.pid for name, child in self._children.items()}

    def wait(self) -> int:
        """Wait until standard input ends (0) or a child ends (1)."""
        watched = selectors.DefaultSelector()
        watched.register(sys.stdin.buffer, selectors.EVENT_READ, None)
        with ExitStack() as descriptors:
            for child in self._children.values():
                descriptor = os.pidfd_open(child.pid)
                descriptors.callback(os.close, descriptor)
                watched.register(descriptor, selectors.EVENT_READ, child)
            for key, _ in watched.select():
                if key.data is not None:
                    return 1
        return 0

    def stop(self) -> None:
        """End every child and remove the sockets."""
        os.close(self._life_write)
        for child in self._children.values():
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        os.close(self._life_read)
        if self._users is None:
            shutil.rmtree(self._sockets, ignore_errors=True)
        else:
            take_back(self._sockets)


def _listening() -> set[str]:
    """Return the paths of sockets that take connections; a file stands a moment before it does.

    To try would leave each program a connection that ends at once.
    """
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return {line[7] for line in lines if len(line) > 7 and int(line[3], 16) & _ACCEPTS}


def hold(launcher: Launcher, told: Mapping[str, str] | None = None) -> int:
    """Start the programs, print one line with their sockets, and stay until something ends.

    Args:
        launcher: What starts them.
        told: What the line says besides.

    Raises:
        RuntimeError: A program did not become ready.
    """
    try:
        sockets = launcher.start()
        ready = {"sockets": sockets, "pids": launcher.pids(), **(told or {})}
        os.write(sys.stdout.fileno(), json.dumps(ready).encode() + b"\n")
        return launcher.wait()
    except BrokenPipeError:
        return 0  # whoever started the launcher is gone
    finally:
        launcher.stop()


def _launcher_of(arguments: argparse.Namespace) -> Launcher:
    instance = load_instance(arguments.home_assistant) if arguments.home_assistant else None
    users = None
    if arguments.users is not None or arguments.group is not None:
        if instance is not None:
            raise UsersError(
                "--users is for the stub world: the programs share the files of a house's instance"
            )
        users = read_users(arguments.users or "", arguments.group)
    settle = arguments.settle_milliseconds
    if instance is not None:
        settle = max(settle, instance.settle_milliseconds)
    return Launcher(arguments.state, arguments.bundles, settle, instance, users)


def main() -> int:
    """Start the programs, print their sockets, and stay until something ends."""
    parser = argparse.ArgumentParser(prog="python -m hardware.launch", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="where the programs keep state")
    parser.add_argument("--bundles", type=Path, nargs="+", required=True)
    parser.add_argument("--settle-milliseconds", type=int, default=2)
    parser.add_argument("--home-assistant", type=Path, help="instance file; else the stub world")
    parser.add_argument("--users", help="world=NAME,sink=NAME,direct=NAME,observer=NAME (as root)")
    parser.add_argument("--group", help="with --users: who may reach the sockets")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        return hold(_launcher_of(arguments))
    except (RuntimeError, HouseError, UsersError, OSError) as error:
        print(f"launch: {error}", file=sys.stderr)  # noqa: T201  # the operator reads this
        return 2


if __name__ == "__main__":
    sys.exit(main())
