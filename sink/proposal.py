"""The strict parser: a model's raw answer in, one proposal, one refusal or one named fault out.

Nothing is repaired, unwrapped, trimmed to fit, or guessed. Numbers become exact decimals; equal
keys are found after unescaping and at every depth (RFC 8259, section 4, leaves their meaning
open, and parsers disagree). The parser never raises on any answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from sink.contract.values import Scalar  # noqa: TC001  # an alias used at run time
from sink.strict_yaml import StrictModel

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CHARACTERS = 65_536
"""Longest text or argument string read; no household action needs more."""
MAX_DIGITS = 15
"""Most significant digits of a number: every such decimal survives a binary float and back."""
MAX_EXACT_INTEGER = 2**53 - 1
"""Largest integer that every JSON reader keeps exact (RFC 7493, section 2.2)."""


class ToolCall(StrictModel):
    """One tool call as the server returned it; ``arguments`` is the server's own text."""

    id: str = ""
    name: str
    arguments: str | None


class RawAnswer(StrictModel):
    """A completed turn of a deployment, before any reading.

    ``mode`` is how the deployment was asked: ``json`` for one JSON object as text, ``tools`` for
    the tool-call interface. It says how to read the answer and nothing else.
    """

    mode: Literal["json", "tools"]
    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    completion_tokens: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposed action: the tool's name and its flat arguments, as sent."""

    tool: str
    arguments: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The model declined, in its words."""

    reason: str


@dataclass(frozen=True, slots=True)
class Invalid:
    """The answer cannot be used; ``rule`` names the rule that failed."""

    rule: str
    detail: str


Parsed: TypeAlias = Proposal | Refusal | Invalid


class _Fault(Exception):
    """Carries the failed rule out of the JSON reader's hooks."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.detail = detail


def parse(answer: RawAnswer) -> Parsed:
    """Read one completed turn."""
    try:
        _check_finished(answer)
        return _parse_tools(answer) if answer.mode == "tools" else _parse_text(answer)
    except _Fault as fault:
        return Invalid(fault.rule, fault.detail)


def read_answer(data: bytes) -> RawAnswer | Invalid:
    """Read the stored or transmitted JSON form of a :class:`RawAnswer`."""
    try:
        value = _read_json(data.decode("utf-8"), limit=8 * MAX_CHARACTERS)
        calls = value.get("tool_calls", []) if isinstance(value, dict) else []
        if isinstance(value, dict) and isinstance(calls, list):
            value = {**value, "tool_calls": tuple(calls)}
        return RawAnswer.model_validate(value)
    except UnicodeDecodeError as error:
        return Invalid("not_unicode", f"byte {error.start}")
    except _Fault as fault:
        return Invalid(fault.rule, fault.detail)
    except ValueError as error:
        return Invalid("wrong_type", str(error).splitlines()[0])


def _check_finished(answer: RawAnswer) -> None:
    """Only an exact allowed reason, with tokens to spare, is a finished turn."""
    allowed = {"stop"} if answer.mode == "json" else {"stop", "tool_calls"}
    if answer.finish_reason not in allowed:
        raise _Fault("cut_off", f"finish reason {answer.finish_reason!r}")
    if answer.max_tokens is None:
        return
    # A limit without a count proves nothing: a cut answer may still parse.
    if answer.completion_tokens is None or answer.completion_tokens >= answer.max_tokens:
        raise _Fault("cut_off", "no count of tokens below the limit")


def _parse_text(answer: RawAnswer) -> Parsed:
    if answer.tool_calls:
        raise _Fault("unexpected_tool_call", "a text answer was asked for")
    value = _read_json(answer.text or "")
    if not isinstance(value, dict):
        raise _Fault("not_an_object", type(value).__name__)
    if set(value) == {"refusal"}:
        if not isinstance(value["refusal"], str):
            raise _Fault("wrong_type", "refusal is not text")
        return Refusal(value["refusal"])
    if set(value) != {"tool", "arguments"}:
        raise _Fault("wrong_keys", ", ".join(sorted(value))[:200])
    if not isinstance(value["tool"], str):
        raise _Fault("wrong_type", "tool is not text")
    return Proposal(value["tool"], _arguments(value["arguments"]))


def _parse_tools(answer: RawAnswer) -> Parsed:
    if len(answer.tool_calls) > 1:
        raise _Fault("two_calls", f"{len(answer.tool_calls)} calls in one turn")
    if not answer.tool_calls:
        if answer.finish_reason == "stop" and (answer.text or "").strip():
            return Refusal(answer.text or "")
        raise _Fault("no_answer", "neither a tool call nor a text")
    if answer.finish_reason != "tool_calls":
        raise _Fault("cut_off", "a call without the finish reason tool_calls")
    call = answer.tool_calls[0]
    if call.arguments is None:
        raise _Fault("wrong_type", "arguments are not text")
    return Proposal(call.name, _arguments(_read_json(call.arguments)))


def _arguments(value: object) -> dict[str, Scalar]:
    if not isinstance(value, dict):
        raise _Fault("not_an_object", f"arguments are {type(value).__name__}")
    for key, item in value.items():
        if item is None:
            raise _Fault("null_argument", key[:200])
        if isinstance(item, dict | list):
            raise _Fault("nested_argument", key[:200])
    return value


def _read_json(text: str, *, limit: int = MAX_CHARACTERS) -> Any:  # noqa: ANN401  # JSON
    if len(text) > limit:
        raise _Fault("too_large", f"{len(text)} characters")
    try:
        text.encode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_int=_integer,
            parse_float=_decimal,
            parse_constant=_constant,
        )
        # An escaped lone surrogate passes the reader but is no Unicode text.
        json.dumps(value, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError as error:
        raise _Fault("not_unicode", f"character {error.start}") from error
    except json.JSONDecodeError as error:
        raise _Fault("not_json", f"{error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise _Fault("nested_too_deeply", "") from error
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Fault("duplicate_key", "")
    return result


def _integer(text: str) -> int:
    if text == "-0":
        raise _Fault("negative_zero", text)
    if len(text) > 17 or abs(int(text)) > MAX_EXACT_INTEGER:
        raise _Fault("number_not_exact", text[:40])
    return int(text)


def _decimal(text: str) -> Decimal:
    if len(text) > 40:
        raise _Fault("number_not_exact", text[:40])
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise _Fault("number_out_of_range", text) from error
    if number.is_zero() and number.is_signed():
        raise _Fault("negative_zero", text)
    if len(number.as_tuple().digits) > MAX_DIGITS:
        raise _Fault("number_not_exact", text)
    # Zero too: written out in full, 0e-999999999 would have a thousand million digits.
    if abs(number.adjusted()) > MAX_DIGITS:
        raise _Fault("number_out_of_range", text)
    return number


def _constant(text: str) -> NoReturn:
    raise _Fault("not_finite", text)
