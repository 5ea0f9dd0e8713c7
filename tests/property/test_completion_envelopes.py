"""Bytes of completions: however they are cut, and whatever they are, one reading or none."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retire.deployments.envelope import EventReader, Reading, StreamedTurn, read_body
from retire.deployments.json_text import Unreadable
from sink.proposal import RawAnswer, parse

pytestmark = pytest.mark.property

TEXTS = st.text(max_size=12)
SCALARS = st.none() | st.booleans() | st.integers() | TEXTS
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["content", "tool_calls", "function", "name", "arguments", "id", "index", "refusal"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["a", "b", "", None]),
            "function": st.fixed_dictionaries(
                {"name": st.sampled_from(["x", "y", ""]), "arguments": SCALARS | st.just('{"a":1}')}
            ),
        }
    ),
    max_size=3,
)
MESSAGES = st.fixed_dictionaries(
    {"content": SCALARS | ANYTHING, "tool_calls": CALLS | ANYTHING},
    optional={"refusal": SCALARS, "reasoning": SCALARS},
)
FINISHES = st.sampled_from(["stop", "tool_calls", "length", "content_filter", ""]) | ANYTHING
COUNTS = st.none() | st.integers(-1, 60) | ANYTHING
READINGS = st.builds(
    Reading,
    mode=st.sampled_from(["json", "tools"]),
    max_tokens=st.sampled_from([None, 50]),
    object_arguments=st.booleans(),
    names=st.sampled_from([{}, {"x": "x"}, {"x": "x.y", "y": "z"}]),
)


def frame(field, value, finish, count):
    choice = {"index": 0, field: value, "finish_reason": finish}
    usage = {"prompt_tokens": 5, "completion_tokens": count}
    return json.dumps({"choices": [choice], "usage": usage, "model": "m"})


def numbered(message):
    """What a stream sends of a message in one piece."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    listed = [
        {**call, "index": place} if isinstance(call, dict) else call
        for place, call in enumerate(calls)
    ]
    return {**message, "tool_calls": listed}


def streamed(data, reading):
    turn = StreamedTurn(reading)
    for event in EventReader().feed(data):
        turn.take(event)
    return turn.turn()


def outcome(read, *arguments):
    try:
        return read(*arguments)
    except Unreadable:
        return None


@settings(max_examples=300, deadline=None)
@given(message=MESSAGES, finish=FINISHES, count=COUNTS, reading=READINGS)
def test_one_piece_streamed_or_not_is_read_alike(message, finish, count, reading):
    whole = outcome(read_body, frame("message", message, finish, count).encode(), reading)
    event = frame("delta", numbered(message), finish, count)
    flow = outcome(streamed, f"data: {event}\n\ndata: [DONE]\n\n".encode(), reading)
    assert (whole is None) == (flow is None)
    if whole is not None and flow is not None:
        assert parse(whole.answer) == parse(flow.answer)
        assert whole.served.reasoning == flow.served.reasoning


@settings(max_examples=300, deadline=None)
@given(value=ANYTHING, reading=READINGS, field=st.sampled_from(["message", "delta", "choices"]))
def test_any_json_is_a_turn_or_unreadable(value, reading, field):
    body = json.dumps({field: value} if field == "choices" else {"choices": [{field: value}]})
    for read in (read_body, lambda data, how: streamed(b"data: " + data + b"\n\n", how)):
        turn = outcome(read, body.encode(), reading)
        assert turn is None or isinstance(turn.answer, RawAnswer)


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200), reading=READINGS)
def test_any_bytes_are_a_turn_or_unreadable(data, reading):
    for read in (read_body, streamed):
        turn = outcome(read, data, reading)
        assert turn is None or isinstance(turn.answer, RawAnswer)


@settings(max_examples=200, deadline=None)
@given(
    events=st.lists(st.text(st.characters(exclude_characters="\r\n"), min_size=1), max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_events_are_the_same_in_whatever_pieces_they_come(events, end, cuts):
    lines = "".join(f": comment{end}data: {event}{end}id: 1{end}{end}" for event in events)
    data = lines.encode("utf-8", "surrogatepass") + b"\n"
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    reader = EventReader()
    found = [
        event
        for start, stop in itertools.pairwise(places)
        for event in reader.feed(data[start:stop])
    ]
    assert found == [event.encode("utf-8", "surrogatepass") for event in events]


@given(
    number=st.from_regex(
        r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?", fullmatch=True
    )
)
def test_numbers_in_object_arguments_are_never_rounded(number):
    call = {"id": "a", "function": {"name": "x", "arguments": {"level": "@"}}}
    message = {"content": None, "tool_calls": [call]}
    body = frame("message", message, "tool_calls", 5).replace('"@"', number)
    reading = Reading("tools", 50, object_arguments=True)
    assert read_body(body.encode(), reading).answer.tool_calls[0].arguments == (
        f'{{"level": {number}}}'
    )
