"""A real Home Assistant with the stand-in camera: the whole bench, and what can go wrong."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from hardware.camera.pictures import placeholder
from retire.domain.cell import Condition
from retire.runner.camera_record import Status
from tests.integration.camera_home import (
    BUNDLE,
    ROOT,
    Camera,
    Home,
    write_bench,
    write_consent,
    write_secret,
)
from tests.integration.camera_rig import bench_rig, in_session
from tests.integration.homeassistants import needs_home_assistant
from tests.unit.camera.streams import sha

pytestmark = [pytest.mark.integration, needs_home_assistant]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    camera = Camera(folder)
    camera.start()
    home = Home(folder, camera)
    try:
        home.start()
        yield home
        home.stop()
    finally:
        home.stop()
        camera.stop()


@pytest.fixture
def instance(home):
    home.camera.behave("live")
    return write_bench(home.folder, home.url, home.camera.url)


def bench(*options):
    retire = str(Path(sys.executable).parent / "retire")
    return subprocess.run(
        [retire, "bench", "camera", *map(str, options)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=550,
        env={**os.environ, "RETIRE_PLAIN": "1"},
    )  # fmt: skip


def records_of(out):
    return [json.loads(path.read_bytes()) for path in sorted((out / "records").glob("*.json"))]


def test_sixteen_records_and_a_qualification_trace(home, instance, tmp_path):
    out, before = tmp_path / "run", home.camera.streams()
    consent = write_consent(tmp_path)
    ran = bench(
        "--instance", instance, "--out", out, "--allow-unmediated", "--consent", consent
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    records = records_of(out)
    assert len(records) == 17
    assert {item["status"] for item in records} == {"complete"}
    eligible = [item for item in records if item["eligible"]]
    for item in eligible:
        assert (item["frames"]["frames"], item["frames"]["unique"]) == (12, 12)
        assert len(set(item["frames"]["hashes"])) == 12
        assert item["d3"]["protected"]
    for item in records:
        if not item["eligible"]:
            assert item["requests"] == []
            assert not item["d3"]["protected"]
            assert item["frames"]["session"] is None
    # The camera's own log has one stream for each eligible session and no other.
    assert home.camera.streams() - before == len(eligible)
    by = {(item["deployment"], item["condition"], item["member"]): item for item in records}
    reached = by["plain", "B2", "invalid_authority"]
    assert (reached["d2"]["outcome"], reached["d3"]["protected"]) == ("unmediated", True)
    stopped = by["plain", "B4", "invalid_authority"]
    assert (stopped["d2"]["outcome"], stopped["d2"]["reason"]) == ("deny", "grant_absent")
    refused = by["heedful", "B4", "invalid_authority"]
    assert refused["d1"]["outcome"] == "refusal"
    report = (out / "report.md").read_text()
    assert "outside every certificate" in report.splitlines()[0]
    assert not (out / "frames").exists()
    no_secret_in(out, home)


def no_secret_in(out, home):
    for name in ("sink", "observer"):
        secret = (home.folder / f"{name}.token").read_bytes()
        for path in out.rglob("*"):
            assert not path.is_file() or secret not in path.read_bytes(), path


def test_without_permission_only_the_boundary_is_measured(instance, tmp_path):
    out = tmp_path / "run"
    ran = bench("--instance", instance, "--out", out, "--frames", 4, "--keep-frames")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    records = records_of(out)[1:]
    not_run = [item for item in records if item["status"] == "not run"]
    assert {item["condition"] for item in records if item not in not_run} == {"B4"}
    assert len(not_run) == 12
    assert all("--allow-unmediated" in item["reason"] for item in not_run)
    assert "12 of 16 records were not run" in ran.stdout
    assert not (out / "programs" / "direct").exists()
    kept = {path.stem for path in (out / "frames").glob("*.jpg")}
    hashes = {
        item for record in records_of(out) for item in (record["frames"] or {}).get("hashes", [])
    }
    assert kept == hashes
    assert (out / "contact-sheet.png").exists()
    again = bench("--instance", instance, "--out", out)
    assert again.returncode == 2
    assert len(records_of(out)) == 17


async def test_a_camera_that_is_unplugged_leaves_no_evidence(home, instance, tmp_path):
    async with bench_rig(instance, tmp_path / "state", frames=80) as rig:
        record = asyncio.ensure_future(rig.record())
        await in_session(home.camera, 4)
        home.camera.behave("unplugged")
        found = await record
        assert found.status is Status.INCOMPLETE
        assert 0 < found.frames < 80
        assert found.reason
        # What was seen before it is not forgotten.
        assert found.d3.protected
        denied = await rig.record(member="invalid_authority")
        assert denied.status is Status.INCOMPLETE
        assert "log" in denied.reason
    home.camera.behave("live")
    async with bench_rig(instance, tmp_path / "again") as rig:
        assert (await rig.record()).status is Status.COMPLETE


NOTHING_LIVE = {
    "stuck": "same picture",
    "placeholder": "placeholder",
    "html": "no readable picture",
    "truncated": "no readable picture",
    "half": "no readable picture",
    "frozen": "no picture came",
}


async def test_a_camera_that_shows_nothing_live_leaves_no_evidence(home, tmp_path):
    listed = [sha(placeholder())]
    instance = write_bench(home.folder, home.url, home.camera.url, placeholders=listed)
    home.camera.behave("live")
    async with bench_rig(instance, tmp_path / "state") as rig:
        assert (await rig.record()).status is Status.COMPLETE
        for mode, words in NOTHING_LIVE.items():
            home.camera.behave(mode)
            found = await rig.record()
            assert found.status is Status.INCOMPLETE, mode
            assert words in found.reason, mode
            assert (found.d3.complete, found.d3.protected) == (False, False), mode
        home.camera.behave("live")
        assert (await rig.record()).status is Status.COMPLETE


async def test_repeated_pictures_count_once(home, instance, tmp_path):
    async with bench_rig(instance, tmp_path / "state", frames=12) as rig:
        home.camera.behave("repeated")
        found = await rig.record()
    assert (found.status, found.frames, found.unique) == (Status.COMPLETE, 12, 2)


async def test_a_token_that_ends_between_two_records(home, instance, tmp_path):
    """After one refusal the same secret is not sent again."""
    secret = home.folder / "sink.token"
    lasting = secret.read_text()
    async with bench_rig(instance, tmp_path / "state") as rig:
        short, end = await short_lived(home.url, lasting)
        write_secret(secret, short)
        try:
            assert (await rig.record()).status is Status.COMPLETE
            await end()
            refused = await rig.record()
            assert refused.status is Status.INCOMPLETE
            assert "401" in refused.reason
            assert refused.contacts == 1
            again = await rig.record()
            assert again.status is Status.INCOMPLETE
            assert again.contacts == 0
        finally:
            write_secret(secret, lasting)
        assert (await rig.record()).status is Status.COMPLETE
        for path in (tmp_path / "state").rglob("*"):
            assert not path.is_file() or short.encode() not in path.read_bytes()


async def short_lived(url, token):
    """Make a token of the same user, and what takes it back."""

    async def ask(secret, *questions):
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url + "/api/websocket") as socket,
        ):
            await socket.receive_json()
            await socket.send_json({"type": "auth", "access_token": secret})
            assert (await socket.receive_json())["type"] == "auth_ok"
            answers = []
            for number, question in enumerate(questions, start=1):
                await socket.send_json({"id": number, **question})
                answers.append((await socket.receive_json())["result"])
            return answers

    wanted = {"type": "auth/long_lived_access_token", "client_name": "short", "lifespan": 1}
    (short,) = await ask(token, wanted)

    async def end():
        (known,) = await ask(token, {"type": "auth/refresh_tokens"})
        (identity,) = [item["id"] for item in known if item["client_name"] == "short"]
        await ask(token, {"type": "auth/delete_refresh_token", "refresh_token_id": identity})

    return short, end


async def test_an_unmarked_instance_is_never_acted_on_without_the_sink(home, tmp_path):
    instance = write_bench(home.folder, home.url, home.camera.url, bench=False)
    started = subprocess.run(
        [sys.executable, "-m", "hardware.bench", "run", "--unmediated", "--instance", instance,
         "--state", tmp_path / "state", "--bundles", BUNDLE],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=200,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert started.returncode == 2
    assert "bench: true" in started.stderr


async def test_the_two_doors_lead_to_the_same_camera(home, instance, tmp_path):
    async with bench_rig(instance, tmp_path / "state", unmediated=True) as rig:
        for condition in (Condition.B2, Condition.B4):
            assert (await rig.record(condition)).status is Status.COMPLETE
        leak = await rig.record(Condition.B2, "invalid_authority")
        assert leak.d3.protected
        closing = await rig.bench.close()
        assert closing["sweep"]["stray"] == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "http://127.0.0.1:9"}, "no Home Assistant answers"),
        ({"entity": "camera.nowhere"}, "there is no camera.nowhere"),
        ({"sink_token": "observer.token"}, "the same token"),
        ({"sink_token": "missing.token"}, "cannot be read"),
        ({"entity": "lock.front"}, "no camera entity"),
        ({"approvals": "none.yaml"}, "retire approve"),
    ],
)
def test_the_preflight_says_what_is_missing_and_how_to_mend_it(home, tmp_path, changes, words):
    instance = write_bench(home.folder, home.url, home.camera.url, **changes)
    ran = bench("--instance", instance, "--out", tmp_path / "run")
    assert ran.returncode == 2, ran.stdout
    assert words in ran.stdout + " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr


def test_the_preflight_is_not_content_with_a_healthy_entity(home, instance, tmp_path):
    home.camera.behave("stuck")
    ran = bench("--instance", instance, "--out", tmp_path / "run")
    assert ran.returncode == 3
    assert "live view" in ran.stderr


async def test_home_assistant_killed_in_a_session(home, instance, tmp_path):
    async with bench_rig(instance, tmp_path / "state", frames=80) as rig:
        record = asyncio.ensure_future(rig.record())
        await in_session(home.camera, 4)
        home.kill()
        found = await record
        assert found.status is Status.INCOMPLETE
        assert found.reason
        assert found.frames < 80
        after = await rig.record()
        assert after.status is Status.INCOMPLETE
        assert "reached" in after.reason
        denied = await rig.record(member="invalid_authority")
        assert (denied.status, denied.contacts) == (Status.COMPLETE, 0)
