"""Laws of the tests and of the two-gate rule."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retire.certify.gates import GateCounts, Requirement, Verdict, apply_gates
from retire.stats.bounds import upper_bound
from retire.stats.holm import holm
from retire.stats.permutation import permutation_test
from retire.stats.sign_test import exact_sign_test

pytestmark = pytest.mark.property

RANK = {Verdict.FAIL: 0, Verdict.INCOMPLETE: 1, Verdict.PASS: 2}
rates = st.fractions(0, Fraction(59, 60), max_denominator=60)
p_values = st.lists(st.none() | st.floats(0, 1), max_size=6)


@st.composite
def gate_counts(draw, missing=True):
    n = draw(st.integers(1, 40))
    optional = st.none() if missing else st.nothing()
    return GateCounts(
        full=draw(optional | st.integers(0, n)),
        candidate=draw(optional | st.integers(0, n)),
        authorized=n,
        effects=draw(optional | st.just(0) | st.integers(0, 5)),
        invalid=draw(st.integers(5, 108)),
        margin=draw(rates),
        floor=draw(st.none() | rates),
    )


def with_(counts: GateCounts, **changes) -> GateCounts:
    fields = {name: getattr(counts, name) for name in GateCounts.__dataclass_fields__}
    return GateCounts(**{**fields, **changes})


@given(gate_counts(missing=False))
def test_one_more_success_never_hurts(counts):
    verdicts = [apply_gates(with_(counts, candidate=k)) for k in range(counts.authorized + 1)]
    ranks = [RANK[gates.verdict] for gates in verdicts]
    assert ranks == sorted(ranks)
    passes = [gates.utility.passes for gates in verdicts]
    assert passes == sorted(passes)


@given(gate_counts())
def test_one_more_effect_never_helps(counts):
    ranks = [RANK[apply_gates(with_(counts, effects=k)).verdict] for k in range(5)]
    assert ranks == sorted(ranks, reverse=True)
    unknown = apply_gates(with_(counts, effects=None))
    assert RANK[unknown.verdict] <= max(1, ranks[0])


@given(gate_counts(), st.lists(st.sampled_from(Requirement).map(lambda r: r.about("x"))))
def test_a_pass_has_both_gates_no_effect_and_nothing_unmet(counts, unmet):
    gates = apply_gates(counts, unmet)
    if gates.verdict is Verdict.PASS:
        assert gates.utility.passes
        assert gates.authority.passes
        assert not gates.unmet
        assert counts.effects == 0
        assert None not in (counts.full, counts.candidate)
        assert counts.full > 0
        assert counts.candidate > 0
        rate, floor = Fraction(counts.full, counts.authorized), counts.floor or 0
        assert rate >= floor
        assert Fraction(counts.candidate, counts.authorized) >= rate - counts.margin
    if counts.effects:
        assert gates.verdict is Verdict.FAIL


@given(gate_counts(missing=False))
def test_headroom_counts_the_successes_to_the_pass_boundary(counts):
    gates = apply_gates(with_(counts, effects=0))
    headroom = gates.utility.headroom
    smallest = counts.candidate - headroom
    assert smallest == gates.utility.smallest_passing
    assert 1 <= smallest <= counts.authorized
    baseline_is_meaningful = counts.full > 0 and (
        Fraction(counts.full, counts.authorized) >= (counts.floor or 0)
    )
    for candidate in range(counts.authorized + 1):
        verdict = apply_gates(with_(counts, candidate=candidate, effects=0)).verdict
        assert (verdict is Verdict.PASS) == (baseline_is_meaningful and candidate >= smallest)


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 5))
def test_sign_test_agrees_with_enumeration(plus, minus, ties):
    n = plus + minus
    outcomes = list(itertools.product((0, 1), repeat=n))
    expected = Fraction(sum(sum(o) >= plus for o in outcomes), len(outcomes))
    assert exact_sign_test(plus, minus, ties).p == float(expected)


@given(p_values, st.integers(0, 4))
def test_holm_agrees_with_its_definition(values, more):
    divisor = len(values) + more
    tested = sorted(p for p in values if p is not None)
    expected = []
    for p in values:
        if p is None:
            expected.append(None)
            continue
        smaller = [(divisor - i) * q for i, q in enumerate(tested) if q <= p]
        # Among equal p-values the first rank has the largest factor and decides for all of them.
        expected.append(min(1.0, max(smaller)))
    assert holm(values, divisor=divisor) == tuple(
        None if e is None else pytest.approx(e) for e in expected
    )


@given(p_values)
def test_holm_never_lowers_and_keeps_the_order(values):
    adjusted = holm(values)
    pairs = [(p, q) for p, q in zip(values, adjusted, strict=True) if p is not None]
    assert all(q is not None and p <= q <= 1 for p, q in pairs)
    assert [q for _, q in sorted(pairs)] == sorted(q for _, q in pairs)


@given(st.integers(1, 40), st.data())
def test_upper_bound_solves_its_equation(trials, data):
    k = data.draw(st.integers(0, trials - 1))
    bound = upper_bound(k, trials)
    tail = sum(math.comb(trials, i) * bound**i * (1 - bound) ** (trials - i) for i in range(k + 1))
    assert tail == pytest.approx(0.05, abs=1e-9)


@settings(max_examples=25)
@given(
    st.integers(2, 4).flatmap(
        lambda m: st.lists(
            st.lists(st.integers(-3, 3), min_size=m, max_size=m), min_size=1, max_size=5
        )
    ),
    st.randoms(use_true_random=False),
    st.integers(0, 2**32),
)
def test_permutation_test_ignores_names_and_order(rows, source, seed):
    def table(of, names):
        return dict(zip(names, map(list, zip(*of, strict=True)), strict=True))

    names = [f"d{i}" for i in range(len(rows[0]))]
    shuffled = rows.copy()
    source.shuffle(shuffled)
    renamed = [f"x{name}" for name in names]
    source.shuffle(renamed)
    first = permutation_test(table(rows, names), seed, resamples=199)
    again = permutation_test(table(shuffled, renamed), seed, resamples=199)
    assert first == again


@settings(max_examples=25)
@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=6),
    st.integers(2, 4),
    st.integers(0, 2**32),
)
def test_identical_deployments_give_p_of_one(column, deployments, seed):
    differences = {f"d{i}": column for i in range(deployments)}
    assert permutation_test(differences, seed, resamples=99).p == 1
