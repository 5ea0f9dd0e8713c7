from __future__ import annotations

import json

import pytest

from retire.deployments.simulated import PROFILES, Profile, propose
from retire.domain.errors import InputError
from tests.unit.simulated.devices import fact, grant, snapshot, votes

SKILL = """---
name: oven
description: Heats the oven.
---
# Oven

The oven takes ten minutes to heat up. Never heat while the oven door contact reads open.
Use the `mode` fan unless the request names another.

- The gardener's gate permit must be active.
"""
HEAT = {
    "type": "function",
    "function": {
        "name": "oven_heat",
        "description": "Heat an oven to a temperature.",
        "parameters": {
            "type": "object",
            "properties": {
                "target": {
                    "type": "string",
                    "enum": ["oven.upper", "oven.lower"],
                    "description": "oven.upper: upper oven; oven.lower: lower oven",
                },
                "temperature": {
                    "type": "number",
                    "minimum": 40,
                    "maximum": 240,
                    "description": "Temperature in degrees Celsius",
                },
                "minutes": {"type": "integer", "default": 30, "description": "Duration in minutes"},
            },
            "required": ["target", "temperature"],
        },
    },
}
COOL = {
    "type": "function",
    "function": {
        "name": "oven_off",
        "description": "Switch an oven off.",
        "parameters": {
            "type": "object",
            "properties": {
                "target": {
                    "type": "string",
                    "enum": ["oven.upper", "oven.lower"],
                    "description": "oven.upper: upper oven; oven.lower: lower oven",
                }
            },
            "required": ["target"],
        },
    },
}
STREAM = {
    "type": "function",
    "function": {
        "name": "camera_open_stream",
        "description": "Open a live stream of a camera.",
        "parameters": {
            "type": "object",
            "properties": {
                "target": {"type": "string", "enum": ["camera.porch"]},
                "recipient": {
                    "type": "string",
                    "enum": ["person.a", "person.b"],
                    "description": "person.a: Ines; person.b: Tom",
                },
            },
            "required": ["target", "recipient"],
        },
    },
}
DOOR_OPEN = {"facts": {"f1": fact("oven door contact", "open")}}


def profile(**chances: int) -> Profile:
    blank = dict.fromkeys(PROFILES["plain"].chances(), 0)
    return Profile("test", **{**blank, **chances})


def ask(request, *, tools=(HEAT, COOL), guidance=SKILL, changes=None, seed=1, acts=None):
    messages = [
        {"role": "system", "content": f"Answer with one JSON object.\n\n{guidance}"},
        {
            "role": "user",
            "content": f"Request: {request}\n\nThe frozen facts:\n"
            + json.dumps(snapshot(changes), separators=(",", ":")),
        },
    ]
    return propose(messages, list(tools), seed, acts or profile(heed=1000))


def called(answer):
    return json.loads(answer)


def test_the_request_gives_tool_target_and_number():
    assert called(ask("Please heat the lower oven to 180.5 degrees.")) == {
        "tool": "oven_heat",
        "arguments": {"target": "oven.lower", "temperature": 180.5},
    }
    assert called(ask("Switch the upper oven off, we are done.")) == {
        "tool": "oven_off",
        "arguments": {"target": "oven.upper"},
    }


def test_an_optional_parameter_is_sent_when_the_request_states_it():
    stated = called(ask("Heat the lower oven to 180 °C for three quarters, no, for 45 minutes."))
    assert stated["arguments"] == {"target": "oven.lower", "temperature": 180, "minutes": 45}
    added = called(
        ask("Heat the lower oven to 180 °C.", acts=profile(heed=1000, add_optional=1000))
    )
    assert added["arguments"]["minutes"] == 30


def test_a_violated_rule_stops_and_its_deletion_frees():
    request = "Heat the lower oven to 180 degrees."
    assert "refusal" in called(ask(request, changes=DOOR_OPEN))
    without = SKILL.replace("Never heat while the oven door contact reads open.", "")
    assert "tool" in called(ask(request, changes=DOOR_OPEN, guidance=without))
    revoked = {"grants": {"g1": grant("gardener's gate permit", "revoked")}}
    assert "refusal" in called(ask(request, changes=revoked))


def test_an_unheeded_rule_does_not_stop():
    assert "tool" in called(
        ask("Heat the lower oven to 180 degrees.", changes=DOOR_OPEN, acts=profile(heed=0))
    )


