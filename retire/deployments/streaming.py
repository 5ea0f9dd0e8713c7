"""From the fragments of a streamed answer to the same raw answer that an unstreamed call gives.

Pure. Providers reuse, omit or repeat the index of streamed tool calls; a reader that guesses glues
two calls into one. Whatever does not follow the protocol makes the whole turn unusable: its finish
reason then says so, and the strict parser refuses it. Nothing is guessed, joined or dropped.
(OpenAI's streaming format: ``choices[0].delta`` with ``content`` and ``tool_calls`` by ``index``.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sink.proposal import RawAnswer, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class StreamFaultError(ValueError):
    """A fragment breaks the protocol; the message says how."""


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Turn:
    text: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    finish_reason: str | None = None
    completion_tokens: int | None = None


def assemble(
    chunks: Iterable[Mapping[str, Any]], mode: str, max_tokens: int | None = None
) -> RawAnswer:
    """Return the raw answer of one streamed turn.

    Args:
        chunks: Decoded stream events, in the order of arrival.
        mode: How the deployment was asked, ``json`` or ``tools``.
        max_tokens: The limit that was sent with the request.

    A turn that breaks the protocol has the finish reason ``stream_fault: ...``, which no parser
    accepts; a stream that ended early has none.
    """
    turn = _Turn()
    try:
        for chunk in chunks:
            _take(turn, chunk)
    except StreamFaultError as error:
        return RawAnswer.model_validate(
            {"mode": mode, "finish_reason": f"stream_fault: {error}", "max_tokens": max_tokens}
        )
    return RawAnswer.model_validate(
        {
            "mode": mode,
            "text": _joined(turn.text),
            "tool_calls": tuple(
                ToolCall(id=call.id, name=call.name, arguments=_joined(call.arguments))
                for _, call in sorted(turn.calls.items())
            ),
            "finish_reason": turn.finish_reason,
            "completion_tokens": turn.completion_tokens,
            "max_tokens": max_tokens,
        }
    )


def _take(turn: _Turn, chunk: Mapping[str, Any]) -> None:
    usage = chunk.get("usage")
    if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
        turn.completion_tokens = usage["completion_tokens"]
    choices = chunk.get("choices") or []
    if len(choices) > 1:
        raise StreamFaultError("more than one choice")
    for choice in choices:
        if turn.finish_reason is not None:
            raise StreamFaultError("a fragment after the end")
        delta = choice.get("delta") or {}
        content = delta.get("content")
        if content is not None:
            turn.text.append(_text(content, "content"))
        for fragment in delta.get("tool_calls") or []:
            _take_call(turn, fragment)
        if choice.get("finish_reason") is not None:
            turn.finish_reason = _text(choice["finish_reason"], "finish_reason")


def _take_call(turn: _Turn, fragment: Mapping[str, Any]) -> None:
    index = fragment.get("index")
    if type(index) is not int or index < 0:
        raise StreamFaultError(f"a call has the index {index!r}")
    function = fragment.get("function") or {}
    given, name = fragment.get("id"), function.get("name")
    call = turn.calls.get(index)
    if call is None:
        if not given or not name:
            raise StreamFaultError(f"call {index} begins without an id or a name")
        call = turn.calls[index] = _Call(_text(given, "id"), _text(name, "name"))
    elif given and given != call.id:
        raise StreamFaultError(f"call {index} goes on under another id")
    elif name and name != call.name:
        raise StreamFaultError(f"call {index} has a second name")
    arguments = function.get("arguments")
    if arguments is not None:
        call.arguments.append(_text(arguments, "arguments"))


def _joined(parts: list[str]) -> str | None:
    """Return the whole text; none where no part came, as a null of an unstreamed answer."""
    return "".join(parts) if parts else None


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise StreamFaultError(f"{name} is {type(value).__name__}, not text")
    return value
