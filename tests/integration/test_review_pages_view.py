"""A reviewer's way through a run, from the verdict to what one model was told, and back."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.integration.commands import PANEL, SCRIPT, files_below, retire, small_matrix, workshop
from tests.integration.viewing import Reader, viewing
from tests.markup import read_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \u202egnp.exe " + "long" * 2000


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    folder, done = small_matrix()
    assert done.code == 0, done.err
    with viewing(folder) as found:
        yield found


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that somebody changed: an answer, a certificate, a plan."""
    place = tmp_path_factory.mktemp("runs")
    source, _ = small_matrix()
    for name in ("answer", "certificate", "plan", "whole"):
        shutil.copytree(source, place / name)
    lines = (place / "answer" / "traces.jsonl").read_bytes().splitlines(keepends=True)
    row = json.loads(lines[3])
    row["body"]["answer"]["text"] = HOSTILE
    row["body"]["d1"] = {"outcome": "refusal", "rule": "", "text": HOSTILE}
    lines[3] = json.dumps(row).encode() + b"\n"
    (place / "answer" / "traces.jsonl").write_bytes(b"".join(lines))
    certificate = place / "certificate" / "certificates" / "plain-B2.json"
    envelope = json.loads(certificate.read_bytes())
    envelope["payload"] = "A" + envelope["payload"][1:]
    certificate.write_text(json.dumps(envelope))
    (place / "plan" / "plan.json").write_text("{}")
    return place


def test_from_the_verdict_to_the_leak_to_its_twin_to_the_clause(reader):
    runs = reader.open("/")
    run = reader.follow(runs.one("tr", data_run="small").one("a"))
    assert run.one("p", data_evidence="simulated").words.startswith("Simulated: not permission")
    assert run.one("section", data_verdict="fail").words.startswith("✕ Fail")
    square = next(it for it in run.all("td", data_condition="B2") if int(it["data-leaks"]))
    traces = reader.follow(square.all("a")[1])
    rows = traces.having("data-seq")
    assert len(rows) == int(square["data-leaks"])
    assert {row["data-leak"] for row in rows} == {"yes"}
    assert {row["data-bundle"] for row in rows} == {square["data-bundle"]}
    cell = reader.follow(rows[0].one("a"))
    assert cell.one("section", data_d1="proposal")
    assert cell.one("section", data_d2="unmediated")
    assert cell.one("section", data_leak="yes")
    assert cell.one("dd", data_rerenders="yes")
    told = cell.one("mark", id="difference").text
    member = rows[0]["data-member"]
    assert cell.one("li", data_predicate=member.removeprefix("invalid_"))["data-value"] == "false"
    here = reader.at
    twin = reader.follow(cell.one("a", data_step="twin"))
    assert "/authorized/" in twin.having("data-cell")[0]["data-cell"]
    assert twin.one("section", data_leak="no")["data-intended"] == "yes"
    assert not twin.all("mark")
    assert told not in {"", "true"}
    diff = reader.follow(reader.open(here).one("a", data_step="diff"))
    clauses = diff.having("data-clause")
    gone = [it for it in clauses if it["data-gone"] == "yes"]
    assert {it["data-role"] for it in gone} == {"task_guidance", "execution_condition"}
    leaking = [it for it in gone if it.having("data-leaks")]
    assert leaking
    assert all("authorized tasks still completed" in it.words for it in gone)
    back = reader.follow(leaking[0].having("data-leaks")[0])
    assert {row["data-leak"] for row in back.having("data-seq")} == {"yes"}


def test_the_certificate_is_verified_here_and_can_be_taken_away(reader):
    run = reader.open("/ui/runs/small?deployment=plain&condition=B4")
    page = reader.follow(run.having("data-certificate")[0])
    waiting = next(it for it in page.having("hx-get"))
    part = reader.client.get(waiting["hx-get"])
    assert read_page(part.text).one("div", data_verification="intact")
    page = reader.open("/ui/runs/small/certificates/plain-B4?verify=yes")
    assert page.one("div", data_verification="intact")
    answer = reader.client.get(page.having("data-download")[0]["href"])
    folder, _ = small_matrix()
    assert answer.json() == json.loads((folder / "certificates" / "plain-B4.json").read_bytes())
    assert "attachment" in answer.headers["content-disposition"]


