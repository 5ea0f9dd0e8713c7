"""The strict parser never raises, never repairs, and its numbers have one written form."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sink.contract import canonical_decimal, canonical_scalar, decimal_text, same_value
from sink.proposal import Invalid, Proposal, RawAnswer, Refusal, ToolCall, parse, read_answer

pytestmark = pytest.mark.property

TEXTS = st.one_of(
    st.text(),
    st.text(st.sampled_from('{}[]":,\\u0123eE.-+ntf \n'), max_size=60),
    st.text(st.characters(exclude_categories=())),
)
NUMBER_TEXTS = st.builds(
    "{}{}{}".format,
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})", fullmatch=True),
    st.one_of(st.just(""), st.from_regex(r"\.[0-9]{1,20}", fullmatch=True)),
    st.one_of(st.just(""), st.from_regex(r"[eE][+-]?[0-9]{1,25}", fullmatch=True)),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(["tool", "arguments", "refusal"]), st.text()), inner
        ),
    ),
    max_leaves=8,
)
FINITE = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**15), max_value=10**15)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(["json", "tools"]), st.one_of(st.none(), st.text(max_size=10)))
@example("[" * 60_000, "json", "stop")
@example('{"a":' * 10_000, "json", "stop")
@example("\ud800", "json", "stop")
@example('{"refusal":"\\ud800"}', "json", "stop")
def test_no_text_makes_the_parser_raise(text, mode, finish):
    for reason in (finish, "stop", "tool_calls"):
        calls = (ToolCall(name="x", arguments=text),)
        for tool_calls in ((), calls, calls * 2):
            answer = RawAnswer(mode=mode, text=text, tool_calls=tool_calls, finish_reason=reason)
            assert isinstance(parse(answer), Proposal | Refusal | Invalid)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(), TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))))
@example(b"[" * 100_000)
@example(b"\xff\xfe{}")
@example(b'{"mode":"json","completion_tokens":1e99999999999999999999}')
@example(b'{"mode":"json","tool_calls":{"a":1}}')
@example(b'{"mode":"json","tool_calls":null}')
def test_no_bytes_make_the_reader_raise(data):
    assert isinstance(read_answer(data), RawAnswer | Invalid)


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_any_json_is_a_proposal_a_refusal_or_a_named_fault(value):
    parsed = parse(RawAnswer(mode="json", text=json.dumps(value), finish_reason="stop"))
    if isinstance(parsed, Invalid):
        assert parsed.rule
    elif isinstance(parsed, Refusal):
        assert value == {"refusal": parsed.reason}
    else:
        assert set(value) == {"tool", "arguments"}
        assert value["tool"] == parsed.tool


@settings(max_examples=400, deadline=None)
@given(NUMBER_TEXTS)
@example("1e99999999999999999999")
@example("0e-999999999")
@example("0e999999999999999999")
def test_a_number_is_exact_and_short_or_refused(text):
    answer = RawAnswer(
        mode="json", text=f'{{"tool":"t","arguments":{{"x":{text}}}}}', finish_reason="stop"
    )
    parsed = parse(answer)
    if isinstance(parsed, Invalid):
        return
    assert isinstance(parsed, Proposal)
    value = parsed.arguments["x"]
    assert Decimal(text) == value
    written = canonical_scalar(value)
    assert isinstance(written, str)
    assert len(written) < 64
    assert float(Decimal(written[1:])) == float(value)


@settings(deadline=None)
@given(FINITE)
def test_the_canonical_form_of_a_number_is_a_fixed_point(value):
    text = canonical_decimal(value)
    assert Decimal(text) == value
    assert canonical_decimal(Decimal(text)) == text
    assert decimal_text(text) == text
    assert "e" not in text.lower()
    assert text != "-0"


@settings(deadline=None)
@given(FINITE, st.integers(0, 6))
def test_how_a_number_is_written_does_not_matter(value, zeros):
    padded = Decimal(
        format(value, "f") + ("." if "." not in format(value, "f") else "") + "0" * zeros
    )
    assert same_value(value, padded)
    assert not same_value(value, canonical_decimal(value))


@settings(deadline=None)
@given(st.one_of(st.text(), FINITE, st.booleans(), st.integers(-(2**53), 2**53)))
def test_values_of_different_kinds_are_never_equal(value):
    for other in (True, False, 0, 1, "1", "true", "True", "0", "#1", "'1"):
        if isinstance(value, bool) != isinstance(other, bool) or isinstance(
            value, str
        ) != isinstance(other, str):
            assert not same_value(value, other)
