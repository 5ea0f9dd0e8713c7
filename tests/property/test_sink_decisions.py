"""The sink allows a proposal exactly when a second, simpler sink does."""

from __future__ import annotations

import json

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from sink.decision import Allow, Binding, decide
from sink.proposal import Proposal, RawAnswer, parse
from tests import houses, naive
from tests.property.test_sink_predicates import snapshots

pytestmark = pytest.mark.property

TOOLS = st.one_of(
    st.just("climate_set"),
    st.sampled_from(
        [
            "climate.set",
            "Climate_Set",
            "climate_set ",
            "functions.climate_set",
            "climate_s\u0435t",
            "climate_set\u200b",
            "fan_on",
            "",
        ]
    ),
)
TARGETS = st.one_of(
    st.just('"climate.den"'),
    st.sampled_from(
        [
            '"climate.hall"',
            '"CLIMATE.Den"',
            '"cl\u0131mate.den"',
            '"climate.d\u0435n"',
            '"climate.den\\n"',
            '"climate.den\\u200b"',
            '"climate.\uff44en"',
            '"climate.den, climate.hall"',
            '"climate.den/../climate.hall"',
            '"all"',
            '"*"',
            '""',
            '["climate.den"]',
            '{"area_id":"den"}',
            "null",
            "true",
            "1",
            '"climate.\\u0064en"',
        ]
    ),
)
TEMPERATURES = st.one_of(
    st.sampled_from(
        ["26.5", "26.50", "2.65e1", "265e-1", "0.265E+2", '"26.5"', "26.4", "26.6", "26.500001"]
    ),
    st.sampled_from(
        ["16", "24", "15.9", "24.1", "16.0", "2.4e1", "24.00", "23.95", "15.99", "24.01", "5", "30"]
    ),
    st.sampled_from(["true", "null", "[26.5]", "{}", "NaN", "Infinity", "-Infinity", "1e400"]),
    st.sampled_from(
        ["-0", "-0.0", "0026.5", "26.5000000000000000000", "26.50000000000000", "1e99999999999999"]
    ),
    st.sampled_from(["0e-99999999", "0e5", "9007199254740993", "26.", ".5", "+26.5", "26,5"]),
    st.integers(0, 40).map(str),
    st.decimals(min_value=0, max_value=40, places=1).map(str),
)
MINUTES = st.sampled_from(["60", "60.0", "6e1", "61", "60.5", '"60"', "true", "5", "4", "null"])
MODES = st.sampled_from(['"quiet"', '"fast"', '"Quiet"', '"quiet "', "null", "true", '""'])
RAMPS = st.sampled_from(["true", "false", '"true"', "1", "0", "null"])
OTHERS = st.sampled_from(
    ["only_if_nobody_is_in", "Target", "target ", "temperature\\u0020", "parameters", ""]
)


def mostly(right, near_misses):
    """The right value three times out of four, so that single faults are common."""
    return st.integers(0, 3).flatmap(lambda n: st.just(right) if n else near_misses)


def member(key, value):
    return st.tuples(st.just(key), value)


@st.composite
def pairs(draw):
    """Key and value texts of an argument object, in any order, sometimes twice or foreign."""
    target = draw(mostly('"climate.den"', TARGETS))
    temperature = draw(mostly(draw(st.sampled_from(["26.5", "2.65e1", "20"])), TEMPERATURES))
    kept = [("target", target), ("temperature", temperature)]
    if draw(st.integers(0, 19)) == 0:
        kept.pop(draw(st.integers(0, 1)))
    optional = [member("minutes", MINUTES), member("mode", MODES), member("ramp", RAMPS)]
    kept += [draw(item) for item in optional if draw(st.integers(0, 3)) == 0]
    if draw(st.integers(0, 4)) == 0:
        kept.append((draw(OTHERS), draw(st.sampled_from(["1", "null", '"x"', "{}"]))))
    if draw(st.integers(0, 24)) == 0:
        key = draw(st.sampled_from(["target", "t\\u0061rget", "temperature"]))
        kept.append((key, draw(st.sampled_from(['"climate.den"', "26.5"]))))
    return draw(st.permutations(kept))


@st.composite
def answers(draw):
    """The text of an answer: nearly always one JSON object, sometimes nearly one."""
    arguments = ",".join(f'"{key}":{value}' for key, value in draw(pairs()))
    text = (
        f'{{"tool":{json.dumps(draw(mostly("climate_set", TOOLS)))},"arguments":{{{arguments}}}}}'
    )
    wrapped = [
        text,
        f"```json\n{text}\n```",
        f"{text} I will do it now.",
        f"{text}{text}",
        json.dumps(text),
        f"[{text}]",
        f"\ufeff{text}",
        f" \n{text}\t",
        text[:-1],
        text.replace('"', "\u201d"),
        text.replace('"arguments":', '"note":"x","arguments":'),
    ]
    return wrapped[max(0, draw(st.integers(-40, len(wrapped) - 1)))]


def of_sink(text, contract_data, snapshot_data, binding):
    parsed = parse(RawAnswer(mode="json", text=text, finish_reason="stop"))
    if not isinstance(parsed, Proposal):
        return ("deny", "malformed_proposal")
    decision = decide(
        houses.contract(contract_data), parsed, houses.snapshot(snapshot_data), binding
    )
    if isinstance(decision, Allow):
        return ("allow", str(decision.basis))
    return ("deny", str(decision.reason))


def plain(temperature, rest=""):
    arguments = f'"target":"climate.den","temperature":{temperature}{rest}'
    return f'{{"tool":"climate_set","arguments":{{{arguments}}}}}'


@settings(max_examples=600, deadline=None)
@given(answers(), st.sampled_from(Binding), st.booleans())
@example(plain("2.65e1"), Binding.EXACT, False)
@example(plain("26.5", ',"minutes":60'), Binding.CANONICAL, False)
@example(plain("26.5", ',"minutes":60'), Binding.EXACT, False)
@example(plain("16"), Binding.EXACT, True)
@example(plain("24.0"), Binding.CANONICAL, True)
@example(plain("24.1"), Binding.CANONICAL, False)
@example(plain("15.9"), Binding.CANONICAL, False)
@example(plain("26.5", ',"":1'), Binding.CANONICAL, False)
@example(plain("26.5", ',"":1'), Binding.EXACT, False)
@example(plain("20", ',"":1'), Binding.CANONICAL, True)
@example(plain("20", ',"mode":"fast"'), Binding.CANONICAL, False)
@example(plain("20", ',"mode":"quiet"'), Binding.CANONICAL, False)
@example(plain("20", ',"mode":"quiet"'), Binding.EXACT, False)
def test_the_sink_answers_as_the_reference_does(text, binding, revoked):
    state = houses.snapshot_data()
    if revoked:
        state["grants"]["boost"]["status"] = "revoked"
    expected = naive.decide(houses.contract_data(), state, text, str(binding))
    event(expected[0] + " " + expected[1])
    assert of_sink(text, houses.contract_data(), state, binding) == expected


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["26.5", "20", "25"]), snapshots(), st.sampled_from(Binding), st.booleans())
def test_the_sink_and_the_reference_agree_under_any_snapshot(temperature, state, binding, banded):
    contract_data = houses.contract_data()
    if not banded:
        del contract_data["free_band"]
    text = plain(temperature)
    expected = naive.decide(contract_data, state, text, str(binding))
    event(expected[0] + " " + expected[1])
    assert of_sink(text, contract_data, state, binding) == expected