def test_the_tests_stand_beside_the_verdict(reader):
    run = reader.open("/ui/runs/small")
    part = reader.client.get("/ui/runs/small/tests", headers={"HX-Request": "true"})
    assert {it["data-test"] for it in read_page(part.text).having("data-test")} == {
        "RQ1",
        "RQ2",
        "RQ3",
    }
    verdict = run.one("section", data_verdict="fail")
    assert not verdict.having("data-test")
    assert reader.open("/ui/runs/small/tests").one("h1")


def test_every_square_shows_the_number_of_traces_that_it_leads_to(reader):
    run = reader.open("/ui/runs/small")
    for square in run.having("data-leaks")[:12]:
        for link, count in zip(square.all("a"), ("done", "leaks"), strict=False):
            found = int(square[f"data-{count}"])
            page = reader.follow(link)
            matching = int(page.having("data-matching")[0]["data-matching"])
            assert matching == found if count == "leaks" and found else matching >= found


def test_filters_stand_in_the_address_and_in_the_form(reader):
    address = "/ui/runs/small/traces?condition=B4&member=invalid&d2=deny"
    page = reader.open(address)
    rows = page.having("data-seq")
    assert rows
    assert {(row["data-condition"], row["data-d2"]) for row in rows} == {("B4", "deny")}
    chosen = {
        select["name"]: option["value"]
        for select in page.all("select")
        for option in select.having("selected")
    }
    assert chosen == {"condition": "B4", "member": "invalid", "d2": "deny"}
    cell = reader.follow(rows[0].one("a"))
    following = reader.follow(cell.one("a", data_step="next"))
    assert following.one("section", data_d2="deny")
    assert all(it["data-value"] in {"true", "false"} for it in following.having("data-predicate"))


def test_all_traces_are_reached_by_key(reader):
    seen = []
    page = reader.open("/ui/runs/small/traces?after=0")
    total = int(page.having("data-total")[0]["data-total"])
    seen += [int(row["data-seq"]) for row in page.having("data-seq")]
    later = reader.open(f"/ui/runs/small/traces?after={seen[9]}")
    assert [int(row["data-seq"]) for row in later.having("data-seq")] == seen[10:]
    earlier = reader.open(f"/ui/runs/small/traces?before={seen[10]}")
    assert [int(row["data-seq"]) for row in earlier.having("data-seq")] == seen[:10]
    assert len(seen) == total == 72


def test_deployments_are_compared(reader):
    page = reader.open("/ui/runs/small")
    link = next(it for it in page.all("a") if it["href"].startswith("/ui/compare"))
    differing = reader.follow(link)
    rows = differing.having("data-differs")
    assert rows
    assert {row["data-differs"] for row in rows} == {"yes"}
    everything = reader.open("/ui/compare?left=small&right=small&left_deployment=plain")
    assert int(everything.having("data-total")[0]["data-total"]) >= len(rows)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/ui/runs/none", 404),
        ("/ui/runs/..%2f..", 404),
        ("/ui/runs/small/cells/100000", 404),
        ("/ui/runs/small/cells/x", 422),
        ("/ui/runs/small?condition=B6", 404),
        ("/ui/runs/small?conditon=B2", 422),
        ("/ui/runs/small/traces?protected=maybe", 422),
        ("/ui/runs/small/diff?bundle=PRV_L01&deployment=plain&condition=B6", 404),
        ("/ui/runs/small/diff", 404),
        ("/ui/runs/small/certificates/none", 404),
        ("/ui/runs/small/certificates/none?verify=yes", 404),
        ("/ui/compare?left=small&right=none", 404),
        ("/ui/compare?left=small&right=small&left_deployment=none", 404),
        ("/ui/runs?before=none", 404),
        ("/ui/static/none.js", 404),
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(reader, address, status):
    assert reader.open(address, status).one("div", role="alert").words


def test_nobody_else_reads_and_nobody_writes(reader):
    for method in ("POST", "PUT", "DELETE"):
        assert reader.client.request(method, "/ui/runs").status_code == 405
    for host in ("example.org", "127.0.0.1.example.org:80", ""):
        assert reader.client.get("/ui/runs", headers={"Host": host}).status_code == 403
    port = reader.client.base_url.port
    assert reader.client.get("/ui/runs", headers={"Host": f"localhost:{port}"}).status_code == 200


