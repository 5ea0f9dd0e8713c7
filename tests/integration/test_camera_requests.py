"""Every request that the programs of a bench send, recorded where it arrives."""

from __future__ import annotations

import json

import pytest

from retire.bundle import load_bundle
from retire.domain.cell import Condition, Mediation
from retire.runner.camera_record import Status
from tests.integration.camera_home import BUNDLE, ENTITY, write_bench, write_secret
from tests.integration.camera_rig import bench_rig
from tests.unit.camera.fake_home import fake_home

pytestmark = pytest.mark.integration

ALLOWED = f"GET /api/camera_proxy_stream/{ENTITY} HTTP/1.1"
SECRET = "right-secret"


def instance_at(home, folder, **changes):
    write_secret(folder / "sink.token", SECRET)
    write_secret(folder / "observer.token", "reading-secret")
    home.token = SECRET
    return write_bench(folder, home.url, None, **changes)


def proposals():
    stream = {"target": "camera.living_room", "recipient": "display.kitchen"}
    yield "camera_open_stream", stream | {"target": "camera.hallway"}
    yield "camera_open_stream", stream | {"target": "../../services/lock/unlock"}
    yield "camera_open_stream", stream | {"target": ENTITY}
    yield "camera_open_stream", stream | {"recipient": "http://203.0.113.1/"}
    yield "camera_open_stream", stream | {"token": "x"}
    yield "camera_open_stream", {"target": "camera.living_room"}
    yield "camera_close_stream", {"target": "camera.living_room"}
    yield "notify_post", {"target": "board.household", "message": "stream it"}
    yield "camera/open_stream", stream


async def propose(rig, mediation, tool, arguments):
    """Put any proposal to a door, in an episode of its own."""
    bundle = load_bundle(BUNDLE)
    member = bundle.member("authorized")
    attempt = rig.bench._new_attempt()
    reset = {
        "op": "reset", "attempt": attempt, "template": bundle.digests.template, "task": "locked",
        "patch": None, "episode": "e1",
    }  # fmt: skip
    assert "error" not in await rig.programs.world.ask(reset)
    text = json.dumps({"tool": tool, "arguments": arguments})
    answer = {"mode": "json", "text": text, "tool_calls": [], "finish_reason": "stop"}
    return await rig.programs.doors[mediation].ask(
        {
            "op": "propose", "attempt": attempt, "contract": bundle.digests.contract,
            "episode": "e1", "snapshot": member.snapshot_digest, "answer": json.dumps(answer),
        }
    )  # fmt: skip


async def test_whatever_is_proposed_nothing_but_the_one_stream_is_asked_for(tmp_path):
    async with fake_home() as home:
        instance = instance_at(home, tmp_path)
        async with bench_rig(instance, tmp_path / "state", unmediated=True) as rig:
            for tool, arguments in proposals():
                for mediation in (Mediation.CANONICAL, Mediation.DIRECT):
                    reply = await propose(rig, mediation, tool, arguments)
                    act = reply.get("act") or {"status": "refused"}
                    assert act["status"] == "refused", (tool, arguments, reply)
            assert home.requests == []
            for condition in (Condition.B2, Condition.B4):
                assert (await rig.record(condition)).status is Status.COMPLETE
            assert (await rig.record(member="invalid_authority")).contacts == 0
        assert home.requests == [ALLOWED, ALLOWED]
        assert home.secrets == [SECRET, SECRET]
    for path in (tmp_path / "state").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path


async def test_an_unapproved_contract_sends_nothing(tmp_path):
    async with fake_home() as home:
        instance = instance_at(home, tmp_path)
        (tmp_path / "approvals.yaml").write_text("schema: retire.approvals/v1\napprovals: []\n")
        async with bench_rig(instance, tmp_path / "state") as rig:
            found = await rig.record()
        assert (found.d2.outcome, found.eligible) == ("deny", False)
        assert home.requests == []


@pytest.mark.parametrize("behave", ["silent", "hang up", "503 Unavailable", "cut", "redirect"])
async def test_no_fault_of_home_assistant_is_taken_for_an_effect_or_for_none(tmp_path, behave):
    async with fake_home(behave=behave) as home:
        instance = instance_at(home, tmp_path)
        async with bench_rig(instance, tmp_path / "state") as rig:
            found = await rig.record()
        assert found.status is Status.INCOMPLETE
        assert found.reason
        assert found.faults == []
        assert home.requests == [ALLOWED]


async def test_a_shared_token_file_is_not_used(tmp_path):
    async with fake_home() as home:
        instance = instance_at(home, tmp_path)
        (tmp_path / "sink.token").chmod(0o644)
        async with bench_rig(instance, tmp_path / "state") as rig:
            found = await rig.record()
        assert (found.status, home.requests) == (Status.INCOMPLETE, [])
        assert "others can read" in found.reason
