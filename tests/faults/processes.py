"""Faults of whole processes: kills, real sockets, and a contract that cannot be read at start."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retire.bundle import load_bundle
from retire.domain.cell import Mediation
from retire.runner.processes import running_programs
from sink.record import parse_line
from tests.faults import reference
from tests.faults.rig import Act, folder

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).resolve().parents[2]
BUNDLE = REPOSITORY / "bundles" / "panel" / "ACC_L01"
GROUP = "Processes"
EPISODE = "sha256:" + "2" * 64
FIRST, OTHER = "cd" * 16, "ef" * 16
UNLOCK = {"tool": "lock_unlock", "arguments": {"target": "lock.front_door"}}


def message(attempt: str) -> dict[str, Any]:
    """A message that is right in every way."""
    bundle = load_bundle(BUNDLE)
    return {
        "op": "propose",
        "attempt": attempt,
        "contract": bundle.digests.contract,
        "episode": EPISODE,
        "snapshot": bundle.member("authorized").snapshot_digest,
        "answer": json.dumps({"mode": "json", "text": json.dumps(UNLOCK), "finish_reason": "stop"}),
    }


def authorized(sent: Mapping[str, Any]) -> bool:
    """The reference's word on a message about the bundle's authorized member."""
    data = (BUNDLE / "contract.yaml").read_bytes()
    contract = reference.sha256(data)
    snapshot = load_bundle(BUNDLE).member("authorized").snapshot
    truth = reference.Truth(snapshot, EPISODE, contract)
    return reference.may_act({contract: reference.read_contract(data)}, "canonical", sent, truth)


def bodies(path: Path) -> list[Mapping[str, Any]]:
    entries = [parse_line(line) for line in path.read_bytes().splitlines()]
    return [entry.body for entry in entries if entry is not None]


def word(body: Mapping[str, Any]) -> str:
    if body["kind"] == "outcome":
        return f"outcome {body['act']}"
    return "intent" if body["decision"] == "allow" else f"deny {body['reason']}"


def ask_dying(place: Path, dies: str, attempt: str) -> Mapping[str, Any] | None:
    """Ask a sink in a process of its own, which may be killed while it answers."""
    config = {
        "bundle": str(BUNDLE),
        "record": str(place / "record.jsonl"),
        "sent": str(place / "sent"),
        "dies": dies,
        "message": message(attempt),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.dying_sink", json.dumps(config)],
        cwd=REPOSITORY,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def killed(what: str, dies: str) -> dict[str, Any]:
    """A sink killed after its intent was durable, started again and asked again."""
    with folder() as name:
        place = Path(name)
        assert ask_dying(place, dies, FIRST) is None
        again = ask_dying(place, "never", FIRST)
        assert again is not None
        lines = (place / "sent").read_text().splitlines() if (place / "sent").exists() else []
        told = bodies(place / "record.jsonl")
    recorded = any(body.get("decision") == "allow" for body in told)
    return {
        "group": GROUP,
        "what": f"{what}; started and asked again",
        "decision": f"none, {again['decision']}",
        "reason": f"no reply, {again['reason']}",
        "sent": ", ".join(line.split(" ", 1)[1] for line in lines) or "nothing",
        "record": ", ".join(word(body) for body in told),
        "acts": tuple(Act(FIRST, line, recorded, authorized(message(FIRST))) for line in lines),
        "right_acts": 1 if dies == "after" else 0,
    }


def started(what: str, spoil: bytes) -> dict[str, Any]:
    """The sink's own program, given a bundle whose contract is not what it should be."""
    with folder() as name:
        place = Path(name)
        bundle = place / "bundle"
        bundle.mkdir()
        (bundle / "contract.yaml").write_bytes(spoil)
        left, right = socket.socketpair()
        life_read, life_write = os.pipe()
        with left, right:
            command = [sys.executable, "-m", "sink", "--binding", "canonical"]
            command += ["--bundles", str(bundle), "--state", str(place / "state")]
            command += ["--socket", str(place / "socket"), "--life", str(life_read)]
            command += ["--act-face", str(right.fileno())]
            done = subprocess.run(
                command,
                cwd=REPOSITORY,
                pass_fds=[right.fileno(), life_read],
                capture_output=True,
                timeout=60,
                check=False,
            )
        os.close(life_read)
        os.close(life_write)
    assert b"Traceback" not in done.stderr
    return {
        "group": GROUP,
        "what": what,
        "decision": "none",
        "reason": f"does not start (exit {done.returncode}, file and line named)"
        if b"contract.yaml" in done.stderr
        else f"exit {done.returncode}",
        "sent": "nothing",
        "record": "nothing",
    }


async def _ask_alone(path: Path, sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """One question over a connection of its own."""
    reader, writer = await asyncio.open_unix_connection(path, limit=2**22)
    data = json.dumps({**sent, "id": 1}).encode()
    writer.write(len(data).to_bytes(4, "big") + data)
    length = int.from_bytes(await reader.readexactly(4), "big")
    reply = json.loads(await reader.readexactly(length))
    writer.close()
    return reply


async def eight_connections() -> dict[str, Any]:
    """Eight clients with one proposal, at once, against the real programs."""
    bundle = load_bundle(BUNDLE)
    with folder() as name:
        state = Path(name)
        async with running_programs(state, [BUNDLE]) as programs:
            reset = {
                "op": "reset",
                "attempt": FIRST,
                "template": bundle.digests.template,
                "task": "locked",
                "patch": None,
                "episode": EPISODE,
            }
            answer = await programs.world.ask(reset)
            assert "error" not in answer, answer
            door = Path(programs.doors[Mediation.CANONICAL]._writer.get_extra_info("peername"))
            sent = message(FIRST)
            replies = await asyncio.gather(*(_ask_alone(door, sent) for _ in range(8)))
        told = bodies(state / "sink-canonical" / "record.jsonl")
        with sqlite3.connect(state / "world" / "world.sqlite") as truth:
            journal = [json.loads(row[0]) for row in truth.execute("SELECT body FROM journal")]
        truth.close()
    decided = Counter(reply["decision"] for reply in replies)
    reasons = Counter(reply["reason"] or f"act {reply['act']['status']}" for reply in replies)
    lines = [f"{item['target']} {item['variable']} {item['after']}" for item in journal]
    recorded = any(body.get("decision") == "allow" for body in told)
    entries = Counter(word(body) for body in told)
    return {
        "group": GROUP,
        "what": "eight clients at once over the real socket, one proposal",
        "decision": _told(decided),
        "reason": _told(reasons),
        "sent": ", ".join(lines) or "nothing",
        "record": _told(entries),
        "acts": tuple(Act(FIRST, line, recorded, authorized(sent)) for line in lines),
        "right_acts": 1,
    }


def _told(counts: Counter[str]) -> str:
    return ", ".join(
        text if number == 1 else f"{number} x {text}" for text, number in sorted(counts.items())
    )


async def all_told() -> list[dict[str, Any]]:
    """Every row of this group, as the fields of a row."""
    whole = (BUNDLE / "contract.yaml").read_bytes()
    return [
        killed("killed between the durable intent and the act", "before"),
        killed("killed between the act and its outcome", "after"),
        started("contract cut in the middle", whole[: len(whole) // 2]),
        started("contract with a key twice", whole + b"\nbundle: ACC_L01\n"),
        await eight_connections(),
    ]
