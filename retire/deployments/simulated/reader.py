"""The simulated deployment: messages, tools and seed in, one raw answer out.

Order of acting: syntax draw, tool and target, heeded rules, notice, soften or refuse, unguided
refusals, proposal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from retire.deployments.simulated.calls import (
    TARGET,
    Tool,
    Value,
    bound_of,
    broken,
    choices,
    choose_target,
    choose_tool,
    default_of,
    is_number,
    proposal,
    read_tools,
    refusal,
    requested,
    speaks_of,
    stated,
    unit_of,
)
from retire.deployments.simulated.expectations import NEGATIVE_ANSWERS, POSITIVE_STATUS, grant_holds
from retire.deployments.simulated.profiles import happens, per_thousand
from retire.deployments.simulated.reading import RuleReading, is_boundary_statement, read_rules
from retire.deployments.simulated.snapshots import Prompt, mapping_of, read_prompt, text_of, time_of
from retire.deployments.simulated.wording import normalise, split_text, word_set

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.deployments.simulated.profiles import Profile
    from retire.domain.digests import Json

_SENSITIVE: Final = re.compile(
    r"\b(?:listen\w*|stream\w*|shar(?:e|es|ed|ing)|export\w*|record(?:s|ed|ing|ings)?|cameras?"
    r"|microphones?|audio|videos?|clips?|footage|personal|presence|private|privacy|eavesdrop\w*"
    r"|location|histor(?:y|ies)|surveil\w*|snapshots?|images?|photos?|pictures?)\b"
)
_NEGATIVE_STATUS: Final = word_set(
    "revoked expired withdrawn suspended denied declined rejected cancelled canceled "
    "terminated inactive invalid lapsed refused void blocked disabled"
)
_MILDER_BY: Final = 2


@dataclass(frozen=True, slots=True)
class _Situation:
    """All that one answer rests on."""

    prompt: Prompt
    tool: Tool
    target: str
    asked: Mapping[str, Value]
    readings: tuple[RuleReading, ...]
    seed: int
    profile: Profile

    def draw(self, salt: str, chance: int) -> bool:
        """Draw one choice."""
        return happens(self.seed, salt, chance)


def propose(
    messages: Sequence[Mapping[str, str]], tools: Sequence[Json], seed: int, profile: Profile
) -> str:
    """Return the raw answer of a simulated deployment, normally one JSON object.

    Args:
        messages: Chat messages with ``role`` and ``content``; the snapshot stands in one of them.
        tools: Offered functions in the OpenAI format.
        seed: Seed of the call; equal seeds give equal draws.
        profile: How it acts on what it reads.

    It sees what any model sees and nothing else. Nothing raises, whatever the messages hold.
    """
    answer = _answer(read_prompt(messages), tools, seed, profile)
    if happens(seed, "break_syntax", profile.break_syntax):
        return broken(answer, per_thousand(seed, "break_kind"))
    return answer


def _answer(prompt: Prompt, tools: Sequence[Json], seed: int, profile: Profile) -> str:
    tool = choose_tool(prompt.request, read_tools(tools))
    if tool is None:
        return refusal("no offered tool fits the request")
    target = choose_target(prompt.request, tool)
    if target is None and TARGET in tool.required:
        return refusal("the request does not say which device is meant")
    asked = requested(prompt.request, tool, target or "")
    readings = read_rules(prompt.guidance, prompt.snapshot)
    situation = _Situation(prompt, tool, target or "", asked, readings, seed, profile)
    reason = _reason_to_stop(situation)
    if reason:
        softened = _softened(situation)
        return softened or refusal(reason)
    reason = _unguided_refusal(situation)
    return refusal(reason) if reason else proposal(tool.name, _arguments(situation, asked))


def _reason_to_stop(situation: _Situation) -> str:
    profile = situation.profile
    for reading in situation.readings:
        salt = f"heed/{reading.kind}/{reading.ordinal}"
        if not reading.satisfied and situation.draw(salt, profile.heed):
            return f"a rule is not met: {reading.text}"
    for section, ordinal in _plainly_negative(situation):
        if situation.draw(f"notice/{section}/{ordinal}", profile.notice):
            return f"the {section} of the snapshot speak against it"
    return ""


def _plainly_negative(situation: _Situation) -> list[tuple[str, int]]:
    """Return the negative grants and votes on which no written rule speaks, by ordinal."""
    snapshot = situation.prompt.snapshot
    ruled = {(reading.section, reading.entry) for reading in situation.readings}
    as_of = time_of(snapshot.get("as_of"))
    found: list[tuple[str, int]] = []
    for key, value in mapping_of(snapshot.get("grants")).items():
        grant = mapping_of(value)
        other = text_of(grant.get("target")) not in {"", situation.target}
        status = text_of(grant.get("status")).lower()
        lapsed = status in POSITIVE_STATUS and not grant_holds(grant, as_of)
        if not other and ("grants", key) not in ruled and (status in _NEGATIVE_STATUS or lapsed):
            found.append(("grants", len(found)))
    votes = 0
    for key, value in mapping_of(snapshot.get("consents")).items():
        for vote in mapping_of(mapping_of(value).get("votes")).values():
            answer = text_of(mapping_of(vote).get("answer")).lower().strip()
            if answer in NEGATIVE_ANSWERS and ("consents", key) not in ruled:
                found.append(("consents", votes))
                votes += 1
    return found


def _softened(situation: _Situation) -> str:
    """Return a proposal with a milder number than asked for, or nothing."""
    if not situation.draw("soften", situation.profile.soften):
        return ""
    for name, value in situation.asked.items():
        schema = situation.tool.properties.get(name, {})
        if not isinstance(value, Fraction) or not is_number(schema) or not unit_of(name, schema):
            # A number without a unit is a name (a compartment, a clip), and has no milder value.
            continue
        low = bound_of(schema, "minimum")
        milder = value - _MILDER_BY if low is None else max(low, value - _MILDER_BY)
        if milder < value:
            changed = {**situation.asked, name: milder}
            return proposal(situation.tool.name, _arguments(situation, changed))
    return ""


def _unguided_refusal(situation: _Situation) -> str:
    profile, tool = situation.profile, situation.tool
    satisfied = any(reading.satisfied for reading in situation.readings)
    spoken = f"{tool.name.replace('_', ' ')} {tool.description} {situation.prompt.request}".lower()
    if _SENSITIVE.search(spoken) and not satisfied:
        bounded = _states_boundary(situation.prompt.guidance)
        name = "refuse_bounded" if bounded else "refuse_unguided"
        if situation.draw(name, profile.refuse_bounded if bounded else profile.refuse_unguided):
            return "it touches privacy and nothing here says that it is allowed"
    if (
        not satisfied
        and _hot_without_guidance(situation)
        and situation.draw("refuse_hot", profile.refuse_hot)
    ):
        return "the value asked for is high and nothing here says that it is safe"
    return ""


@lru_cache(maxsize=512)
def _states_boundary(guidance: str) -> bool:
    return any(is_boundary_statement(sentence.text) for sentence in split_text(guidance))


def _hot_without_guidance(situation: _Situation) -> bool:
    for name, value in situation.asked.items():
        schema = situation.tool.properties.get(name, {})
        low, high = bound_of(schema, "minimum"), bound_of(schema, "maximum")
        if not isinstance(value, Fraction) or low is None or high is None:
            continue
        if value >= low + (high - low) * 3 / 4:
            sentences = [normalise(s.text) for s in split_text(situation.prompt.guidance)]
            return not any(_guides(sentence, name, schema, value) for sentence in sentences)
    return False


def _guides(sentence: str, name: str, schema: Mapping[str, Json], value: Fraction) -> bool:
    number = re.escape(str(value.numerator)) if value.denominator == 1 else str(float(value))
    named = re.search(rf"(?<![\w.]){number}(?![\w]|\.\d)", sentence) is not None
    return named or speaks_of(sentence, name, schema) >= 0


def _arguments(situation: _Situation, asked: Mapping[str, Value]) -> dict[str, Value]:
    tool, profile = situation.tool, situation.profile
    arguments: dict[str, Value] = {TARGET: situation.target} if situation.target else {}
    optional = required = 0
    for name, schema in tool.properties.items():
        if name == TARGET:
            continue
        value = asked.get(name)
        if value is None:
            value = stated(situation.prompt.guidance, name, schema)
        if name in tool.required:
            if value is None and situation.draw(f"fill_required/{required}", profile.fill_required):
                value = _first_choice(schema)
            required += 1
        else:
            if value is None and situation.draw(f"add_optional/{optional}", profile.add_optional):
                value = default_of(schema)
            optional += 1
        if value is not None:
            arguments[name] = value
    return arguments


def _first_choice(schema: Mapping[str, Json]) -> Value | None:
    default = default_of(schema)
    if default is not None:
        return default
    offered = choices(schema)
    return offered[0] if offered else bound_of(schema, "minimum")
