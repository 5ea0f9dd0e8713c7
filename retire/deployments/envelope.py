"""From the bytes of a completion to a raw answer and what the server said of itself. Pure.

Streamed and unstreamed turns go through one reader, so they cannot come to differ. A turn that was
completed but breaks the protocol keeps its text and gets a finish reason that no parser accepts:
it is an invalid answer, and no other is asked for. What is no completed turn at all is
:class:`Unreadable`.

Providers reuse, omit or repeat the index of streamed tool calls; a reader that guesses glues two
calls into one. Nothing is guessed, joined or dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from retire.deployments.json_text import Unreadable, Value, clean, excerpt, read_object, written
from retire.deployments.port import Served
from sink.proposal import RawAnswer, ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

DONE = b"[DONE]"
"""The data of the event that ends a stream."""

_KEPT_CHARACTERS = 65_536
_LINE_END = re.compile(rb"\r\n|\n|\r")
T = TypeVar("T")


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


class Turn(NamedTuple):
    """A completed turn: the raw answer, and the server's own account of it."""

    answer: RawAnswer
    served: Served


# -- the shapes that are read ------------------------------------------------------------------


def _nothing(value: object) -> object:
    return None if not value and type(value) is not int else value


def _sound(value: object, read: ValidatorFunctionWrapHandler) -> object:
    try:
        return read(value)
    except ValidationError:
        return None


def _as_text(value: Value, info: ValidationInfo) -> Value:
    objects = isinstance(info.context, Reading) and info.context.object_arguments
    return written(value) if objects and isinstance(value, dict) else value


Maybe = Annotated[T | None, BeforeValidator(_nothing)]
"""A part that may be missing; servers write null, false, or an empty text, list or object."""
Sound = Annotated[T | None, WrapValidator(_sound)]
"""A part that counts as missing where it has another type."""


class _Foreign(BaseModel):
    """A part of an answer; keys that are not read are no fault."""

    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)


class _Function(_Foreign):
    name: Maybe[str] = None
    arguments: Annotated[str | None, BeforeValidator(_as_text)] = None


class _Call(_Foreign):
    index: int = Field(ge=0, lt=10**9)
    id: Maybe[str] = None
    function: Maybe[_Function] = None


class _Message(_Foreign):
    content: str | None = None
    refusal: Sound[str] = None
    tool_calls: Maybe[list[_Call]] = None


class _Choice(_Foreign):
    delta: Maybe[_Message] = None
    finish_reason: str | None = None


class _Chunk(_Foreign):
    """The model's part of one event, which must be whole."""

    choices: Maybe[Annotated[list[_Choice], Field(max_length=1)]] = None


class _Usage(_Foreign):
    prompt_tokens: Sound[Annotated[int, Field(ge=0)]] = None
    completion_tokens: Sound[Annotated[int, Field(ge=0)]] = None


class _Thoughts(_Foreign):
    reasoning_content: Sound[str] = None
    reasoning: Sound[str] = None


class _Progress(_Foreign):
    delta: Sound[_Thoughts] = None
    finish_reason: object = None


class _Report(_Foreign):
    """What one event says beside the answer; any object can be read as one."""

    model: Sound[str] = None
    system_fingerprint: Sound[str] = None
    usage: Sound[_Usage] = None
    choices: Sound[list[Sound[_Progress]]] = None

    @property
    def progress(self) -> list[_Progress]:
        """The choices that are objects."""
        return [choice for choice in self.choices or () if choice is not None]


# -- bodies, events, streams -------------------------------------------------------------------


def read_body(body: bytes, reading: Reading) -> Turn:
    """Read an unstreamed completion.

    Raises:
        Unreadable: No completed turn: not JSON, an error object, no choices.
    """
    value, fault = read_object(body)
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Unreadable(_said_instead(value))
    deltas: list[Value] = [
        {**choice, "delta": _numbered(choice.get("message"))}
        if isinstance(choice, dict)
        else choice
        for choice in choices
    ]
    return _turn([{**value, "choices": deltas}], reading, fault)


def _numbered(message: Value) -> Value:
    """Give the calls of a message the indexes that a stream would have given them."""
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(calls, list):
        return message
    numbered: list[Value] = [
        {**call, "index": place} if isinstance(call, dict) else call
        for place, call in enumerate(calls)
    ]
    return {**message, "tool_calls": numbered}


class EventReader:
    """Cuts the bytes of a stream into the data of its events, in whatever pieces they come.

    (WHATWG HTML, section 9.2.6: lines end with CR LF, LF or CR; ``data`` lines of one event are
    joined by a line feed; an empty line ends an event; a line that begins with a colon is a
    comment.)
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Take the next bytes; return the data of every event that they completed."""
        text = self._rest + piece
        # A CR at the end may be half of a CR LF.
        held = text[-1:] if text.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(text[: len(text) - len(held)])
        self._rest = rest + held
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: bytes) -> bytes | None:
        if not line:
            event, self._data = b"\n".join(self._data), []
            return event or None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return None


