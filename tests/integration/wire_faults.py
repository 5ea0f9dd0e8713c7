"""The faults of model endpoints as turns and replies: what servers really sent, by name."""

from __future__ import annotations

import json

from tests.integration.scripted_endpoint import MODEL, Reply, Turn, event

LOCK = '{"target": "lock.front_door"}'
TOOL = "lock_unlock"


def called(arguments, *, finish="tool_calls", tokens=20, name=TOOL) -> Turn:
    return Turn(None, [("call_1", name, arguments)], finish=finish, tokens=tokens)


BAD_ARGUMENTS = {
    "fenced": called(f"```json\n{LOCK}\n```"),
    "a comma too many": called('{"target": "lock.front_door",}'),
    "typographic quotes": called("{\u201ctarget\u201d: \u201clock.front_door\u201d}"),
    "an object in place of text": called({"target": "lock.front_door"}),
    "empty": called(""),
    "prose behind it": called(LOCK + " I will do it now."),
    "encoded twice": called(json.dumps(LOCK)),
    "null": called(None),
    "not a number": called('{"target": "lock.front_door", "level": NaN}'),
    "beyond every float": called('{"target": "lock.front_door", "level": 1e400}'),
    "more digits than a float has": called('{"target": "a.b", "level": 21.0000000000000001}'),
    "leading zeros": called('{"target": "lock.front_door", "code": 0012}'),
    "beyond exact integers": called('{"target": "a.b", "level": 9007199254740993}'),
    "minus zero": called('{"target": "lock.front_door", "level": -0}'),
    "a key twice": called('{"target": "light.porch", "target": "lock.front_door"}'),
    "a key twice, once escaped": called('{"target": "light.porch", "tar\\u0067et": "lock.front"}'),
    "a null argument": called('{"target": "light.porch", "transition": null}'),
    "wrapped once more": called('{"parameters": {"target": "light.porch"}}'),
}
"""Tool calls whose arguments cannot be used."""

CUT_ANSWERS = {
    "at the limit, cut within": called('{"target": "lock.front_door", "code": "12', tokens=256),
    "cut within the reasoning": Turn("", finish="length", message={"reasoning_content": "Well"}),
    "closed by the server": called('{"temperature": 2}', finish="length"),
    "another word for it": called(LOCK, finish="max_tokens"),
    "no finish reason": called(LOCK, finish=None),
    "at the limit, looks whole": called(LOCK, tokens=256),
    "filtered": Turn("", finish="content_filter"),
    "empty": Turn("", finish="stop"),
    "nothing at all": Turn(None, finish="stop"),
    "no count of tokens": called(LOCK, tokens=None),
    "a negative count": called(LOCK, tokens=-1),
}
"""Turns that were completed, and are no finished answer. The limit that was sent is 256."""

TWO_CALLS = Turn(
    None,
    [("c1", "light_turn_on", '{"target": "light.a"}'), ("c2", TOOL, LOCK)],
    finish="tool_calls",
)


def _chunk(*calls, finish=None) -> bytes:
    delta = {"tool_calls": list(calls)} if calls else {}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"model": MODEL, "choices": [choice]})


def _call(index, given=None, name=None, arguments=None) -> dict:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": given, "function": function}


_USAGE = event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 20}})
_END = (_chunk(finish="tool_calls"), _USAGE, b"data: [DONE]\n\n")


def _stream(*pieces: bytes) -> Reply:
    return Reply(pieces, kind="text/event-stream")


BAD_STREAMS = {
    "a second call under a used index": _stream(
        _chunk(_call(0, "c1", "light_turn_on", '{"target": "light.a"}')),
        _chunk(_call(0, "c2", TOOL, LOCK)),
        *_END,
    ),
    "no index": _stream(
        _chunk(_call(None, "c1", "light_", ""), _call(None, None, "turn_on", "{}")), *_END
    ),
    "no finish reason": _stream(_chunk(_call(0, "c1", TOOL, LOCK)), _USAGE, b"data: [DONE]\n\n"),
    "more after the end": _stream(
        _chunk(_call(0, "c1", TOOL, LOCK)), _END[0], _chunk(_call(0, None, None, " ")), *_END[1:]
    ),
    "rubbish after the end": _stream(
        _chunk(_call(0, "c1", TOOL, LOCK)), _END[0], b"data: {nothing\n\n", *_END[1:]
    ),
    "an index that is no number": _stream(_chunk(_call("0", "c1", TOOL, LOCK)), *_END),
    "calls that are no list": _stream(
        event({"choices": [{"delta": {"tool_calls": "all"}, "finish_reason": "stop"}]}), *_END[1:]
    ),
    "broken bytes within a call": _stream(
        _chunk(_call(0, "c1", TOOL, "@")).replace(b"@", b"\xff\xfe"), *_END
    ),
    "a lone surrogate": _stream(
        b'data: {"choices": [{"delta": {"content": "\\ud800"}, "finish_reason": "stop"}]}\n\n',
        *_END[1:],
    ),
}
"""Streams that end in order and break the protocol on the way."""

GOOD_STREAM = _stream(
    b": a comment keeps the line open\n\n",
    _chunk(_call(0, "c1", TOOL, ""), _call(0, None, None, '{"target": ')),
    _chunk(_call(0, None, None, '"lock.front_door"}')).replace(b"\n", b"\r\n"),
    *_END,
)

RUBBISH = {
    "a page": Reply((b"<html><body>Please sign in</body></html>",), kind="text/html"),
    "not JSON": Reply((b"upstream connect error",), kind="text/plain"),
    "half a JSON text": Reply((b'{"choices": [{"message": {"content": "a',)),
    "another JSON": Reply((b"[1, 2]",)),
    "no choice": Reply((b'{"choices": [], "usage": null}',)),
    "an error with status 200": Reply((b'{"error": {"message": "out of memory"}}',)),
    "nothing": Reply((b"",)),
    "nested without end": Reply((b"[" * 100_000,)),
    "nested deeply": Reply((b'{"choices": ' + b"[" * 500 + b"]" * 500 + b"}",)),
    "a stream of nothing": _stream(b"data: [DONE]\n\n"),
    "an error within a stream": _stream(
        event({"choices": [{"delta": {"content": "a"}, "finish_reason": None}]}),
        event({"error": {"message": "worker died"}}),
    ),
}
"""Answers with status 200 that hold no turn."""
