"""``retire deployments``: what a file offers, and whether a run could use it, said in words."""

from __future__ import annotations

import pytest

from retire.deployments.checking import Manner, Outcome
from retire.deployments.checking import check as try_out
from retire.deployments.configuration import OpenAIConfiguration, load_deployments
from retire.deployments.openai_endpoint import OpenAIDeployment
from tests.integration.commands import PANEL, retire
from tests.integration.scripted_endpoint import (
    Reply,
    ScriptedEndpoint,
    Turn,
    always,
    failure,
    simulated,
)

pytestmark = pytest.mark.integration

KEY = "canary-51d07be24a683f9c"
PROTOCOL = """\
schema: retire.protocol/v1
name: small
seed: 3
bundles: [PRV_L01, ENV_L01]
deployments: [one, plain]
repetitions: 2
"""


def written(tmp_path, endpoint, extra=""):
    path = tmp_path / "deployments.yaml"
    path.write_text(
        f"""\
schema: retire.deployments/v1
deployments:
  - provider: openai
    name: one
    base_url: {endpoint.base_url}
    model: scripted-1
    retries: 0
{extra}""",
        "utf-8",
    )
    return path


def check(tmp_path, answers, *arguments, extra=""):
    with ScriptedEndpoint(answers) as endpoint:
        path = written(tmp_path, endpoint, extra)
        done = retire("deployments", "check", "--file", path, *arguments)
        return done, endpoint.requests


def test_what_works_and_what_a_run_takes_is_said_before_it_begins(tmp_path):
    protocol = tmp_path / "protocol.yaml"
    protocol.write_text(PROTOCOL, "utf-8")
    price = "    price: {input: 1, output: 2, currency: EUR}\n"
    done, requests = check(
        tmp_path,
        simulated("heedful"),
        "--protocol",
        protocol,
        "--bundles",
        PANEL,
        extra=price,
    )
    assert done.code == 0
    assert "a proposal: lamp_switch_on(target=light.desk)" in done.said
    # Two bundles, two repetitions: B0 and B1, and four conditions with four members.
    assert "one: cells: 72 calls" in done.said
    assert "reductions, at least" in done.said
    assert "the whole run, at most" in done.said
    assert "EUR" in done.said
    asked = [sorted({"response_format", "tools"} & set(request.body)) for request in requests]
    assert asked == [["response_format"]] * 4 + [["tools"], []]


def test_an_endpoint_that_no_run_can_use_ends_with_three(tmp_path, monkeypatch):
    monkeypatch.setenv("ONE_KEY", KEY)
    refusal = failure(401, f"[bold red]Incorrect key[/bold red] {KEY} [/]")
    done, _ = check(tmp_path, always(refusal), extra="    key_variable: ONE_KEY\n")
    assert done.code == 3
    assert "[bold red]Incorrect key[/bold red] [key] [/]" in done.said
    assert KEY not in done.said


def test_a_key_that_is_not_set_is_missed_before_any_call(tmp_path, monkeypatch):
    monkeypatch.delenv("ONE_KEY", raising=False)
    done, requests = check(tmp_path, simulated("plain"), extra="    key_variable: ONE_KEY\n")
    assert done.code == 2
    assert "ONE_KEY" in done.said
    assert requests == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nobody"], "nobody"), (["--protocol", "missing.yaml"], "missing.yaml")],
)
def test_bad_input_is_said_before_any_call(tmp_path, arguments, said):
    done, requests = check(tmp_path, simulated("plain"), *arguments)
    assert done.code == 2
    assert said in done.said
    assert requests == []


def test_without_a_file_there_is_nothing_to_check(monkeypatch):
    monkeypatch.delenv("RETIRE_DEPLOYMENTS", raising=False)
    done = retire("deployments", "check")
    assert done.code == 2
    assert "RETIRE_DEPLOYMENTS" in done.said


def test_the_list_names_variables_and_no_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("ONE_KEY", KEY)
    with ScriptedEndpoint(simulated("plain")) as endpoint:
        path = written(tmp_path, endpoint, "    key_variable: ONE_KEY\n")
        done = retire("deployments", "list", "--file", path)
        assert endpoint.requests == []
    assert done.code == 0
    assert "ONE_KEY is set" in done.said
    assert KEY not in done.said


def test_the_example_can_be_read():
    path = PANEL.parents[1] / "deploy" / "deployments.example.yaml"
    assert "house-server" in load_deployments(path.read_bytes(), str(path)).by_name


# -- what is found, without a command around it ------------------------------------------------


async def findings(answers, **given):
    """Try a scripted endpoint; return whether it is usable and what was said, by topic."""
    with ScriptedEndpoint(answers) as endpoint:
        configured = {
            "provider": "openai",
            "name": "one",
            "base_url": endpoint.base_url,
            "model": "scripted-1",
            "retries": 0,
            **given,
        }
        item = OpenAIConfiguration.model_validate(configured)
        other = item.model_copy(update={"output": "json"})
        manner = Manner(
            item.sampling.max_tokens, item.sampling.seed, {"json": OpenAIDeployment(other)}
        )
        found = await try_out(OpenAIDeployment(item), manner)
    return found, {item.topic: (item.outcome, item.words) for item in found.findings}


async def test_a_good_endpoint_is_said_to_be_good():
    found, said = await findings(always(Turn('{"refusal": "no"}')))
    assert found.usable
    assert found.seconds is not None
    assert said["reachable"][0] == Outcome.WORKS
    assert said["model"] == (Outcome.WORKS, "scripted-1, fingerprint fp_scripted")
    assert said["answers"] == (Outcome.WORKS, "a refusal: 'no'")
    assert said["repeats itself"][0] == Outcome.WORKS


@pytest.mark.parametrize(
    ("reply", "topic", "words"),
    [
        (failure(400, "schemas are not supported"), "reachable", "schemas are not supported"),
        (failure(503, "loading the model"), "reachable", "loading the model"),
        (Reply((b"<html>",), kind="text/html"), "reachable", "text/html"),
        (Turn('{"refusal": "no"}', tokens=None), "counts tokens", "does not say how many"),
    ],
)
async def test_what_no_run_can_use_is_said(reply, topic, words):
    found, said = await findings(always(reply))
    assert not found.usable
    assert said[topic][0] == Outcome.FAILS
    assert words in said[topic][1]


async def test_another_way_of_asking_is_found_where_one_is_refused():
    def answers(request):
        if "response_format" in request.body:
            return failure(400, "no schemas here")
        return Turn('{"refusal": "no"}')

    found, said = await findings(answers)
    assert not found.usable
    assert said["output: json"][0] == Outcome.WORKS


async def test_differences_between_equal_calls_are_said():
    def answers(request):
        return Turn(f'{{"refusal": "{request.number}"}}', model=f"scripted-{request.number}")

    found, said = await findings(answers)
    assert found.usable
    assert said["repeats itself"][0] == Outcome.FAILS
    assert said["seed"][0] == Outcome.FAILS
    assert "changed between calls" in said["model"][1]


async def test_a_seed_that_is_honoured_is_told_from_one_that_is_not():
    def answers(request):
        return Turn(f'{{"refusal": "{request.body["seed"]}"}}')

    _, said = await findings(answers)
    assert said["seed"][0] == Outcome.WORKS


async def test_a_text_in_place_of_a_tool_call_is_said():
    _, said = await findings(always(Turn('{"tool": "x", "arguments": {}}')), output="tools")
    assert said["answers"][0] == Outcome.FAILS
    assert "in place of a tool call" in said["answers"][1]