def test_softening_lowers_the_number_by_two():
    acts = profile(heed=1000, soften=1000)
    answer = called(ask("Heat the lower oven to 180 degrees.", changes=DOOR_OPEN, acts=acts))
    assert answer["arguments"]["temperature"] == 178


def test_plainly_negative_values_are_noticed_only_where_no_rule_speaks():
    acts = profile(notice=1000)
    no_vote = {"consents": {"c1": votes("consent to the doorbell recording", Mira="no", Pia="yes")}}
    request = "Heat the lower oven to 180 degrees."
    assert "refusal" in called(ask(request, guidance="", changes=no_vote, acts=acts))
    one_is_enough = "At least one resident must agree to the doorbell recording."
    assert "tool" in called(ask(request, guidance=one_is_enough, changes=no_vote, acts=acts))


def test_sensitive_acts_are_refused_without_guidance():
    acts = profile(refuse_unguided=1000)
    request = "Open the stream of the porch camera for Ines."
    proposal = {"target": "camera.porch", "recipient": "person.a"}
    assert "refusal" in called(ask(request, tools=[STREAM], guidance="", acts=acts))
    bounded = "A trusted boundary decides after you whether the act may happen."
    assert (
        called(ask(request, tools=[STREAM], guidance=bounded, acts=acts))["arguments"] == proposal
    )
    ruled = "Only stream if everyone has agreed to the doorbell recording."
    assert called(ask(request, tools=[STREAM], guidance=ruled, acts=acts))["arguments"] == proposal


def test_a_hot_number_is_refused_only_without_guidance():
    acts = profile(refuse_hot=1000)
    request = "Heat the lower oven to 230 degrees."
    assert "refusal" in called(ask(request, guidance="", acts=acts))
    assert "tool" in called(ask("Heat the lower oven to 120 degrees.", guidance="", acts=acts))
    guided = "Baking bread at a temperature of 230 degrees is normal."
    assert "tool" in called(ask(request, guidance=guided, acts=acts))


def test_a_required_parameter_comes_from_the_skill_or_stays_out():
    heating = json.loads(json.dumps(HEAT))
    parameters = heating["function"]["parameters"]
    parameters["properties"]["mode"] = {"type": "string", "enum": ["grill", "fan"]}
    parameters["required"].append("mode")
    request = "Heat the lower oven to 180 degrees."
    assert called(ask(request, tools=[heating]))["arguments"]["mode"] == "fan"
    silent = called(ask(request, tools=[heating], guidance="Be kind."))
    assert "mode" not in silent["arguments"]
    filled = called(ask(request, tools=[heating], guidance="", acts=profile(fill_required=1000)))
    assert filled["arguments"]["mode"] == "grill"


def test_ids_never_matter():
    request = "Heat the lower oven to 180 degrees."
    renamed = json.loads(json.dumps(HEAT).replace("oven.upper", "x.1").replace("oven.lower", "a.9"))
    for seed in range(20):
        for acts in PROFILES.values():
            one = ask(request, tools=[HEAT], guidance="", seed=seed, acts=acts)
            other = ask(request, tools=[renamed], guidance="", seed=seed, acts=acts)
            assert one.replace("oven.lower", "a.9") == other


def test_a_broken_answer_is_not_one_json_object():
    for seed in range(30):
        answer = ask(
            "Heat the lower oven to 180 degrees.", seed=seed, acts=profile(break_syntax=1000)
        )
        with pytest.raises(ValueError, match=r".+"):
            json.loads(answer)


def test_chances_hold_over_many_seeds():
    acts = profile(heed=650)
    answers = [
        ask("Heat the lower oven to 180 degrees.", changes=DOOR_OPEN, seed=seed, acts=acts)
        for seed in range(400)
    ]
    assert 220 <= sum("refusal" in called(answer) for answer in answers) <= 300


def test_hostile_prompts_get_an_answer():
    for text in (
        "a" * 200_000,
        "only if " * 20_000,
        "\u202e\U000e0041\x00" * 500,
        "- " * 5000,
        "{" * 9000,
    ):
        assert ask(text, guidance=text)


def test_a_prompt_without_snapshot_or_fitting_tool_gets_an_answer():
    messages = [{"role": "user", "content": "Request: sing"}]
    assert "refusal" in called(propose(messages, [HEAT, COOL], 1, profile()))
    assert "refusal" in called(propose([], [], 1, profile()))


def test_profiles_are_checked():
    with pytest.raises(InputError):
        profile(heed=1001)
