"""Answers as models and servers really send them: one proposal, one refusal, or a named fault."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from sink.proposal import Invalid, Proposal, RawAnswer, Refusal, ToolCall, parse, read_answer


def tools(arguments, **fields):
    call = ToolCall(id="c1", name="lock_unlock", arguments=arguments)
    given = {"mode": "tools", "finish_reason": "tool_calls", "tool_calls": (call,)}
    return parse(RawAnswer(**{**given, **fields}))


def text(value, **fields):
    return parse(RawAnswer(**{"mode": "json", "text": value, "finish_reason": "stop", **fields}))


def proposal(arguments):
    return text(f'{{"tool":"lock_unlock","arguments":{arguments}}}')


def rule(parsed):
    assert isinstance(parsed, Invalid), parsed
    return parsed.rule


def test_a_tool_call_and_a_text_say_the_same():
    expected = Proposal("lock_unlock", {"target": "lock.a"})
    assert tools('{"target":"lock.a"}') == expected
    assert proposal('{"target":"lock.a"}') == expected


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ('```json\n{"target":"lock.a"}\n```', "not_json"),
        ('{"target":"lock.a",}', "not_json"),
        ("{\u201ctarget\u201d: \u201clock.a\u201d}", "not_json"),
        ("{'target':'lock.a'}", "not_json"),
        ("", "not_json"),
        ('{"target":"lock.a"} I will do it now.', "not_json"),
        ('{"target":"lock.a"}{"target":"lock.b"}', "not_json"),
        ('"{\\"target\\":\\"lock.a\\"}"', "not_an_object"),
        ("null", "not_an_object"),
        ('["lock.a"]', "not_an_object"),
        ('\ufeff{"target":"lock.a"}', "not_json"),
        ('{"target":"lock.a"', "not_json"),
    ],
)
def test_arguments_that_are_not_one_object_are_never_repaired(arguments, named):
    assert rule(tools(arguments)) == named


def test_an_object_where_text_is_due_is_refused():
    raw = {
        "mode": "tools",
        "finish_reason": "tool_calls",
        "tool_calls": [{"name": "lock_unlock", "arguments": {"target": "lock.a"}}],
    }
    assert rule(read_answer(json.dumps(raw).encode())) == "wrong_type"
    assert rule(tools(None)) == "wrong_type"


@pytest.mark.parametrize(
    "fields",
    [
        {"finish_reason": "tool_calls", "completion_tokens": 256, "max_tokens": 256},
        {"finish_reason": "tool_calls", "completion_tokens": 300, "max_tokens": 256},
        {"finish_reason": "length"},
        {"finish_reason": "max_tokens"},
        {"finish_reason": None},
        {"finish_reason": "stop"},
        {"finish_reason": "Tool_Calls"},
    ],
)
def test_a_call_of_an_unfinished_turn_is_cut_off(fields):
    assert rule(tools('{"target":"lock.a"}', **fields)) == "cut_off"


@pytest.mark.parametrize("reason", ["length", None, "tool_calls", "STOP", "content_filter"])
def test_a_text_of_an_unfinished_turn_is_cut_off(reason):
    assert rule(text('{"refusal":"no"}', finish_reason=reason)) == "cut_off"


def test_a_finished_turn_has_tokens_to_spare():
    assert isinstance(tools('{"target":"lock.a"}', completion_tokens=255, max_tokens=256), Proposal)


def test_an_empty_answer_is_no_refusal():
    assert rule(tools(None, finish_reason="stop", tool_calls=(), text="")) == "no_answer"
    assert rule(tools(None, finish_reason="stop", tool_calls=(), text=" \n")) == "no_answer"
    assert rule(tools(None, finish_reason="length", tool_calls=(), text="")) == "cut_off"
    assert rule(text(None)) == "not_json"


def test_two_calls_are_refused_together():
    call = ToolCall(name="light_on", arguments="{}")
    assert rule(tools("{}", tool_calls=(call, call))) == "two_calls"


def test_a_text_answer_makes_no_tool_call():
    call = ToolCall(name="light_on", arguments="{}")
    assert rule(text('{"refusal":"no"}', tool_calls=(call,))) == "unexpected_tool_call"


def test_words_are_a_refusal_in_either_mode():
    assert text('{"refusal":"not now"}') == Refusal("not now")
    assert tools(None, finish_reason="stop", tool_calls=(), text="Not now.") == Refusal("Not now.")
    assert rule(text('{"refusal":null}')) == "wrong_type"
    assert rule(text('{"refusal":"no","tool":"x","arguments":{}}')) == "wrong_keys"


@pytest.mark.parametrize(
    ("number", "named"),
    [
        ("NaN", "not_finite"),
        ("Infinity", "not_finite"),
        ("-Infinity", "not_finite"),
        ("1e400", "number_out_of_range"),
        ("1e99999999999999999999", "number_out_of_range"),
        ("0e-999999999", "number_out_of_range"),
        ("1e-30", "number_out_of_range"),
        ("21.0000000000000001", "number_not_exact"),
        ("0." + "0" * 50, "number_not_exact"),
        ("0012", "not_json"),
        ("9007199254740993", "number_not_exact"),
        ("-9007199254740992", "number_not_exact"),
        ("1" * 5000, "number_not_exact"),
        ("-0", "negative_zero"),
        ("-0.0", "negative_zero"),
        ("-0e3", "negative_zero"),
        ("null", "null_argument"),
        ("[21]", "nested_argument"),
        ('{"value":21}', "nested_argument"),
    ],
)
def test_a_value_that_is_no_exact_plain_value_is_named(number, named):
    assert rule(proposal(f'{{"target":"lock.a","x":{number}}}')) == named


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2.1e1", Decimal(21)),
        ("21.0", Decimal(21)),
        ("9007199254740991", 2**53 - 1),
        ("-9007199254740991", 1 - 2**53),
        ("123456789012.345", Decimal("123456789012.345")),
        ('"21"', "21"),
        ('"0042"', "0042"),
        ("true", True),
        ("0", 0),
    ],
)
def test_a_plain_value_is_kept_exactly(written, value):
    parsed = proposal(f'{{"x":{written}}}')
    assert isinstance(parsed, Proposal)
    assert parsed.arguments["x"] == value
    assert isinstance(parsed.arguments["x"], type(value))


@pytest.mark.parametrize(
    "arguments",
    [
        '{"target":"light.porch","target":"lock.front"}',
        '{"target":"light.porch","t\\u0061rget":"lock.front"}',
        '{"x":{"y":1,"\\u0079":2}}',
    ],
)
def test_equal_keys_are_found_after_unescaping_and_at_every_depth(arguments):
    assert rule(proposal(arguments)) == "duplicate_key"
    assert rule(tools(arguments)) == "duplicate_key"


def test_a_key_twice_beside_the_arguments_is_found_too():
    twice = '{"tool":"a","tool":"b","arguments":{}}'
    assert rule(text(twice)) == "duplicate_key"
    raw = b'{"mode":"json","mode":"tools","text":"{}","finish_reason":"stop"}'
    assert rule(read_answer(raw)) == "duplicate_key"


def test_nothing_is_unwrapped_and_nothing_dropped():
    assert rule(proposal('{"parameters":{"target":"light.porch"}}')) == "nested_argument"
    kept = proposal('{"target":"light.a","Target":"lock.b","only_if_alone":true}')
    assert isinstance(kept, Proposal)
    assert set(kept.arguments) == {"target", "Target", "only_if_alone"}
    wrapped = '{"answer":{"tool":"x","arguments":{}}}'
    assert rule(text(wrapped)) == "wrong_keys"
    assert rule(text('{"tool":"x","arguments":{},"confidence":1}')) == "wrong_keys"
    assert rule(text('{"tool":7,"arguments":{}}')) == "wrong_type"
    assert rule(text('{"tool":"x","arguments":"{}"}')) == "not_an_object"


@pytest.mark.parametrize("value", ['{"refusal":"\ud800"}', '{"refusal":"\\ud800"}'])
def test_half_a_character_is_no_text(value):
    assert rule(text(value)) == "not_unicode"


def test_bytes_that_are_not_utf8_are_named_with_their_place():
    fault = read_answer(b'{"mode":"json","text":"\xff"}')
    assert isinstance(fault, Invalid)
    assert (fault.rule, fault.detail) == ("not_unicode", "byte 23")


def test_size_and_depth_are_bounded():
    assert rule(text("[" * 60_000)) == "nested_too_deeply"
    assert rule(text(" " * 65_537)) == "too_large"
    assert isinstance(proposal('{"x":"' + "a" * 60_000 + '"}'), Proposal)


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b"[]",
        b"null",
        b'{"mode":"auto"}',
        b'{"mode":"json","text":7}',
        b'{"mode":"json","completion_tokens":"3"}',
        b'{"mode":"json","completion_tokens":3.0}',
        b'{"mode":"json","grant":"x"}',
        b'{"mode":"json","tool_calls":{}}',
        b'{"mode":"tools","tool_calls":[{"name":"x"}]}',
    ],
)
def test_a_raw_answer_of_another_form_is_refused(raw):
    assert rule(read_answer(raw)) == "wrong_type"


def test_a_raw_answer_survives_being_stored():
    answer = RawAnswer(
        mode="tools",
        tool_calls=(ToolCall(id="c1", name="x", arguments='{"a":1}'),),
        finish_reason="tool_calls",
        completion_tokens=7,
        max_tokens=9,
    )
    assert read_answer(answer.model_dump_json().encode()) == answer
