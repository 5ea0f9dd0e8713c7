"""The calls: what they answer, in which pages, with which headers, and every problem."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
import zipfile

import pytest

from retire.bundle import FILES
from retire.domain.run_state import RunState
from retire.service.answers import RunAnswer
from retire.service.documenting import ENVELOPE_EXAMPLE
from retire.service.preferences import preferred_wait
from retire.service.problems import Kind
from retire.service.settings import ServiceSettings
from tests.unit.service.fake_keeper import House
from tests.unit.service.test_access_to_the_service import BODY, problem


async def test_a_certification_is_accepted(house) -> None:
    async with house.client() as client:
        answer = await client.post("/certify", json={**BODY, "margin": 5, "seed": 7})
    assert answer.status_code == 202
    assert answer.headers["location"] == "/runs/r1"
    assert answer.json()["plan_digest"] == "sha256:ab"
    (sent,) = house.keeper.seen
    assert (sent.bundle, sent.folder, sent.candidate) == ("PRV_L01", None, None)
    assert (sent.placement, sent.margin_points, sent.repetitions, sent.seed) == ("B4", 5, 3, 7)


async def test_a_candidate_arrives_byte_for_byte(house) -> None:
    text = "# Kühl\r\n\nDo it.\n"
    body = {**BODY, "reduce": False, "candidate": text}
    async with house.client() as client:
        assert (await client.post("/certify", json=body)).status_code == 202
        answer = await client.post(
            "/certify",
            data={"bundle": "PRV_L01", "deployment": "plain"},
            files={"candidate": ("SKILL.md", text.encode())},
        )
        assert answer.status_code == 202
    assert [sent.candidate for sent in house.keeper.seen] == [text.encode()] * 2


async def test_an_uploaded_bundle_is_unpacked_and_removed(tmp_path, archive) -> None:
    house = House(ServiceSettings(uploads=tmp_path))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        target.writestr("SKILL.md", "not a bundle")
    fields = {"deployment": "plain", "placement": "B6", "repetitions": "2", "reduce": "true"}
    async with house.client() as client:
        answer = await client.post("/certify", data=fields, files={"archive": archive})
        assert answer.status_code == 202, answer.text
        assert answer.json()["bundle"] == "PRV_L01"
        answer = await client.post("/certify", data=fields, files={"archive": packed.getvalue()})
        assert "ledger.yaml" in problem(answer, "unusable-input")["detail"]
    assert [there for _, there in house.keeper.uploads] == [True]
    assert house.keeper.seen[0].repetitions == 2
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


async def test_lint_s_report_stands_in_the_problem(house, archive, panel) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for name in FILES:
            text = (panel / "PRV_L01" / name).read_text(encoding="utf-8")
            if name == "SKILL.md":
                text += "\nAlways ask the owner first. Never mind the time.\n"
            target.writestr(name, text)
    async with house.client("admin") as client:
        answer = await client.post("/bundles", files={"archive": packed.getvalue()})
        body = problem(answer, "unsound-bundle")
        assert {fault["file"] for fault in body["errors"]} <= set(FILES)
        assert any(fault["severity"] == "error" for fault in body["errors"])
        assert "/tmp" not in answer.text  # noqa: S108  # no path of the server
        answer = await client.post("/bundles", files={"archive": archive})
        assert answer.status_code == 201, answer.text
        assert answer.json()["id"] == "PRV_L01"
        answer = await client.post("/bundles", files={"archive": archive, "more": (None, "y")})
        assert problem(answer, "invalid-request")["errors"][0]["field"] == "more"
        problem(await client.post("/bundles", json={}), "unsupported-media-type")


async def test_a_bundle_that_takes_too_long_to_read_is_refused(panel) -> None:
    house = House(ServiceSettings(lint_time=1))
    # A mebibyte of short sentences takes several seconds of processor time to cut.
    skill = (panel / "PRV_L01" / "SKILL.md").read_bytes()
    endless = skill + b"\n\n" + b"Go on. " * ((1_048_000 - len(skill)) // 7)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as tar:
        for name in FILES:
            data = endless if name == "SKILL.md" else (panel / "PRV_L01" / name).read_bytes()
            entry = tarfile.TarInfo(f"PRV_L01/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    async with house.client("admin") as client:
        answer = await client.post("/bundles", files={"archive": buffer.getvalue()})
        assert "time" in problem(answer, "unsound-bundle")["detail"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"margin": 101}, "margin"),
        ({"margin": "10"}, "margin"),
        ({"margin": True}, "margin"),
        ({"repetitions": 0}, "repetitions"),
        ({"repetitions": 10**6}, "repetitions"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**53}, "seed"),
        ({"placement": "B1"}, "placement"),
        ({"deployment": "a\u0000b"}, "deployment"),
        ({"deployment": None}, "deployment"),
        ({"deployment": "nowhere"}, "deployment"),
        ({"bundle": "../etc"}, "bundle"),
        ({"bundle": ["PRV_L01"]}, "bundle"),
        ({"endpoint": "https://models.example"}, "endpoint"),
        ({"api_key": "sk-secret"}, "api_key"),
    ],
)
async def test_a_field_that_cannot_be_used_is_named(house, change, field) -> None:
    async with house.client() as client:
        answer = await client.post("/certify", json={**BODY, **change})
    body = problem(answer, "invalid-request")
    assert body["errors"][0]["field"] == field
    assert "sk-secret" not in answer.text
    assert house.keeper.seen == []


@pytest.mark.parametrize(
    "body",
    [
        {**BODY, "reduce": False},
        {**BODY, "candidate": "# x"},
        {name: value for name, value in BODY.items() if name != "reduce"},
        [],
        None,
        7,
    ],
)
async def test_either_a_candidate_or_reduce(house, body) -> None:
    async with house.client() as client:
        answer = await client.post(
            "/certify", content=json.dumps(body), headers={"Content-Type": "application/json"}
        )
    problem(answer, "invalid-request")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"bundle": "a", "bundle": "b"}',
        b'{"margin": NaN}',
        b'{"margin": 1e999}',
        b'{"seed": ' + b"9" * 5000 + b"}",
        b'{"candidate": "\\ud800"}',
        b"[" * 200_000,
    ],
)
async def test_what_is_no_strict_json_is_refused(house, data) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    async with house.client() as client:
        for path in ("/certify", "/verify"):
            answer = await client.post(path, content=data, headers=headers)
            assert answer.status_code == 400
            problem(answer, "malformed-request")


@pytest.mark.parametrize(
    ("data", "files", "field"),
    [
        ({"deployment": "plain", "reduce": "true"}, {"other": b"x"}, "other"),
        ({"deployment": "plain", "reduce": "yes"}, {"archive": b"x"}, "reduce"),
        ({"deployment": "plain", "reduce": "true", "seed": "1.0"}, {"archive": b"x"}, "seed"),
        ({"deployment": "plain", "reduce": "true", "seed": "9" * 40}, {"archive": b"x"}, "seed"),
        ({"deployment": "plain", "reduce": "true", "url": "x"}, {"archive": b"x"}, "url"),
        ({"deployment": "plain"}, {"archive": b"x"}, "candidate"),
        ({"deployment": "plain", "bundle": "A"}, {"archive": b"x", "candidate": b"y"}, "archive"),
        ({"deployment": "plain"}, {"archive": b"x", "candidate": b""}, "candidate"),
    ],
)
async def test_parts_that_cannot_be_used_are_named(house, data, files, field) -> None:
    async with house.client() as client:
        answer = await client.post("/certify", data=data, files=files)
    assert problem(answer, "invalid-request")["errors"][0]["field"] == field


async def test_a_part_twice_or_a_broken_multipart_is_refused(house) -> None:
    async with house.client() as client:
        twice = [("archive", b"x"), ("archive", b"y")]
        problem(await client.post("/certify", files=twice), "invalid-request")
        for kind in ("multipart/form-data", "multipart/form-data; boundary=x"):
            answer = await client.post(
                "/certify", content=b"--x\r\nbad", headers={"Content-Type": kind}
            )
            assert answer.status_code in {400, 422}
            problem(answer, "malformed-request" if answer.status_code == 400 else "invalid-request")
        many = [(f"f{number}", b"x") for number in range(40)]
        problem(await client.post("/certify", files=many), "malformed-request")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_another_media_type_is_refused(house, kind) -> None:
    async with house.client() as client:
        for path in ("/certify", "/verify"):
            answer = await client.post(path, content=b"{}", headers={"Content-Type": kind})
            problem(answer, "unsupported-media-type")
            assert "application/json" in answer.headers["accept-post"]


async def test_a_candidate_at_fault_is_named_by_file_line_and_clause(house) -> None:
    async with house.client() as client:
        answer = await client.post(
            "/certify", json={**BODY, "reduce": False, "candidate": "NEW words."}
        )
    (fault,) = problem(answer, "unusable-input")["errors"]
    assert (fault["file"], fault["line"], fault["clause"]) == ("SKILL.md", 12, "c007")
    assert "/srv" not in answer.text


async def test_the_same_key_gives_the_same_run(house) -> None:
    async with house.client() as client, house.client("other") as other:
        headers = {"Idempotency-Key": "build-1"}
        first = await client.post("/certify", json=BODY, headers=headers)
        again = await client.post("/certify", json=BODY, headers={"Idempotency-Key": '"build-1"'})
        assert first.json()["id"] == again.json()["id"] == "r1"
        assert "idempotent-replayed" not in first.headers
        assert again.headers["idempotent-replayed"] == "true"
        changed = await client.post("/certify", json={**BODY, "seed": 2}, headers=headers)
        assert changed.status_code == 409
        problem(changed, "conflict")
        assert (await other.post("/certify", json=BODY, headers=headers)).json()["id"] == "r2"
        for bad in ("", "x" * 256, "a b"):
            answer = await client.post("/certify", json=BODY, headers={"Idempotency-Key": bad})
            assert problem(answer, "invalid-request")["errors"][0]["field"] == "Idempotency-Key"


@pytest.mark.parametrize(
    ("values", "seconds"),
    [
        ([], None),
        (["respond-async"], None),
        (["wait=10"], 10),
        (["respond-async, wait=10"], 10),
        (["handling=strict", 'Wait = "7"; x=y'], 7),
        (["wait=3, wait=9"], 3),
        (["wait=soon"], None),
        (["wait=-1"], None),
        (["wait=99999"], 60),
    ],
)
def test_preferred_wait(values, seconds) -> None:
    assert preferred_wait(values, 60) == seconds


async def test_a_preferred_wait_ends_with_the_run(house) -> None:
    async with house.client() as client:
        asking = asyncio.create_task(
            client.post("/certify", json=BODY, headers={"Prefer": "wait=50"})
        )
        while not house.keeper.rows:
            await asyncio.sleep(0)
        house.keeper.finish("r1")
        answer = await asking
        assert answer.status_code == 200
        assert answer.json()["verdict"] == "fail"
        assert answer.json()["links"]["certificate"] == "/certificates/k-r1"
        assert answer.headers["preference-applied"] == "wait=50"
        answer = await client.post("/certify", json=BODY, headers={"Prefer": "wait=0"})
        assert answer.status_code == 202


async def test_runs_come_in_pages(house) -> None:
    for _ in range(5):
        house.keeper.start("t-pipeline")
    seen = []
    async with house.client() as client:
        where = "/runs?limit=2"
        while where:
            answer = await client.get(where)
            page = answer.json()
            seen += [run["id"] for run in page["runs"]]
            where = page["next"]
            assert answer.headers.get("link") == (f'<{where}>; rel="next"' if where else None)
        assert seen == ["r5", "r4", "r3", "r2", "r1"]
        answer = await client.get("/runs?before=r99")
        assert problem(answer, "invalid-request")["errors"][0]["field"] == "before"


async def test_traces_come_in_pages_that_keep_their_filter(house) -> None:
    house.keeper.start("t-pipeline")
    async with house.client() as client:
        first = (await client.get("/runs/r1/traces?d2=allow&protected=true&limit=3")).json()
        assert [row["id"] for row in first["traces"]] == ["r1.1", "r1.3", "r1.5"]
        second = (await client.get(first["next"])).json()
        assert [row["id"] for row in second["traces"]] == ["r1.7"]
        assert second["next"] is None
        assert (await client.get("/traces/r1.3")).json()["id"] == "r1.3"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/runs?limit=0", "limit"),
        ("/runs?limit=501", "limit"),
        ("/runs?limit=1&limit=2", "limit"),
        ("/runs?befor=r1", "befor"),
        ("/runs/r1?x=1", "x"),
        ("/runs/r1/traces?conditon=B2", "conditon"),
        ("/runs/r1/traces?condition=B9", "condition"),
        ("/runs/r1/traces?after=-1", "after"),
        ("/runs/r1/traces?protected=maybe", "protected"),
        ("/runs/r1/traces?member=%00", "member"),
        ("/runs/a%20b", "run"),
        ("/traces/r1", "trace"),
    ],
)
async def test_a_parameter_that_cannot_be_used_is_named(house, path, field) -> None:
    house.keeper.start("t-pipeline")
    async with house.client() as client:
        answer = await client.get(path)
    assert problem(answer, "invalid-request")["errors"][0]["field"] == field


async def test_cancelling(house) -> None:
    house.keeper.start("t-pipeline")
    async with house.client() as client:
        assert (await client.post("/runs/r1/cancel")).json()["state"] == RunState.CANCELLED
        assert (await client.post("/runs/r1/cancel")).status_code == 200


async def test_certificates_are_read_and_verified(house) -> None:
    house.keeper.start("t-pipeline")
    house.keeper.finish("r1")
    async with house.client() as client:
        envelope = (await client.get("/certificates/k-r1")).json()
        assert envelope == ENVELOPE_EXAMPLE.as_json()
        assert (await client.post("/verify", json=envelope)).json()["intact"] is True
        forged = {**envelope, "signatures": [{"keyid": "forged", "sig": "AA=="}]}
        problem(await client.post("/verify", json=forged), "contradicted-evidence")
        unknown = {**envelope, "payload": "AAAA"}
        problem(await client.post("/verify", json=unknown), "unusable-input")
        answer = await client.post("/verify", json={**envelope, "url": "https://x"})
        assert problem(answer, "invalid-request")["errors"][0]["field"] == "url"


async def test_health_readiness_and_metrics(house) -> None:
    house.keeper.start("t-pipeline")
    async with house.client() as client:
        assert (await client.get("/readyz")).json()["checks"]["database"] is True
        house.keeper.checks["runner"] = False
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert problem(answer, "unavailable")["checks"] == {"database": True, "runner": False}
        await client.get("/runs/r1")
        await client.get("/nowhere")
        text = (await client.get("/metrics")).text
        assert 'route="/runs/{run}",status="200"} 1.0' in text
        assert 'route="unmatched",status="404"} 1.0' in text
        assert "r1" not in text


async def test_unknown_paths_and_methods_are_problems(house) -> None:
    async with house.client() as client:
        problem(await client.get("/nowhere"), "not-found")
        answer = await client.delete("/bundles")
        problem(answer, "method-not-allowed")
        assert answer.headers["allow"] == "GET, POST"


async def test_a_fault_of_the_service_says_nothing_of_its_inside(house, caplog) -> None:
    house.keeper.fault = RuntimeError("password=hunter2 at /srv/db")
    async with house.client() as client:
        answer = await client.post("/certify", json=BODY)
    assert answer.status_code == 500
    body = problem(answer, "internal-error")
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text
    assert body["instance"].removeprefix("urn:uuid:") in caplog.text


async def test_the_document_has_an_example_for_every_call_and_answer(house) -> None:
    async with house.client() as client:
        document = (await client.get("/openapi.json")).json()
        page = await client.get("/docs")
    for path, item in document["paths"].items():
        for method, operation in item.items():
            contents = [
                operation["responses"][status].get("content", {})
                for status in operation["responses"]
            ]
            contents.append(operation.get("requestBody", {}).get("content", {}))
            for content in contents:
                for kind, media in content.items():
                    # An archive has no example as text.
                    assert "example" in media or "examples" in media or kind.startswith("multipart")
            assert f"{method.upper()} {path}" in page.text
    example = document["paths"]["/runs/{run}"]["get"]["responses"]["200"]
    RunAnswer.model_validate(example["content"]["application/json"]["example"])
    assert "<script" not in page.text
    assert "'none'" in page.headers["content-security-policy"]


def test_every_kind_of_problem_is_explained(repository) -> None:
    text = (repository / "docs" / "service.md").read_text(encoding="utf-8")
    assert [kind.uri for kind in Kind if f"`{kind.value.slug}`" not in text] == []


async def test_a_run_that_has_ended_is_purged_and_one_that_goes_on_is_not(house) -> None:
    house.keeper.start("t-pipeline")
    async with house.client("admin") as client:
        problem(await client.post("/runs/r1/purge"), "conflict")
        assert house.keeper.purged == []
        house.keeper.finish("r1")
        answer = await client.post("/runs/r1/purge")
        assert answer.status_code == 200
        assert (answer.json()["id"], answer.json()["verdict"]) == ("r1", "fail")
        assert house.keeper.purged == ["r1"]
        problem(await client.post("/runs/r9/purge"), "not-found")
        problem(await client.post("/runs/r1/purge?force=1"), "invalid-request")
