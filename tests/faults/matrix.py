"""Run every fault and say what was seen, one row each."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tests.faults import processes
from tests.faults.catalogue import SIMPLE, Fault
from tests.faults.rig import PATIENT_SECONDS, SHORT_SECONDS, Act, Rig, folder, snapshot_bytes
from tests.faults.scenes import SCENES, Scene

if TYPE_CHECKING:
    from collections.abc import Mapping

REPEATS = 15


@dataclass(frozen=True)
class Row:
    """One row of the table; ``acts`` and ``right_acts`` are for the test, not for the page."""

    group: str
    what: str
    decision: str
    reason: str
    sent: str
    record: str
    seconds: float | None = None
    acts: tuple[Act, ...] = ()
    right_acts: int = 0


def counted(words: list[str]) -> str:
    """Equal neighbours told once, with their number."""
    told: list[list[Any]] = []
    for word in words:
        if told and told[-1][0] == word:
            told[-1][1] += 1
        else:
            told.append([word, 1])
    return ", ".join(word if number == 1 else f"{number} x {word}" for word, number in told)


def entry_word(body: Mapping[str, Any]) -> str:
    """A record entry in a few words."""
    match body.get("kind"):
        case "decision" if body["decision"] == "allow":
            return "intent"
        case "decision":
            return f"deny {body['reason']}"
        case "outcome":
            return f"outcome {body['act']}"
        case kind:
            return str(kind)


def reason_word(reply: Mapping[str, Any]) -> str:
    """The reason of a deny, or what an allow came to."""
    if reply["reason"]:
        detail = str(reply.get("detail", ""))
        named = reply["reason"] == "malformed_proposal" and detail.replace("_", "").isalpha()
        return f"{reply['reason']} ({detail})" if named else str(reply["reason"])
    status = reply["act"]["status"] if reply.get("act") else "nothing sent"
    return f"{reply['basis']}, act {status}"


def row_of(group: str, what: str, rig: Rig, replies: list[Mapping[str, Any]]) -> dict[str, Any]:
    """What a run of a fault showed."""
    replies = sorted(replies, key=lambda reply: reply["decision"]) if len(replies) > 3 else replies
    return {
        "group": group,
        "what": what,
        "decision": counted([reply["decision"] for reply in replies]),
        "reason": counted([reason_word(reply) for reply in replies]),
        "sent": counted([act.text for act in rig.world.acts]) or "nothing",
        "record": counted([entry_word(body) for body in rig.on_disk()]) or "nothing",
        "acts": tuple(rig.world.acts),
    }


def rig_in(place: str, *, hangs: bool) -> Rig:
    return Rig(Path(place), deadline_seconds=SHORT_SECONDS if hangs else PATIENT_SECONDS)


async def run_fault(group: str, fault: Fault, repeats: int = 1) -> Row:
    """Run a fault of one message, each time with a sink of its own."""
    times, row = [], {}
    for _ in range(repeats):
        with folder() as place:
            rig = rig_in(place, hangs=fault.hangs)
            await rig.monitor.start()
            fault.prepare(rig)
            start = time.perf_counter()
            reply = await rig.ask(**fault.message)
            times.append(time.perf_counter() - start)
            row = row_of(group, fault.what, rig, [reply])
            rig.record.close()
    return Row(**row, seconds=median(times), right_acts=int(fault.acts))


async def run_scene(group: str, scene: Scene) -> Row:
    """Run a fault with a course of its own."""
    with folder() as place:
        rig = rig_in(place, hangs=scene.hangs)
        await rig.monitor.start()
        rig.freeze(snapshot_bytes())
        replies = await scene.play(rig)
        row = row_of(group, scene.what, rig, replies)
        rig.record.close()
    return Row(**row, right_acts=scene.acts)


async def all_rows(repeats: int = 1) -> list[Row]:
    """Run everything, in the order of the page."""
    rows: list[Row] = []
    for group, faults in SIMPLE.items():
        rows += [await run_fault(group, fault, 1 if fault.hangs else repeats) for fault in faults]
    for group, scenes in SCENES.items():
        rows += [await run_scene(group, scene) for scene in scenes]
    return rows + [Row(**told) for told in await processes.all_told()]
