"""What the runner holds cannot act: not its sockets, not its descriptors, not its environment.

By design the direct adapter executes proposals, against the stub world only; that is the arm of a
study in which no boundary stands. So the attacker here sends everything but a proposal, and the
last test shows that a proposal would have been noticed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from retire.bundle import load_bundle
from retire.domain.cell import Mediation
from retire.runner.processes import running_programs
from tests.integration.driver import parent_of
from tests.integration.driving import PROGRAMS, REPOSITORY, query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from retire.runner.processes import Programs

pytestmark = pytest.mark.integration

ATTEMPT = "ab" * 16
ACTING = {"sink-canonical": 1, "sink-exact": 1, "direct": 1, "world": 3}
"""How many ends of the act face each program holds."""


@asynccontextmanager
async def with_an_episode(
    state: Path, panel: Path
) -> AsyncIterator[tuple[Programs, dict[str, Any]]]:
    """Programs with one frozen episode in which unlocking would be an effect."""
    bundle = load_bundle(panel / "ACC_L01")
    async with running_programs(state, [panel / "ACC_L01"]) as programs:
        reset = {
            "op": "reset",
            "attempt": ATTEMPT,
            "template": bundle.digests.template,
            "task": "locked",
            "patch": None,
            "episode": "sha256:" + "1" * 64,
        }
        frozen = await programs.world.ask(reset)
        yield (
            programs,
            {
                "attempt": ATTEMPT,
                "contract": bundle.digests.contract,
                "episode": reset["episode"],
                "snapshot": frozen["snapshot_digest"],
            },
        )


def arguments_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")


def socket_of(pid: int) -> str:
    words = arguments_of(pid)
    return words[words.index("--socket") + 1]


def descriptors_of(pid: int) -> dict[int, str]:
    found = {}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found[int(entry.name)] = str(entry.readlink())
        except FileNotFoundError:
            continue
    return found


def act_face_of(pid: int) -> set[str]:
    """The sockets that a program was told to use as its end of the act face."""
    words = arguments_of(pid)
    if "--act-face" not in words:
        return set()
    numbers = []
    for word in words[words.index("--act-face") + 1 :]:
        if not re.fullmatch(r"\d+", word):
            break
        numbers.append(int(word))
    held = descriptors_of(pid)
    return {held[number] for number in numbers}


async def test_only_world_and_actuators_hold_an_end_of_the_act_face(
    tmp_path: Path, panel: Path
) -> None:
    async with with_an_episode(tmp_path, panel) as (programs, _):
        pids = {**programs.pids, "launcher": parent_of(programs.pids["world"])}
        faces = {name: act_face_of(pids[name]) for name in PROGRAMS}
        assert {name: len(face) for name, face in faces.items() if face} == ACTING
        everything = set().union(*faces.values())
        assert len(everything) == sum(ACTING.values())
        for name, pid in {**pids, "runner": os.getpid()}.items():
            held = set(descriptors_of(pid).values()) & everything
            assert held == faces.get(name, set()), f"{name} holds an end that is not its own"


ATTACKER = """
import json, os, socket, sys
given = json.loads(sys.argv[1])
told = []
def frame(message):
    data = json.dumps(message).encode()
    return len(data).to_bytes(4, "big") + data
def answers(end, count):
    end.settimeout(0.5)
    data = b""
    try:
        while count:
            part = end.recv(65536)
            if not part:
                break
            data += part
            while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
                size = 4 + int.from_bytes(data[:4], "big")
                told.append(json.loads(data[4:size]))
                data, count = data[size:], count - 1
    except OSError:
        pass
def try_everything(end):
    try:
        for message in given["messages"]:
            end.sendall(frame(message))
        answers(end, len(given["messages"]))
    except OSError:
        pass
for path in given["paths"]:
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(path)
        try_everything(end)
reached = len(told)
for number in given["descriptors"]:
    try:
        end = socket.socket(fileno=number)
    except OSError:
        continue
    try_everything(end)
