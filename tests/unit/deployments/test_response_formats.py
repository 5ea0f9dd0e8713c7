"""What is sent to ask for one answer: a schema of all answers, or tools under sendable names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retire.bundle import find_bundles, load_bundle
from retire.deployments.configuration import load_deployments
from retire.deployments.requesting import answer_schema, name_table, request_body, sent_tools
from retire.domain.errors import InputError

PANEL = Path(__file__).parents[3] / "bundles" / "panel"
BUNDLES = [load_bundle(folder) for folder in find_bundles([PANEL])]
ALLOWED = {"anyOf", "type", "properties", "required", "additionalProperties", "enum"}


def tool(name, properties=None):
    parameters = {
        "type": "object",
        "properties": properties or {"target": {"type": "string", "enum": ["a.b"]}},
        "required": ["target"],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def configured(extra=""):
    text = f"""
schema: retire.deployments/v1
deployments:
  - provider: openai
    name: one
    base_url: http://127.0.0.1:1/v1
    model: m
{extra}"""
    return load_deployments(text.encode(), "deployments.yaml").deployments[0]


def words(schema):
    """Every schema keyword that is used; names of properties are none."""
    if "anyOf" in schema:
        return {"anyOf"}.union(*(words(item) for item in schema["anyOf"]))
    found = set(schema)
    return found.union(*(words(item) for item in schema.get("properties", {}).values()))


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.id)
def test_every_offered_tool_and_a_refusal_are_the_only_answers(bundle):
    schema = answer_schema(bundle.tools)
    *calls, refusal = schema["anyOf"]
    assert [call["properties"]["tool"]["enum"][0] for call in calls] == [
        tool["function"]["name"] for tool in bundle.tools
    ]
    for call, offered in zip(calls, bundle.tools, strict=True):
        asked = offered["function"]["parameters"]
        arguments = call["properties"]["arguments"]
        assert list(arguments["properties"]) == list(asked["properties"])
        assert arguments["required"] == asked["required"]
        target = arguments["properties"]["target"]
        assert target["enum"] == asked["properties"]["target"]["enum"]
    assert refusal["required"] == ["refusal"]


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.id)
def test_the_schema_uses_only_what_small_servers_read(bundle):
    schema = answer_schema(bundle.tools)
    assert words(schema) <= ALLOWED
    assert all(item["additionalProperties"] is False for item in schema["anyOf"])


def test_a_constant_becomes_the_only_choice():
    schema = answer_schema([tool("x", {"target": {"type": "string", "const": "a.b"}})])
    call = schema["anyOf"][0]
    assert call["properties"]["arguments"]["properties"]["target"] == {
        "type": "string",
        "enum": ["a.b"],
    }


def test_names_are_sent_with_nothing_but_what_endpoints_take():
    assert name_table([tool("lock.unlock"), tool("door-open")]) == {
        "lock_unlock": "lock.unlock",
        "door-open": "door-open",
    }
    sent = sent_tools([tool("lock.unlock")])
    assert sent[0]["function"]["name"] == "lock_unlock"


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([tool("a.b_c"), tool("a_b.c")], "a_b_c"),
        ([tool("same"), tool("same")], "same"),
        ([tool("x" * 65)], "64"),
        ([tool("")], "64"),
    ],
)
def test_names_that_cannot_be_told_apart_stop_the_start(tools, said):
    with pytest.raises(InputError, match=said):
        name_table(tools)


@pytest.mark.parametrize("output", ["json_schema", "tools", "json"])
def test_a_body_asks_in_exactly_one_way(output):
    body = request_body(configured(f"    output: {output}\n"), [], [tool("x.y")], 7)
    asked = {"response_format", "tools"} & set(body)
    assert asked == {"json_schema": {"response_format"}, "tools": {"tools"}, "json": set()}[output]
    json.dumps(body, allow_nan=False)


def test_numbers_are_sent_as_they_were_declared():
    item = configured(
        "    sampling: {temperature: 0.70, top_p: 1.0}\n"
        "    extra_body: {min_p: 0.05, k: [1, 2.50]}\n"
    )
    body = request_body(item, [], [], 7)
    assert json.dumps([body["temperature"], body["top_p"], body["min_p"], body["k"]]) == (
        "[0.7, 1, 0.05, [1, 2.5]]"
    )


def test_what_is_empty_is_not_sent():
    body = request_body(configured("    sampling: {temperature: , seed: false}\n"), [], [], 7)
    assert {"temperature", "top_p", "seed", "stream"} & set(body) == set()
    assert body["max_tokens"] == 512


def test_a_stream_is_asked_for_its_counts():
    body = request_body(configured("    stream: true\n"), [], [], 7)
    assert body["stream_options"] == {"include_usage": True}
