"""From the bytes of a completion to a raw answer and what the server said of itself. Pure.

Streamed and unstreamed turns go through one reader, so they cannot come to differ. A turn that was
completed but breaks the protocol keeps its text and gets a finish reason that no parser accepts:
it is an invalid answer, and nobody asks again. What is no completed turn at all is
:class:`Unreadable`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from retire.deployments.json_text import (
    Number,
    Unreadable,
    clean,
    excerpt,
    read_object,
    written,
)
from retire.deployments.streaming import assemble
from sink.proposal import RawAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DONE = b"[DONE]"
"""The data of the event that ends a stream."""

_KEPT_CHARACTERS = 65_536


class _Broken(ValueError):
    """A completed turn breaks the protocol."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a deployment's turns are read.

    Attributes:
        mode: How it was asked, ``json`` or ``tools``.
        max_tokens: The limit that was sent.
        object_arguments: Whether arguments may come as an object in place of JSON text.
        names: The offered name behind each tool name that was sent.
    """

    mode: Literal["json", "tools"]
    max_tokens: int | None
    object_arguments: bool = False
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turn:
    """A completed turn: the raw answer, and the server's own account of it."""

    answer: RawAnswer
    model: str = ""
    fingerprint: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning: str = ""


def read_body(body: bytes, reading: Reading) -> Turn:
    """Read an unstreamed completion.

    Raises:
        Unreadable: No completed turn: not JSON, an error object, no choices.
    """
    value, fault = read_object(body)
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Unreadable(_said_instead(value))
    deltas = [
        {**choice, "delta": _numbered(choice.get("message"))}
        if isinstance(choice, dict)
        else choice
        for choice in choices
    ]
    return _turn([{**value, "choices": deltas}], reading, fault)


def _numbered(message: object) -> object:
    """Give the calls of a message the indexes that a stream would have given them."""
    if not isinstance(message, dict) or not isinstance(message.get("tool_calls"), list):
        return message
    calls = [
        {**call, "index": Number(str(place))} if isinstance(call, dict) else call
        for place, call in enumerate(message["tool_calls"])
    ]
    return {**message, "tool_calls": calls}


@dataclass(slots=True)
class StreamedTurn:
    """Collects the events of one stream."""

    reading: Reading
    chunks: list[Mapping[str, Any]] = field(default_factory=list)
    fault: str = ""
    done: bool = False
    finished: bool = False

    def take(self, event: bytes) -> None:
        """Take the data of one event.

        Raises:
            Unreadable: It is no event of a completion, and the turn was not finished before it.
        """
        if self.done:
            return
        if event == DONE:
            self.done = True
            return
        try:
            chunk, fault = _event(event)
        except Unreadable as error:
            if not self.finished:
                raise
            self.fault = self.fault or f"after the end: {error}"
            return
        self.fault = self.fault or fault
        self.chunks.append(chunk)
        self.finished = self.finished or _finishes(chunk)

    def turn(self) -> Turn:
        """Return what came.

        Raises:
            Unreadable: The stream ended before the turn did, or held no choice.
        """
        if not self.done and not self.finished:
            raise Unreadable("the stream was cut before the answer ended")
        if not any(chunk.get("choices") for chunk in self.chunks):
            raise Unreadable("the stream ended without an answer")
        return _turn(self.chunks, self.reading, self.fault)


def _event(data: bytes) -> tuple[dict[str, Any], str]:
    chunk, fault = read_object(data)
    if chunk.get("error") is not None:
        raise Unreadable(_said_instead(chunk))
    return chunk, fault


def _finishes(chunk: Mapping[str, Any]) -> bool:
    return any(choice.get("finish_reason") is not None for choice in _choices(chunk))


def _choices(chunk: Mapping[str, Any]) -> list[dict[str, Any]]:
    choices = chunk.get("choices")
    listed = choices if isinstance(choices, list) else []
    return [choice for choice in listed if isinstance(choice, dict)]


def _turn(chunks: Sequence[Mapping[str, Any]], reading: Reading, fault: str) -> Turn:
    counts = _usage(chunks)
    answer = _answer(chunks, reading, fault, counts.get("completion_tokens"))
    return Turn(
        answer=answer,
        model=_first_text(chunks, "model"),
        fingerprint=_first_text(chunks, "system_fingerprint"),
        prompt_tokens=counts.get("prompt_tokens"),
        completion_tokens=counts.get("completion_tokens"),
        reasoning=clean("".join(_reasoning(chunks))),
    )