print(json.dumps({"told": told, "reached": reached}))
"""


def hostile_messages(identity: dict[str, Any]) -> list[dict[str, Any]]:
    act = {
        "attempt": ATTEMPT,
        "service": "lock.unlock",
        "target": "lock.front_door",
        "parameters": {},
    }
    return [
        {"op": "act", **act, "revision": 1},
        {"op": "act", **act, "revision": None},
        {"op": "frozen", "attempt": ATTEMPT},
        {"op": "reset", **act, "act": act, "op2": "act"},
        {"op": ["act"], **act},
        {"op": "act_unmonitored", **act, **identity},
        {"act": act, **identity},
        {"op": "sweep", "act": act},
        {"op": "hello", "face": "act"},
    ]


async def test_a_process_with_everything_of_the_runner_cannot_act(
    tmp_path: Path, panel: Path
) -> None:
    async with with_an_episode(tmp_path, panel) as (programs, identity):
        sockets = [
            number for number, link in descriptors_of(os.getpid()).items() if "socket:" in link
        ]
        given = {
            "paths": [socket_of(pid) for pid in programs.pids.values()],
            "descriptors": sockets,
            "messages": hostile_messages(identity),
        }
        attacker = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            ATTACKER,
            json.dumps(given),
            stdout=asyncio.subprocess.PIPE,
            pass_fds=sockets,
            cwd=REPOSITORY,
        )
        output, _ = await attacker.communicate()
        result = json.loads(output)
        # Every socket answered every message, and none of the answers is an act or a snapshot.
        assert result["reached"] == len(PROGRAMS) * len(given["messages"])
        for reply in result["told"]:
            if reply in given["messages"]:
                continue  # this process's own wake-up pair, both ends of which were handed over
            assert (reply.get("act") or reply).get("status") != "done"
            assert "snapshot" not in reply
            assert "revision" not in reply
    assert journal(tmp_path) == []


async def test_the_attack_would_be_seen(tmp_path: Path, panel: Path) -> None:
    """A proposal, which the runner may make, does reach the world and its journal."""
    async with with_an_episode(tmp_path, panel) as (programs, identity):
        text = json.dumps({"tool": "lock_unlock", "arguments": {"target": "lock.front_door"}})
        answer = json.dumps({"mode": "json", "text": text, "finish_reason": "stop"})
        reply = await programs.doors[Mediation.DIRECT].ask(
            {"op": "propose", **identity, "answer": answer}
        )
        assert reply["act"]["status"] == "done"
    assert len(journal(tmp_path)) > 0


def journal(state: Path) -> list[tuple[Any, ...]]:
    return query(state / "world" / "world.sqlite", "SELECT * FROM journal")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_sockets_and_keys_are_private_and_keys_stay(tmp_path: Path, panel: Path) -> None:
    signing = ("sink-canonical", "sink-exact", "direct", "observer")
    keys = []
    for _ in range(2):
        async with running_programs(tmp_path / "state", [panel / "ACC_L01"]) as programs:
            folders = {Path(socket_of(pid)).parent for pid in programs.pids.values()}
            assert len(folders) == 1
            assert mode_of(folders.pop()) == 0o700
            asked = [programs.doors[way] for way in Mediation] + [programs.observer]
            keys.append([(await channel.ask({"op": "hello"}))["key"] for channel in asked])
        for name in signing:
            key = tmp_path / "state" / name / "key"
            assert mode_of(key) == 0o600
            assert mode_of(key.parent) == 0o700
            assert len(key.read_bytes()) == 32
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == len(signing)


async def test_a_program_keeps_no_socket_behind(tmp_path: Path, panel: Path) -> None:
    async with running_programs(tmp_path, [panel / "ACC_L01"]) as programs:
        folder = Path(socket_of(programs.pids["world"])).parent
        assert folder.exists()
    assert not folder.exists()
