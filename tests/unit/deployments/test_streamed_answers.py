"""Streamed tool calls: fragments become one answer, or the whole turn is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retire.deployments.envelope import DONE, Reading, StreamedTurn
from sink.proposal import Invalid, Proposal, RawAnswer, Refusal, ToolCall, parse


def call(index, identity=None, name=None, arguments=None):
    function = {"name": name, "arguments": arguments}
    return {
        "index": index,
        "id": identity,
        "function": {key: value for key, value in function.items() if value is not None},
    }


def chunk(*calls, finish=None, content=None):
    delta = {"tool_calls": list(calls)} if calls else {}
    if content is not None:
        delta["content"] = content
    return {"choices": [{"delta": delta, "finish_reason": finish}]}


def assemble(chunks, mode, max_tokens=None):
    """Return the answer of a stream of these events."""
    turn = StreamedTurn(Reading(mode, max_tokens))
    for event in chunks:
        turn.take(json.dumps(event).encode())
    turn.take(DONE)
    return turn.turn().answer


END = chunk(finish="tool_calls")
LIGHT = '{"target":"light.a"}'
LOCK = '{"target":"lock.a"}'


def test_fragments_in_order_give_one_call() -> None:
    answer = assemble(
        [
            chunk(call(0, "c1", "light_turn_on", ""), call(0, None, None, '{"target":')),
            chunk(call(0, None, None, '"light.a"}')),
            END,
        ],
        "tools",
    )
    assert parse(answer) == Proposal("light_turn_on", {"target": "light.a"})


@pytest.mark.parametrize(
    "chunks",
    [
        [
            chunk(call(0, "c1", "light_turn_on", LIGHT)),
            chunk(call(0, "c2", "lock_unlock", LOCK)),
            END,
        ],
        [chunk(call(None, "c1", "light_", ""), call(None, None, "turn_on", "{}")), END],
        [chunk(call(0, "c1", "light_", ""), call(0, None, "turn_on", "{}")), END],
        [chunk(call(0, None, None, LIGHT)), END],
        [chunk(call(0, "c1", "light_turn_on", LIGHT)), END, chunk(call(0, None, None, " "))],
        [chunk(call(True, "c1", "light_turn_on", LIGHT)), END],
        [chunk(call(-1, "c1", "light_turn_on", LIGHT)), END],
        [chunk(call(0, "c1", "light_turn_on", {"target": "light.a"})), END],
        [{"choices": [{"delta": {}}, {"delta": {}}]}],
    ],
)
def test_a_broken_protocol_refuses_the_whole_turn(chunks) -> None:
    parsed = parse(assemble(chunks, "tools"))
    assert isinstance(parsed, Invalid)
    assert "stream_fault" in parsed.detail


def test_a_stream_that_ends_early_is_cut_off() -> None:
    parsed = parse(assemble([chunk(call(0, "c1", "light_turn_on", LIGHT))], "tools"))
    assert isinstance(parsed, Invalid)
    assert parsed.rule == "cut_off"


def test_two_clean_calls_are_refused_together() -> None:
    chunks = [
        chunk(call(0, "c1", "light_turn_on", LIGHT), call(1, "c2", "lock_unlock", LOCK)),
        END,
    ]
    parsed = parse(assemble(chunks, "tools"))
    assert isinstance(parsed, Invalid)
    assert parsed.rule == "two_calls"


def test_tokens_at_the_limit_are_no_finished_turn() -> None:
    usage = {"choices": [], "usage": {"completion_tokens": 256}}
    chunks = [chunk(call(0, "c1", "light_turn_on", LIGHT)), END, usage]
    assert isinstance(parse(assemble(chunks, "tools", max_tokens=256)), Invalid)
    assert isinstance(parse(assemble(chunks, "tools", max_tokens=257)), Proposal)


@given(st.text(max_size=60), st.data())
def test_streamed_and_unstreamed_readers_agree(arguments: str, data) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(arguments)), max_size=4)))
    pieces = [arguments[a:b] for a, b in zip([0, *cuts], [*cuts, len(arguments)], strict=True)]
    chunks = [chunk(call(0, "c1", "t", "")), *(chunk(call(0, None, None, p)) for p in pieces), END]
    whole = RawAnswer(
        mode="tools",
        tool_calls=(ToolCall(id="c1", name="t", arguments=arguments),),
        finish_reason="tool_calls",
    )
    streamed = assemble(chunks, "tools")
    assert streamed == whole
    assert parse(streamed) == parse(whole)


def test_text_is_joined_and_read_like_an_unstreamed_answer() -> None:
    chunks = [chunk(content='{"refus'), chunk(content='al":"no"}'), chunk(finish="stop")]
    assert parse(assemble(chunks, "json")) == Refusal("no")