@dataclass(slots=True)
class StreamedTurn:
    """Collects the events of one stream."""

    reading: Reading
    chunks: list[Mapping[str, Value]] = field(default_factory=list)
    fault: str = ""
    done: bool = False
    finished: bool = False

    def take(self, event: bytes) -> None:
        """Take the data of one event.

        Raises:
            Unreadable: It is no event of a completion, and the turn was not finished before it.
        """
        self.done = self.done or event == DONE
        if self.done:
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
        self.finished = self.finished or any(
            choice.finish_reason is not None for choice in _Report.model_validate(chunk).progress
        )

    def turn(self) -> Turn:
        """Return what came.

        Raises:
            Unreadable: The stream ended before the turn did, or held no choice.
        """
        if not self.done and not self.finished:
            raise Unreadable("the stream was cut before the answer ended")
        if all(_nothing(chunk.get("choices")) is None for chunk in self.chunks):
            raise Unreadable("the stream ended without an answer")
        return _turn(self.chunks, self.reading, self.fault)


def _event(data: bytes) -> tuple[dict[str, Value], str]:
    chunk, fault = read_object(data)
    if chunk.get("error") is not None:
        raise Unreadable(_said_instead(chunk))
    return chunk, fault


def _said_instead(value: Mapping[str, Value]) -> str:
    error = value.get("error")
    if isinstance(error, dict):
        error = error.get("message") or error
    if _nothing(error) is not None:
        return f"the server sent an error in place of an answer: {excerpt(str(error))}"
    return f"the answer holds no choice: {excerpt(written(dict(value)))!r}"


# -- the turn ----------------------------------------------------------------------------------


class _Broken(Exception):
    """A completed turn breaks the protocol; the message says how."""


def _turn(chunks: Sequence[Mapping[str, Value]], reading: Reading, fault: str) -> Turn:
    served = _served([_Report.model_validate(chunk) for chunk in chunks])
    try:
        answer = _answer(chunks, reading, fault)
    except _Broken as broken:
        # The choices of a refused turn are kept as JSON text, for people who look into it.
        kept = written([chunk.get("choices") for chunk in chunks])[:_KEPT_CHARACTERS]
        why = clean(f"stream_fault: {broken}")
        answer = RawAnswer(mode=reading.mode, text=kept, finish_reason=why)
    counts = {"completion_tokens": served.completion_tokens, "max_tokens": reading.max_tokens}
    return Turn(answer.model_copy(update=counts), served)


def _served(reports: Sequence[_Report]) -> Served:
    counts: dict[str, int] = {}
    for usage in (report.usage for report in reports if report.usage):
        counts |= usage.model_dump(exclude_none=True)
    thoughts = [choice.delta for report in reports for choice in report.progress if choice.delta]
    return Served(
        model=_first(report.model for report in reports),
        fingerprint=_first(report.system_fingerprint for report in reports),
        prompt_tokens=counts.get("prompt_tokens"),
        completion_tokens=counts.get("completion_tokens"),
        # Servers that give both give the same text twice.
        reasoning=clean("".join(it.reasoning_content or it.reasoning or "" for it in thoughts)),
    )


def _first(texts: Iterable[str | None]) -> str:
    return next((excerpt(text) for text in texts if text), "")


def _answer(chunks: Sequence[Mapping[str, Value]], reading: Reading, fault: str) -> RawAnswer:
    if fault:
        raise _Broken(fault)
    try:
        events = [_Chunk.model_validate(chunk, context=reading) for chunk in chunks]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _Broken(f"{place}: {first['msg'].partition(' or instance')[0]}") from error
    texts: list[str] = []
    calls: dict[int, _OpenCall] = {}
    finish_reason = None
    for choice in (choice for event in events for choice in event.choices or ()):
        if finish_reason is not None:
            raise _Broken("a fragment after the end")
        delta, finish_reason = choice.delta or _Message(), choice.finish_reason
        # A model's own refusal stands beside the content; it is what the model said.
        text = delta.refusal if delta.content is None else delta.content
        texts.extend(() if text is None else (text,))
        for fragment in delta.tool_calls or ():
            _take_call(calls, fragment)
    tool_calls = (call.whole(reading.names) for _, call in sorted(calls.items()))
    return RawAnswer(
        mode=reading.mode,
        text=_joined(texts),
        tool_calls=tuple(tool_calls),
        finish_reason=finish_reason,
    )


@dataclass(slots=True)
class _OpenCall:
    id: str
    name: str
    arguments: list[str] = field(default_factory=list)

    def whole(self, names: Mapping[str, str]) -> ToolCall:
        if self.name not in names and self.name in names.values():
            raise _Broken(f"the call names {self.name!r}, which was not sent under that name")
        name = names.get(self.name, self.name)
        return ToolCall(id=self.id, name=name, arguments=_joined(self.arguments))


def _take_call(calls: dict[int, _OpenCall], fragment: _Call) -> None:
    function, index = fragment.function or _Function(), fragment.index
    call = calls.get(index)
    if call is None:
        if fragment.id is None or function.name is None:
            raise _Broken(f"call {index} begins without an id or a name")
        call = calls[index] = _OpenCall(fragment.id, function.name)
    elif fragment.id not in {None, call.id}:
        raise _Broken(f"call {index} goes on under another id")
    elif function.name not in {None, call.name}:
        raise _Broken(f"call {index} has a second name")
    if function.arguments is not None:
        call.arguments.append(function.arguments)


def _joined(parts: list[str]) -> str | None:
    """Return the whole text; none where no part came, as a null of an unstreamed answer."""
    return "".join(parts) if parts else None
