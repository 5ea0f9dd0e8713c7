"""Whole runs against an endpoint on the wire: recorded, repeated, disturbed, resumed."""

from __future__ import annotations

import base64
import gzip
import json
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.commands import PANEL, Done, files_below, retire, workshop
from tests.integration.scripted_endpoint import (
    Reply,
    Request,
    ScriptedEndpoint,
    Turn,
    cut_stream,
    failure,
    simulated,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.integration

KEY = "canary-9b1f7c3e5d"
NAME = "scripted"
BUNDLES = ("PRV_L01", "ENV_L01")
CELLS = 2 * (2 + 2 * 4)
"""Two bundles, one repetition: B0 and B1 once, then B1 and B4 over four members."""
PROTOCOL = f"""\
schema: retire.protocol/v1
name: live
seed: 3
bundles: [{", ".join(BUNDLES)}]
deployments: [{NAME}]
conditions: [B1, B4]
repetitions: 1
"""
CONFIGURATION = """\
schema: retire.deployments/v1
deployments:
  - provider: openai
    name: scripted
    base_url: "{url}"
    model: scripted-1
    output: json_schema
    stream: {stream}
    retries: {retries}
    concurrency: 8
    key_variable: SCRIPTED_KEY
    timeouts:
      answer: 2
"""


def matrix(
    endpoint: ScriptedEndpoint, out: Path, *more: str, retries: int = 4, stream: str = "false"
) -> Done:
    out.mkdir(parents=True, exist_ok=True)
    protocol, file = out.with_suffix(".protocol.yaml"), out.with_suffix(".deployments.yaml")
    protocol.write_text(PROTOCOL)
    file.write_text(CONFIGURATION.format(url=endpoint.base_url, retries=retries, stream=stream))
    options = ("--bundles", PANEL, "--deployments", file, "--no-figures", "--out", out)
    return retire("matrix", "--protocol", protocol, *options, *more)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)


def statement(out: Path) -> Any:
    envelope = json.loads((out / "certificates" / f"{NAME}-B4.json").read_bytes())
    return json.loads(base64.b64decode(envelope["payload"]))["predicate"]


def judged(out: Path) -> tuple[Any, ...]:
    """What must not depend on how often the endpoint failed, nor on who answered."""
    said = statement(out)
    return (said["outcome_root"], said["verdict"], said["gates"], said["support_gap"])


@cache
def undisturbed() -> tuple[Path, Done]:
    out = workshop() / "live"
    with ScriptedEndpoint(simulated("heedful")) as endpoint:
        return out, matrix(endpoint, out)


def test_a_live_run_is_live_evidence_and_verifies() -> None:
    out, done = undisturbed()
    assert done.code == 0, done.said
    assert statement(out)["evidence"] == "live_model"
    verified = retire("verify", out)
    assert "intact" in verified.said
    assert "BROKEN" not in verified.said


def test_its_recording_repeats_it_without_the_endpoint() -> None:
    out, _ = undisturbed()
    again = workshop() / "repeated"
    protocol = out.with_suffix(".protocol.yaml")
    options = ("--bundles", PANEL, "--replay", out / "cassette.jsonl.gz", "--no-figures")
    done = retire("matrix", "--protocol", protocol, *options, "--out", again)
    assert done.code == 0, done.said
    assert judged(again) == judged(out)
    assert statement(again)["evidence"] == "replayed"
    assert "not permission to ship" in statement(again)["first_lines"][0]
    assert "BROKEN" not in retire("verify", again).said


def test_what_a_recording_does_not_hold_is_missing_evidence() -> None:
    out, _ = undisturbed()
    recording = f"replay:{out / 'cassette.jsonl.gz'}"
    done = retire(
        *("certify", PANEL / "PRV_L01", "--candidate", PANEL / "PRV_L01", "--placement", "B4"),
        *("--deployment", recording, "--seed", "3", "--repetitions", "1"),
        *("--out", workshop() / "one"),
    )
    # B4 of an undeleted skill is a text that the recorded run never asked about.
    assert done.code == 3
    assert "cassette.jsonl.gz holds no answer" in done.said