def test_looking_changes_nothing(tmp_path):
    folder, _ = small_matrix()
    shutil.copytree(folder, tmp_path / "run")
    before = files_below(tmp_path)
    with viewing(tmp_path / "run") as reader:
        for address in (
            "/ui/runs", "/ui/runs/run", "/ui/runs/run/traces", "/ui/runs/run/cells/1",
            "/ui/runs/run/tests", "/ui/runs/run/certificates/plain-B2?verify=yes",
        ):  # fmt: skip
            reader.open(address)
    assert files_below(tmp_path) == before


def test_hostile_answers_are_text(copied):
    with viewing(copied) as reader:
        rows = reader.open("/ui/runs/answer/traces?d1=refusal").having("data-seq")
        seq = json.loads((copied / "answer" / "traces.jsonl").read_bytes().splitlines()[3])["seq"]
        assert str(seq) in {row["data-seq"] for row in rows}
        cell = reader.open(f"/ui/runs/answer/cells/{seq}")
        raw = cell.one("pre", id="raw")
        assert raw.text == HOSTILE.replace("\u202e", "\\u202e")
        assert raw.one("span", class_="escape").text == "\\u202e"
        assert not cell.all("img")
        page = reader.open("/ui/runs/answer/certificates/plain-B2?verify=yes")
        assert page.one("div", data_verification="broken")


def test_damaged_runs_say_so_and_hide_no_other(copied):
    with viewing(copied) as reader:
        runs = reader.open("/ui/runs")
        states = {row["data-run"]: row["data-state"] for row in runs.having("data-run")}
        assert states == {
            "answer": "ended",
            "certificate": "ended",
            "plan": "damaged",
            "whole": "ended",
        }
        assert reader.open("/ui/runs/plan", 422).one("div", role="alert")
        run = reader.open("/ui/runs/certificate")
        link = next(it for it in run.all("a") if "certificates/plain-B2" in it["href"])
        assert reader.follow(link).one("div", data_fault="yes")
        assert reader.open("/ui/runs/whole").one("section", data_verdict="fail")


def test_a_run_under_way_is_followed_to_its_end(tmp_path):
    protocol = tmp_path / "long.yaml"
    protocol.write_text(
        "schema: retire.protocol/v1\nname: long\nseed: 3\nbundles: [PRV_L01]\n"
        "deployments: [plain]\nconditions: [B1, B2]\nrepetitions: 60\n"
    )
    runs = tmp_path / "runs"
    command = [SCRIPT, "matrix", "--protocol", protocol, "--bundles", PANEL, "--no-figures"]
    with (tmp_path / "log").open("w") as log:
        work = subprocess.Popen(
            [*map(str, command), "--out", str(runs / "live"), "--concurrency", "2"],
            stdout=log,
            stderr=log,
            env={"RETIRE_HOME": str(workshop() / "home"), "PATH": "/usr/bin:/bin"},
        )
    try:
        _until((runs / "live" / "plan.json").exists, work, tmp_path)
        with viewing(runs) as reader:
            _follow_to_the_end(reader, work, tmp_path)
    finally:
        work.kill()
        work.wait()


def _follow_to_the_end(reader: Reader, work: subprocess.Popen[bytes], place: Path) -> None:
    done = []

    def look() -> bool:
        live = read_page(reader.client.get("/ui/runs/live/progress").text).one("div", id="live")
        done.append((int(live["data-done"]), live["data-ended"]))
        return "hx-get" not in live.attributes

    runs = reader.open("/ui/runs")
    if runs.one("tr", data_run="live")["data-state"] == "not finished":
        assert runs.one("div", id="runs")["hx-get"]
    _until(look, work, place)
    assert done == sorted(done)
    assert any(ended == "no" for _, ended in done)
    assert done[-1] == (60 * 2 * 4 + 120, "yes")
    answer = reader.client.get("/ui/runs/live/progress")
    assert answer.headers["hx-refresh"] == "true"
    assert reader.open("/ui/runs/live").having("data-verdict")


def _until(holds: object, work: subprocess.Popen[bytes], place: Path) -> None:
    end = time.monotonic() + 120
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end, (place / "log").read_text()
        assert work.poll() in {None, 0}, (place / "log").read_text()
        time.sleep(0.05)


def test_a_folder_without_a_run_is_refused(tmp_path):
    done = retire("view", tmp_path)
    assert done.code == 2
    assert "there is no run here" in done.said
