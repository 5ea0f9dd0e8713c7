"""Starts the programs of a camera bench: world, recipient, sink, observer, and direct if allowed.

It is the launcher of every run with a recipient added. The acting programs learn the ports of the
recipient, the observer learns its tap; whoever started the bench learns neither.
"""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardware.bench.messages import SETUP, CameraSetup, Chain
from hardware.launch import Launcher

if TYPE_CHECKING:
    from pathlib import Path

    from hardware.bench.instance import Instance


@dataclass(frozen=True, slots=True)
class Setting:
    """How a bench is started.

    Attributes:
        instance_file: The instance file, as the acting programs read it themselves.
        instance: The same, read.
        frames: Pictures that end a session.
        keep: Folder for pictures, or None.
        unmediated: Whether a program without a monitor is started.
    """

    instance_file: Path
    instance: Instance
    frames: int
    keep: Path | None
    unmediated: bool


class BenchLauncher(Launcher):
    """Starts and ends the programs of one bench."""

    def __init__(
        self, state: Path, bundles: list[Path], settle_milliseconds: int, setting: Setting
    ) -> None:
        super().__init__(state, bundles, settle_milliseconds)
        self._setting = setting

    def start(self) -> dict[str, str]:
        """Start everything; returns the sockets for proposing, observing and resetting.

        Raises:
            RuntimeError: A program did not become ready; its own message is on standard error.
        """
        setting = self._setting
        acting = ["sink-canonical", *(["direct"] if setting.unmediated else [])]
        with ExitStack() as ends:
            pairs = [socket.socketpair() for _ in acting]
            for pair in pairs:
                for end in pair:
                    ends.enter_context(end)
            world_ends = [pair[0].fileno() for pair in pairs]
            faces = ["--act-face", *map(str, world_ends)]
            self._spawn("world", ["hardware.world", *faces], world_ends)
            frames = ["--frames", str(setting.frames)]
            self._spawn("recipient", ["hardware.bench", "recipient", *frames], [])
            self._await_sockets(("world", "recipient"))
            chain = self._write_chain()
            for name, pair in zip(acting, pairs, strict=True):
                self._spawn_acting(name, pair[1].fileno(), chain)
            self._spawn_observer()
        self._await_sockets((*acting, "observer"))
        names = ("world", "observer", *acting)
        return {name: str(self._sockets / name) for name in names}

    def _spawn_acting(self, name: str, face: int, chain: Path) -> None:
        acting = ["--act-face", str(face), "--camera", str(chain)]
        if name == "direct":
            self._spawn(name, ["hardware.direct", *acting], [face])
            return
        approvals = ["--real-world", "--approvals", self._setting.instance.approvals]
        self._spawn(name, ["sink", "--binding", "canonical", *approvals, *acting], [face])

    def _spawn_observer(self) -> None:
        truth = str(self._state / "world" / "world.sqlite")
        arguments = ["--ground-truth", truth, "--settle-milliseconds", str(self._settle)]
        arguments += ["--camera", str(self._write_setup())]
        self._spawn("observer", ["observer", *arguments], [])

    def _write_chain(self) -> Path:
        """Write what the acting programs are told."""
        ports = json.loads((self._state / "recipient" / "ports.json").read_bytes())
        chain = Chain(instance=self._setting.instance_file.resolve(), recipients=ports)
        return self._write("chain.json", chain.model_dump_json(indent=1).encode())

    def _write_setup(self) -> Path:
        """Write what the observer is told."""
        setting = self._setting
        (self._state / "observer").mkdir(mode=0o700, parents=True, exist_ok=True)
        setup = CameraSetup(
            self._sockets / "recipient",
            setting.instance.target,
            (self._state / "observer" / "evidence.jsonl").resolve(),
            setting.instance.device,
            setting.instance.placeholders,
            None if setting.keep is None else setting.keep.resolve(),
        )
        return self._write("setup.json", SETUP.dump_json(setup, indent=1))

    def _write(self, name: str, data: bytes) -> Path:
        path = self._state / name
        path.write_bytes(data + b"\n")
        return path
