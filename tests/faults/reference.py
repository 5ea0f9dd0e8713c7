"""A second, naive answer to "may this message act?", from the message to the last predicate.

It shares no code with the sink. It may be stricter than the sink on inputs that nobody sends; what
counts is that the sink never acts where this says no.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from tests import naive

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_KEYS = {
    "mode",
    "text",
    "tool_calls",
    "finish_reason",
    "completion_tokens",
    "max_tokens",
}
LONGEST = 65_536


@dataclass(frozen=True)
class Truth:
    """What the world holds for an attempt, as plain values."""

    snapshot: bytes
    episode: str
    contract: str


def sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def wanted_action(raw: object) -> str:
    """The text of one proposal that a stored answer holds.

    Raises:
        NotUsableError: It holds none.
    """
    if not isinstance(raw, str):
        raise naive.NotUsableError("no text")
    answer = strict_json(raw)
    if not isinstance(answer, dict) or not set(answer) <= ANSWER_KEYS:
        raise naive.NotUsableError("no answer")
    counts = [answer.get("completion_tokens"), answer.get("max_tokens")]
    if any(count is not None and not whole(count) for count in counts):
        raise naive.NotUsableError("no counts")
    if None not in counts and counts[0] >= counts[1]:
        raise naive.NotUsableError("cut off")
    calls = answer.get("tool_calls", [])
    if not isinstance(calls, list):
        raise naive.NotUsableError("no list of calls")
    if answer.get("mode") == "json" and answer.get("finish_reason") == "stop" and not calls:
        return short_text(answer.get("text"))
    if answer.get("mode") == "tools" and answer.get("finish_reason") == "tool_calls":
        if not isinstance(answer.get("text"), str | None):
            raise naive.NotUsableError("no text")
        return from_call(calls)
    raise naive.NotUsableError("unfinished")


def from_call(calls: list[Any]) -> str:
    if len(calls) != 1 or not isinstance(calls[0], dict):
        raise naive.NotUsableError("not one call")
    call = calls[0]
    named = isinstance(call.get("name"), str) and isinstance(call.get("id", ""), str)
    if not named or not set(call) <= {"id", "name", "arguments"}:
        raise naive.NotUsableError("no call")
    arguments = short_text(call.get("arguments"))
    strict_json(arguments)
    return f'{{"tool":{json.dumps(call["name"])},"arguments":{arguments}}}'


def whole(value: object) -> bool:
    return not isinstance(value, bool | str | list | dict) and value.denominator == 1  # type: ignore[union-attr,attr-defined]


def short_text(value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST:
        raise naive.NotUsableError("no text, or a long one")
    return value


def strict_json(text: str) -> Any:
    try:
        text.encode()
        value = json.loads(
            text,
            object_pairs_hook=naive.once,
            parse_int=naive.token_number,
            parse_float=naive.token_number,
            parse_constant=naive.refused,
        )
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except (ValueError, RecursionError) as error:
        raise naive.NotUsableError("not JSON") from error
    return value


def plain_json(data: bytes) -> Any:
    """JSON of a file of ours: each key once."""
    return json.loads(data, object_pairs_hook=naive.once)


def read_contract(data: bytes) -> dict[str, Any]:
    """A contract file as plain values, with what may be left out filled in."""
    contract: dict[str, Any] = yaml.safe_load(data)
    action = contract["action"]
    return {**contract, "action": {"canonical": {}, "parameters": {}, **action}}


def may_act(
    contracts: Mapping[str, Mapping[str, Any]],
    binding: str,
    message: Mapping[str, Any],
    truth: Truth | None,
) -> bool:
    """Whether an act may follow from a message, apart from its having been sent before."""
    return verdict(contracts, binding, message, truth)[0] == "allow"


def verdict(
    contracts: Mapping[str, Mapping[str, Any]],
    binding: str,
    message: Mapping[str, Any],
    truth: Truth | None,
) -> tuple[str, str]:
    """Return ("allow", basis) or ("deny", reason)."""
    if truth is None:
        return ("deny", "episode_mismatch")
    named = (message.get("contract"), message.get("episode"), message.get("snapshot"))
    if named[0] not in contracts or named[0] != truth.contract:
        return ("deny", "snapshot_mismatch")
    if named[1] != truth.episode:
        return ("deny", "episode_mismatch")
    if named[2] != sha256(truth.snapshot):
        return ("deny", "snapshot_mismatch")
    try:
        text = wanted_action(message.get("answer"))
    except naive.NotUsableError:
        return ("deny", "malformed_proposal")
    try:
        snapshot = plain_json(truth.snapshot)
        return naive.decide(contracts[truth.contract], snapshot, text, binding)
    except (naive.NotUsableError, ValueError, KeyError, TypeError, AttributeError):
        return ("deny", "unreadable")
