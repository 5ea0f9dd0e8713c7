"""What a changed door would get wrong unnoticed: the particulars that go with a denial."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from sink.proposal import MAX_CHARACTERS, Invalid, Proposal, RawAnswer, ToolCall, parse, read_answer
from tests.unit.sink.fake_world import Door


def text(value, **fields):
    return parse(RawAnswer(**{"mode": "json", "text": value, "finish_reason": "stop", **fields}))


def tools(*arguments, **fields):
    calls = tuple(ToolCall(name="lock_unlock", arguments=item) for item in arguments)
    given = {"mode": "tools", "finish_reason": "tool_calls", "tool_calls": calls}
    return parse(RawAnswer(**{**given, **fields}))


CALL = ToolCall(name="lock_unlock", arguments="{}")


def argument(value):
    return tools(f'{{"n":{value}}}')


LONG = "9" * 60


@pytest.mark.parametrize(
    ("answer", "rule", "named"),
    [
        (lambda: tools("{}", "{}"), "two_calls", "2"),
        (lambda: argument("-0"), "negative_zero", "-0"),
        (lambda: argument("-0.0"), "negative_zero", "-0.0"),
        (lambda: argument("NaN"), "not_finite", "NaN"),
        (
            lambda: argument("1e999999999999999999999"),
            "number_out_of_range",
            "1e999999999999999999999",
        ),
        (lambda: argument("1e16"), "number_out_of_range", "1e16"),
        (lambda: argument("1.234567890123456"), "number_not_exact", "1.234567890123456"),
        (lambda: text("[" * 5), "not_json", "character 5"),
        (lambda: text("[]"), "not_an_object", "list"),
        (lambda: text('{"b":1,"a":2}'), "wrong_keys", "a, b"),
        (lambda: argument("null"), "null_argument", "n"),
        (lambda: argument("[1]"), "nested_argument", "n"),
        (lambda: tools("[1]"), "not_an_object", "list"),
        (lambda: argument('"\\ud800"'), "not_unicode", "character"),
        (lambda: text("x" * 65_537), "too_large", "65537"),
        (lambda: text("{}", finish_reason="length"), "cut_off", "'length'"),
        (lambda: tools("{}", finish_reason="length"), "cut_off", "'length'"),
        (lambda: tools("{}", finish_reason="stop"), "cut_off", "tool_calls"),
        (lambda: tools(finish_reason="stop"), "no_answer", "neither"),
        (lambda: tools(None), "wrong_type", "arguments"),
        (lambda: text('{"refusal":1}'), "wrong_type", "refusal"),
        (lambda: text('{"tool":1,"arguments":{}}'), "wrong_type", "tool"),
        (lambda: text('{"tool":"x","arguments":1}'), "not_an_object", "int"),
        (lambda: text("{}", tool_calls=(CALL,)), "unexpected_tool_call", "text"),
        (lambda: text("{}", max_tokens=9), "cut_off", "tokens"),
        (lambda: text("{}", max_tokens=9, completion_tokens=9), "cut_off", "tokens"),
    ],
)
def test_the_rule_that_failed_says_where(answer, rule, named):
    parsed = answer()
    assert isinstance(parsed, Invalid)
    assert parsed.rule == rule
    assert named in parsed.detail


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda: argument('1,"n":2'), "duplicate_key"),
        (lambda: argument("[" * 50_000), "nested_too_deeply"),
    ],
)
def test_a_rule_that_says_it_all_adds_nothing(answer, rule):
    assert answer() == Invalid(rule, "")


@pytest.mark.parametrize("number", ["1e15", "1e-15", "9007199254740991", "1e" + "0" * 37 + "2"])
def test_the_last_number_on_the_exact_side_is_read(number):
    parsed = argument(number)
    assert isinstance(parsed, Proposal)
    assert parsed.arguments["n"] == Decimal(number)


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        ("1e-16", "number_out_of_range"),
        ("9007199254740992", "number_not_exact"),
        ("-9007199254740992", "number_not_exact"),
        ("1e" + "0" * 38 + "2", "number_not_exact"),
    ],
)
def test_the_first_number_beyond_is_not(number, rule):
    parsed = argument(number)
    assert isinstance(parsed, Invalid)
    assert parsed.rule == rule


@pytest.mark.parametrize("number", [LONG, "0." + LONG])
def test_a_long_number_is_quoted_in_part(number):
    parsed = argument(number)
    assert isinstance(parsed, Invalid)
    assert (parsed.rule, parsed.detail) == ("number_not_exact", number[:40])


@pytest.mark.parametrize("value", ["null", "[]"])
def test_a_long_name_is_quoted_in_part(value):
    parsed = tools(json.dumps({LONG * 10: json.loads(value)}))
    assert isinstance(parsed, Invalid)
    assert parsed.detail == (LONG * 10)[:200]


def test_long_keys_are_quoted_in_part():
    parsed = text(json.dumps({LONG * 10: 1}))
    assert isinstance(parsed, Invalid)
    assert parsed.detail == (LONG * 10)[:200]


@pytest.mark.parametrize("length", [65_535, 65_536])
def test_the_longest_text_is_read(length):
    filled = '{"refusal":"' + "x" * (length - 14) + '"}'
    assert len(filled) == length
    assert not isinstance(text(filled), Invalid)


@pytest.mark.parametrize(("spare", "readable"), [(0, True), (-1, False)])
def test_a_whole_answer_may_be_eight_texts_long(spare, readable):
    answer = json.dumps({"mode": "json", "finish_reason": "stop", "text": "{}"})
    padded = answer.ljust(8 * MAX_CHARACTERS - spare)
    assert isinstance(read_answer(padded.encode()), RawAnswer) is readable


@pytest.mark.parametrize(
    ("data", "rule", "named"),
    [
        (b"{", "not_json", "character 1"),
        (b"{}", "wrong_type", "RawAnswer"),
        (b"[]", "wrong_type", "RawAnswer"),
        (b'{"\xff"', "not_unicode", "byte 2"),
    ],
)
def test_an_unreadable_answer_says_where(data, rule, named):
    read = read_answer(data)
    assert isinstance(read, Invalid)
    assert read.rule == rule
    assert named in read.detail


async def test_what_broke_is_on_record_with_its_kind_and_no_more_than_it_needs(tmp_path):
    door = await Door(tmp_path).start()
    door.world.freeze()
    door.world.broken, door.world.fault = "frozen", RuntimeError("x" * 1000)
    reply = await door.ask()
    assert reply["detail"] == "RuntimeError: " + "x" * 286
    assert door.recorded[0]["detail"] == reply["detail"]
    door.record.close()


@pytest.mark.parametrize("value", ["\ud800", '{"refusal":"\ud800"}'])
def test_half_a_character_is_no_unicode_wherever_it_stands(value):
    answer = RawAnswer.model_construct(
        mode="json",
        text=value,
        tool_calls=(),
        finish_reason="stop",
        completion_tokens=None,
        max_tokens=None,
    )
    parsed = parse(answer)
    assert isinstance(parsed, Invalid)
    assert parsed.rule == "not_unicode"
