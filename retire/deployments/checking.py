"""Trying a deployment before a run: a few small calls, and in words what came of them.

The calls go through the very path of a run, with a prompt of the same build about a lamp that
does not exist. What cannot be told from a few calls is said to be so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from retire.deployments.port import Call, Completion, DeploymentFault
from retire.prompts import Prompt, build_prompt
from sink.proposal import Invalid, Proposal, RawAnswer, parse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.deployments.port import Deployment
    from retire.prompts import ToolSchema
    from retire.prompts.tools import FunctionSchema, Schema

_SNAPSHOT = '{"devices":{"light.desk":{"state":"off"},"light.shelf":{"state":"off"}}}'
_REQUEST = "Please switch the desk lamp on."


class Outcome(StrEnum):
    """What was found: it works, it does not, or a few calls cannot tell."""

    WORKS = "works"
    FAILS = "fails"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was tried."""

    topic: str
    outcome: Outcome
    words: str


@dataclass(frozen=True, slots=True)
class Checked:
    """All that was found of a deployment.

    Attributes:
        findings: In the order of trying.
        usable: Whether a run could get evidence from it.
        seconds: The time of a call; None where none was answered.
    """

    findings: tuple[Finding, ...]
    usable: bool
    seconds: float | None


def probe() -> Prompt:
    """Return a small prompt, built as those of a run are."""
    tools = [_switch("lamp_switch_off"), _switch("lamp_switch_on")]
    return build_prompt("", tools, _REQUEST, _SNAPSHOT)


def _switch(name: str) -> ToolSchema:
    target: Schema = {"type": "string", "enum": ["light.desk", "light.shelf"]}
    parameters: Schema = {
        "type": "object",
        "properties": {"target": target},
        "required": ["target"],
        "additionalProperties": False,
    }
    described = f"{name.replace('_', ' ').capitalize()}."
    function: FunctionSchema = {"name": name, "description": described, "parameters": parameters}
    return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Manner:
    """How a deployment is tried.

    Attributes:
        limit: The configured ``max_tokens``.
        seeded: Whether the configuration sends a seed.
        variants: The same deployment asked in another way, by its name; each is tried once.
        long: A prompt as a run will send it, to measure the time of a call.
    """

    limit: int
    seeded: bool
    variants: Mapping[str, Deployment] = field(default_factory=dict)
    long: Prompt | None = None


async def check(deployment: Deployment, manner: Manner) -> Checked:
    """Try a deployment; it and its variants are opened and closed here."""
    variants, limit, seeded = manner.variants, manner.limit, manner.seeded
    prompts = [(probe(), seed) for seed in ((1, 1, 2) if seeded else (1, 1))]
    if manner.long is not None:
        prompts.append((manner.long, 1))
    try:
        answers = await _answers(deployment, prompts)
    except DeploymentFault as fault:
        # Another way of asking may work where the configured one is refused.
        others = [await _variant(name, variant) for name, variant in variants.items()]
        findings = (Finding("reachable", Outcome.FAILS, str(fault)), *others)
        return Checked(findings, usable=False, seconds=None)
    first = answers[0]
    counted = _counted(first, limit)
    found = [
        _reached(first),
        _reported(answers),
        _usable("answers", first.answer),
        counted,
        _repeats(answers),
        _seed(answers, seeded=seeded),
    ]
    for name, variant in variants.items():
        found.append(await _variant(name, variant))
    # The first call also makes the connection, and small prompts are soon read.
    last = answers[-1].served
    seconds = None if last is None else last.milliseconds / 1000
    return Checked(tuple(found), counted.outcome is not Outcome.FAILS, seconds)


async def _answers(
    deployment: Deployment, prompts: Sequence[tuple[Prompt, int]]
) -> list[Completion]:
    await deployment.open()
    try:
        return [
            await deployment.propose(prompt.messages, prompt.tools, _call(number, seed))
            for number, (prompt, seed) in enumerate(prompts, start=1)
        ]
    finally:
        await deployment.close()


def _call(number: int, seed: int) -> Call:
    return Call(seed=seed, sample="check", repetition=number, place=f"check/{number}")