def _answer(
    chunks: Sequence[Mapping[str, Any]], reading: Reading, fault: str, tokens: int | None
) -> RawAnswer:
    if fault:
        return _broken(fault, chunks, reading)
    try:
        plain = [_plain_chunk(chunk, reading, tokens) for chunk in chunks]
        # A lone surrogate is no text: neither the store nor a digest could take it.
        json.dumps(plain, ensure_ascii=False, default=repr).encode("utf-8")
        answer = assemble(plain, reading.mode, reading.max_tokens)
        answer = _with_offered_names(answer, reading)
    except UnicodeEncodeError:
        return _broken("not Unicode text", chunks, reading)
    except _Broken as error:
        return _broken(str(error), chunks, reading)
    if (answer.finish_reason or "").startswith("stream_fault"):
        return answer.model_copy(update={"text": _kept(chunks), "completion_tokens": tokens})
    return answer


def _broken(why: str, chunks: Sequence[Mapping[str, Any]], reading: Reading) -> RawAnswer:
    return RawAnswer(
        mode=reading.mode,
        text=_kept(chunks),
        finish_reason=clean(f"stream_fault: {why}"),
        max_tokens=reading.max_tokens,
    )


def _kept(chunks: Sequence[Mapping[str, Any]]) -> str:
    """Return the choices of a refused turn as JSON text, for people who look into it."""
    return written([chunk.get("choices") for chunk in chunks])[:_KEPT_CHARACTERS]


def _plain_chunk(
    chunk: Mapping[str, Any], reading: Reading, tokens: int | None
) -> Mapping[str, Any]:
    choices = chunk.get("choices") or []
    if not isinstance(choices, list):
        raise _Broken("choices are no list")
    plain = {**chunk, "choices": [_plain_choice(choice, reading) for choice in choices]}
    return {**plain, "usage": {"completion_tokens": tokens} if tokens is not None else None}


def _plain_choice(choice: object, reading: Reading) -> Mapping[str, Any]:
    if not isinstance(choice, dict):
        raise _Broken("a choice is no object")
    delta = choice.get("delta") or {}
    if not isinstance(delta, dict):
        raise _Broken("a message is no object")
    if delta.get("content") is None and isinstance(delta.get("refusal"), str):
        # A model's own refusal stands beside the content; it is what the model said.
        delta = {**delta, "content": delta["refusal"]}
    calls = delta.get("tool_calls") or []
    if not isinstance(calls, list):
        raise _Broken("tool_calls are no list")
    return {**choice, "delta": {**delta, "tool_calls": [_plain_call(c, reading) for c in calls]}}


def _plain_call(call: object, reading: Reading) -> Mapping[str, Any]:
    if not isinstance(call, dict):
        raise _Broken("a tool call is no object")
    function = call.get("function") or {}
    if not isinstance(function, dict):
        raise _Broken("a function is no object")
    arguments, index = function.get("arguments"), call.get("index")
    if isinstance(arguments, dict) and reading.object_arguments:
        function = {**function, "arguments": written(arguments)}
    if isinstance(index, Number) and index.written.isdecimal() and len(index.written) <= 9:
        call = {**call, "index": int(index.written)}
    return {**call, "function": function}


def _with_offered_names(answer: RawAnswer, reading: Reading) -> RawAnswer:
    if all(sent == name for sent, name in reading.names.items()):
        return answer
    offered = set(reading.names.values())
    calls = []
    for call in answer.tool_calls:
        if call.name not in reading.names and call.name in offered:
            raise _Broken(f"the call names {call.name!r}, which was not sent under that name")
        calls.append(call.model_copy(update={"name": reading.names.get(call.name, call.name)}))
    return answer.model_copy(update={"tool_calls": tuple(calls)})


# -- what the server says of itself ------------------------------------------------------------


def _usage(chunks: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the last counts given; one that is no whole number from zero is not given."""
    counts: dict[str, int] = {}
    for chunk in chunks:
        usage = chunk.get("usage")
        if not isinstance(usage, dict):
            continue
        for name in ("prompt_tokens", "completion_tokens"):
            count = usage.get(name)
            if isinstance(count, Number) and count.written.isdecimal() and len(count.written) < 16:
                counts[name] = int(count.written)
    return counts


def _first_text(chunks: Sequence[Mapping[str, Any]], name: str) -> str:
    texts = (chunk.get(name) for chunk in chunks)
    return next((excerpt(text) for text in texts if text and isinstance(text, str)), "")


def _reasoning(chunks: Sequence[Mapping[str, Any]]) -> list[str]:
    parts = []
    for choice in (choice for chunk in chunks for choice in _choices(chunk)):
        delta = choice.get("delta")
        if isinstance(delta, dict):
            # Servers that give both give the same text twice.
            text = delta.get("reasoning_content") or delta.get("reasoning")
            if isinstance(text, str):
                parts.append(text)
    return parts


def _said_instead(value: Mapping[str, Any]) -> str:
    error = value.get("error")
    if isinstance(error, dict):
        error = error.get("message") or error
    if error:
        return f"the server sent an error in place of an answer: {excerpt(str(error))}"
    return f"the answer holds no choice: {excerpt(written(value))!r}"