@pytest.mark.parametrize("stream", ["false", "true"])
def test_an_endpoint_that_fails_one_call_in_ten_gives_the_same_certificate(stream: str) -> None:
    answers = simulated("heedful")
    faults: list[Callable[[Request], Turn | Reply]] = [
        lambda _: failure(429, "slow down", ("Retry-After", "0")),
        lambda _: failure(500),
        lambda request: cut_stream(answers(request), 3),
        lambda _: Reply((30.0,)),
    ]

    def sometimes(request: Request) -> Turn | Reply:
        if request.number % 10:
            return answers(request)
        return faults[request.number // 10 % len(faults)](request)

    out = workshop() / f"disturbed-{stream}"
    with ScriptedEndpoint(sometimes) as endpoint:
        done = matrix(endpoint, out, stream=stream)
    assert done.code == 0, done.said
    assert judged(out) == judged(undisturbed()[0])


def test_an_endpoint_that_dies_leaves_an_incomplete_run_that_goes_on() -> None:
    alive = threading.Event()
    alive.set()
    answers = simulated("heedful")
    completed: list[Request] = []
    traced = workshop() / "dying" / "run.sqlite"

    def mortal(request: Request) -> Turn | Reply:
        if not alive.is_set():
            return failure(500)
        completed.append(request)
        return answers(request)

    out = traced.parent
    with ScriptedEndpoint(mortal) as endpoint:
        assert matrix(endpoint, out, "--resume").code == 2
        whole = len(json.loads(_answers(undisturbed()[0])))
        stop = whole - CELLS // 2

        def until_half(request: Request) -> Turn | Reply:
            if len(completed) >= stop:
                alive.clear()
            return mortal(request)

        endpoint._answers = until_half  # the script changes its mind
        done = matrix(endpoint, out, retries=0)
        assert done.code == 3, done.said
        assert f"audit/{NAME}/" in done.said
        assert "gave no completed answer" in done.said
        assert statement(out)["verdict"] == "incomplete"
        before = len(completed)
        alive.set()
        endpoint._answers = mortal
        assert matrix(endpoint, out, "--resume", retries=0).code == 0
    assert len(completed) == whole, "a completed answer was asked for again"
    assert before < whole
    assert judged(out) == judged(undisturbed()[0])


def _answers(out: Path) -> str:
    lines = gzip.decompress((out / "cassette.jsonl.gz").read_bytes()).splitlines()[1:]
    return "[" + ",".join(line.decode() for line in lines) + "]"


def test_a_budget_is_kept_over_all_passes_and_a_larger_one_goes_on() -> None:
    out = workshop() / "frugal"
    whole = len(json.loads(_answers(undisturbed()[0])))
    with ScriptedEndpoint(simulated("heedful")) as endpoint:
        done = matrix(endpoint, out, "--budget", f"{whole - 5} calls")
        assert done.code == 3
        assert f"the budget of {whole - 5} calls is reached" in done.said
        assert len(endpoint.requests) == whole - 5
        assert matrix(endpoint, out, "--budget", f"{whole - 5} calls").code == 3
        assert len(endpoint.requests) == whole - 5
        assert matrix(endpoint, out, "--budget", f"{whole} calls").code == 0
        assert len(endpoint.requests) == whole
        assert matrix(endpoint, out, "--budget", "5 EUR").code == 2
    assert judged(out) == judged(undisturbed()[0])


def test_another_model_in_mid_run_makes_the_run_incomplete() -> None:
    answers = simulated("heedful")

    def renamed(request: Request) -> Turn:
        turn = answers(request)
        assert isinstance(turn, Turn)
        changed = request.number > 20
        return Turn(turn.content, model="scripted-2" if changed else turn.model)

    out = workshop() / "renamed"
    with ScriptedEndpoint(renamed) as endpoint:
        done = matrix(endpoint, out)
        assert done.code == 3
        assert "scripted-2" in done.said
        assert "scripted-1" in done.said
        # It stays so: the first model is what this run judges.
        assert matrix(endpoint, out).code == 3
    assert not (out / "seal.json").exists()


def test_the_key_stands_in_no_file_of_a_run() -> None:
    out, done = undisturbed()
    assert KEY not in done.out + done.err
    held = [name for name, data in files_below(out) if KEY.encode() in data]
    assert not held