def _reached(first: Completion) -> Finding:
    served = first.served
    if served is None:
        return Finding("reachable", Outcome.WORKS, "answers on this machine, without a server")
    tries = f" after {served.tries} tries" if served.tries > 1 else ""
    return Finding("reachable", Outcome.WORKS, f"answered in {served.milliseconds} ms{tries}")


def _reported(answers: Sequence[Completion]) -> Finding:
    said = {(item.served.model, item.served.fingerprint) for item in answers if item.served}
    if len(said) > 1:
        models = ", ".join(sorted(" ".join(pair) for pair in said))
        words = f"changed between calls: {models}; a certificate speaks of one model"
        return Finding("model", Outcome.FAILS, words)
    model, fingerprint = next(iter(said), ("", ""))
    if not model:
        return Finding("model", Outcome.OPEN, "the server does not say which model it used")
    mark = f", fingerprint {fingerprint}" if fingerprint else ", no fingerprint"
    return Finding("model", Outcome.WORKS, f"{model}{mark}")


def _usable(topic: str, answer: RawAnswer) -> Finding:
    match parse(answer):
        case Invalid(rule, detail):
            why = f"{rule}: {detail}" if detail else rule
            words = f"the answer is invalid ({why}); a run would count it so"
            return Finding(topic, Outcome.FAILS, words)
        case Proposal(tool, arguments):
            given = ", ".join(f"{key}={value}" for key, value in arguments.items())
            return Finding(topic, Outcome.WORKS, f"a proposal: {tool}({given})")
        case refusal:
            text = " ".join(refusal.reason.split())[:80]
            if answer.mode == "tools" and text.startswith("{"):
                words = f"text in place of a tool call, which counts as a refusal: {text!r}"
                return Finding(topic, Outcome.FAILS, words)
            return Finding(topic, Outcome.WORKS, f"a refusal: {text!r}")


def _counted(first: Completion, limit: int) -> Finding:
    if first.served is None:
        return Finding("counts tokens", Outcome.OPEN, "there is no server that could")
    written = first.answer.completion_tokens
    if written is None:
        words = (
            f"the server does not say how many tokens it wrote, so an answer cut at {limit} "
            "cannot be told from a whole one, and every answer is invalid"
        )
        return Finding("counts tokens", Outcome.FAILS, words)
    read = first.served.prompt_tokens
    known = "prompt not counted" if read is None else f"{read} read"
    return Finding("counts tokens", Outcome.WORKS, f"{known}, {written} written, at most {limit}")


def _repeats(answers: Sequence[Completion]) -> Finding:
    if _same(answers[0].answer, answers[1].answer):
        return Finding("repeats itself", Outcome.WORKS, "two equal calls gave equal answers")
    words = "two equal calls gave different answers: repetitions will differ by chance alone"
    return Finding("repeats itself", Outcome.FAILS, words)


def _seed(answers: Sequence[Completion], *, seeded: bool) -> Finding:
    if not seeded:
        return Finding("seed", Outcome.OPEN, "not sent")
    if _same(answers[0].answer, answers[2].answer):
        words = "accepted; another seed gave the same answer, as it does at temperature 0"
        return Finding("seed", Outcome.OPEN, words)
    if not _same(answers[0].answer, answers[1].answer):
        return Finding("seed", Outcome.FAILS, "accepted, but equal seeds differ too")
    return Finding("seed", Outcome.WORKS, "accepted; another seed gave another answer")


def _same(one: RawAnswer, other: RawAnswer) -> bool:
    """Compare what was answered; the ids of calls are drawn anew each time."""

    def said(answer: RawAnswer) -> object:
        calls = [(call.name, call.arguments) for call in answer.tool_calls]
        return answer.text, calls, answer.finish_reason

    return said(one) == said(other)


async def _variant(name: str, deployment: Deployment) -> Finding:
    topic = f"output: {name}"
    try:
        [answer] = await _answers(deployment, [(probe(), 1)])
    except DeploymentFault as fault:
        return Finding(topic, Outcome.FAILS, str(fault))
    return _usable(topic, answer.answer)
