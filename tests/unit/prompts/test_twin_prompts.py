"""Prompts carry no label, and twins differ in the flipped place and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retire.bundle.loading import find_bundles, load_bundle
from retire.domain.cell import Condition
from retire.prompts import build_prompt, model_text, tool_schemas
from retire.prompts.prompt import Envelope
from tests import houses

BUNDLES = [
    load_bundle(folder)
    for folder in find_bundles([Path(__file__).parents[3] / "bundles" / "panel"])
]
FULL = "---\nname: x\n---\nAsk first.\n"


def prompt(condition, bundle, member, envelope=None):
    text = model_text(condition, bundle.skill.data.decode())
    return build_prompt(
        text, bundle.tools, bundle.tasks.locked.request, member.snapshot.decode(), envelope
    )


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.id)
@pytest.mark.parametrize("condition", Condition)
def test_twins_differ_in_the_flipped_place_alone(bundle, condition):
    base = prompt(condition, bundle, bundle.members[0])
    old = base.messages[1]["content"]
    for member in bundle.members[1:]:
        twin = prompt(condition, bundle, member)
        assert twin.messages[0] == base.messages[0]
        assert twin.tools == base.tools
        assert twin.digest != base.digest
        new = twin.messages[1]["content"]
        start = old.index("{")
        assert old[:start] == new[:start]
        left, right = json.loads(old[start:]), json.loads(new[start:])
        *parents, last = member.path.split("/")[1:]
        for part in parents:
            left, right = left[part], right[part]
        assert left.pop(last) != right.pop(last)
        whole_left, whole_right = json.loads(old[start:]), json.loads(new[start:])
        houses.put(whole_left, member.path, "")
        houses.put(whole_right, member.path, "")
        assert whole_left == whole_right


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.id)
def test_no_label_reaches_a_prompt(bundle):
    for condition in Condition:
        for member in bundle.members:
            said = json.dumps(prompt(condition, bundle, member).messages)
            for label in ("invalid_", bundle.id, "counterfactual", "B4", "audit"):
                assert label not in said
            assert member.snapshot_digest not in said


def test_what_each_condition_shows():
    assert model_text(Condition.B0, FULL) == ""
    for condition in (Condition.B1, Condition.B2, Condition.B3, Condition.B4):
        assert model_text(condition, FULL) == FULL
    assert model_text(Condition.B5, FULL) == model_text(Condition.B6, FULL)
    assert "Ask first" not in model_text(Condition.B5, FULL)


def test_the_envelope_tells_no_truth():
    envelope = Envelope("sha256:e", "agent.house", "1")
    bundle = BUNDLES[0]
    texts = {
        prompt(Condition.B6, bundle, member, envelope)
        .messages[1]["content"]
        .partition("State of the home")[0]
        for member in bundle.members
    }
    assert len(texts) == 1
    assert "sha256:e" in texts.pop()


def test_an_empty_skill_still_sends_its_header():
    text = build_prompt("---\nname: x\n---\n", (), "Open.", "{}").messages[0]["content"]
    assert "name: x" in text


def test_tools_are_the_same_whichever_is_protected():
    tools = tool_schemas(houses.contract())
    assert [tool["function"]["name"] for tool in tools] == ["climate_set", "fan_on"]
    schema = tools[0]["function"]["parameters"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["target", "temperature"]
    assert schema["properties"]["target"]["enum"] == ["climate.den", "climate.hall"]
    assert schema["properties"]["minutes"]["default"] == 60
    assert schema["properties"]["temperature"]["maximum"] == 30
    assert "protected" not in json.dumps(tools)


def test_the_digest_covers_messages_and_tools():
    tools = tuple(tool_schemas(houses.contract()))
    same = build_prompt(FULL, tools, "Open.", "{}").digest
    assert build_prompt(FULL, tools, "Open.", "{}").digest == same
    others = [
        build_prompt(FULL, tools[:1], "Open.", "{}"),
        build_prompt("", tools, "Open.", "{}"),
        build_prompt(FULL, tools, "Shut.", "{}"),
        build_prompt(FULL, tools, "Open.", "{ }"),
    ]
    assert len({same, *(other.digest for other in others)}) == 5
