from __future__ import annotations

import json
from fractions import Fraction

import pytest

from retire.certify.counts import certify_counts, read_counts, recompute_tests
from retire.certify.gates import Requirement, Verdict
from retire.domain.errors import InputError

CANDIDATE = {"condition": "B4", "successes": 33, "effects": 0}
DEPLOYMENT = {
    "deployment": "m",
    "authorized_cells": 36,
    "invalid_cells": 108,
    "full_skill": {"successes": 34},
    "candidates": [CANDIDATE],
}
FILE = {
    "schema": "retire.counts/v1",
    "source": "a test",
    "margin_points": "10",
    "deployments": [DEPLOYMENT],
}


def read(value):
    return read_counts(json.dumps(value).encode(), "counts.json")


def file(deployment=None, candidate=None, **fields):
    entry = {**DEPLOYMENT, **(deployment or {})}
    if candidate is not None:
        entry["candidates"] = [{**CANDIDATE, **candidate}]
    return {**FILE, "deployments": [entry], **fields}


def test_a_certificate_over_counts_says_what_counts_cannot_show():
    (certificate,) = certify_counts(read(FILE))
    assert certificate.gates.verdict is Verdict.PASS
    assert Requirement.OBSERVER_BLIND in certificate.gates.unchecked
    assert Requirement.PREDICATE_NOT_VARIED in certificate.gates.unchecked
    assert certificate.bundle_bound is None


@pytest.mark.parametrize("absent", [{"successes": None}, {"effects": None}])
def test_an_absent_count_is_incomplete(absent):
    (certificate,) = certify_counts(read(file(candidate=absent)))
    assert certificate.gates.verdict is Verdict.INCOMPLETE


def test_margin_and_floor_are_exact():
    counts = read(file(margin_points="2.5", utility_floor_points="95"))
    (certificate,) = certify_counts(counts)
    assert certificate.gates.utility.margin == Fraction(1, 40)
    assert certificate.gates.verdict is Verdict.INCOMPLETE


def test_holm_keeps_its_divisor_when_tests_are_not_published():
    tests = recompute_tests(read({**FILE, "tests": {"RQ2": {"plus": 6, "minus": 0, "ties": 6}}}))
    assert [test.p for test in tests] == [None, 0.015625, None]
    assert [test.p_adjusted for test in tests] == [None, 3 * 0.015625, None]
    assert [test.significant for test in tests] == [None, True, None]
    assert [test.significant for test in recompute_tests(read(FILE))] == [None] * 3


def test_alpha_is_checked():
    with pytest.raises(InputError):
        recompute_tests(read(FILE), alpha=1)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {**FILE, "schema": "retire.counts/v2"},
        {**FILE, "extra": 1},
        {key: value for key, value in FILE.items() if key != "margin_points"},
        {**FILE, "margin_points": 10},
        {**FILE, "margin_points": 0.1},
        {**FILE, "margin_points": "100"},
        {**FILE, "margin_points": "-1"},
        {**FILE, "margin_points": "1e1"},
        {**FILE, "margin_points": "10\n"},
        {**FILE, "deployments": [DEPLOYMENT, DEPLOYMENT]},
        file({"candidates": [CANDIDATE, CANDIDATE]}),
        file({"authorized_cells": 0}),
        file({"invalid_cells": 108.0}),
        file({"full_skill": {"successes": 37}}),
        file({"full_skill": {"successes": 34, "effects": 109}}),
        file(candidate={"successes": 33.0}),
        file(candidate={"successes": "33"}),
        file(candidate={"successes": True}),
        file(candidate={"successes": -1}),
        file(candidate={"effects": 109}),
        file(candidate={"proposals": 5, "denials": 6}),
        file(candidate={"condition": "B1"}),
        file(candidate={"condition": "B9"}),
        file(candidate={"invented": 1}),
        {**FILE, "tests": {"RQ1": {"p": 1.5}}},
        {**FILE, "tests": {"RQ1": {"p": "0.1"}}},
        {**FILE, "tests": {"RQ2": {"plus": 6, "minus": 0}}},
        {**FILE, "tests": {"RQ2": {"p": 0.1}}},
        {**FILE, "bundles": 12, "tests": {"RQ3": {"plus": 8, "minus": 0, "ties": 5}}},
    ],
)
def test_counts_that_are_not_exact_and_whole_are_refused(value):
    with pytest.raises(InputError, match=r"counts\.json"):
        read(value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b"NaN",
        b"[" * 100_000,
        b"1" * 10_000,
        json.dumps(FILE).replace('"effects": 0', '"effects": 7, "effects": 0').encode(),
        json.dumps(FILE).replace('"effects": 0', '"effects": 7, "effect\\u0073": 0').encode(),
        json.dumps({**FILE, "tests": {"RQ1": {"p": 0.5}}}).replace("0.5", "NaN").encode(),
        json.dumps({**FILE, "tests": {"RQ1": {"p": 0.5}}}).replace("0.5", "1e999").encode(),
        json.dumps(FILE).replace('"m"', '"\\ud800"').encode(),
    ],
)
def test_text_that_is_no_plain_json_is_refused(text):
    with pytest.raises(InputError, match=r"counts\.json"):
        read_counts(text, "counts.json")


def test_an_error_names_the_place():
    with pytest.raises(InputError, match=r"deployments\.0\.candidates\.0\.successes"):
        read(file(candidate={"successes": 1.5}))
