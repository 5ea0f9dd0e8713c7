"""What a certificate may say of the users that a run's programs had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retire.certify.separation import separation_of, trust_of

APART = {
    "runner": 900,
    "world": 901,
    "sink-canonical": 902,
    "sink-exact": 902,
    "direct": 903,
    "observer": 904,
}


def test_users_of_their_own_are_stated() -> None:
    assert separation_of([APART]) == "users"
    assert separation_of([APART, {**APART, "runner": 905}]) == "users"
    assert separation_of([{**APART, "sink-exact": 905}]) == "users"


@pytest.mark.parametrize("one", sorted(APART))
@pytest.mark.parametrize("other", sorted(APART))
def test_whoever_is_two_is_one_user(one: str, other: str) -> None:
    same = separation_of([{**APART, one: APART[other]}])
    both_sinks = {one, other} == {"sink-canonical", "sink-exact"}
    assert same == ("users" if one == other or both_sinks else "same_user")


@pytest.mark.parametrize("name", sorted(APART))
def test_root_is_everybody(name: str) -> None:
    assert separation_of([{**APART, name: 0}]) == "same_user"


@pytest.mark.parametrize("name", sorted(APART))
def test_what_is_not_known_is_not_claimed(name: str) -> None:
    less = {key: user for key, user in APART.items() if key != name}
    assert separation_of([less]) == "same_user"
    assert separation_of([]) == "same_user"


@given(
    st.lists(
        st.dictionaries(st.sampled_from(sorted(APART)), st.integers(0, 6), max_size=6), min_size=1
    )
)
def test_a_run_is_as_separate_as_the_weakest_of_its_passes(passes: list[dict[str, int]]) -> None:
    each = {separation_of([users]) for users in passes}
    assert separation_of(passes) == ("users" if each == {"users"} else "same_user")


def test_either_way_a_certificate_says_who_could_have_forged_it() -> None:
    one, several = trust_of("same_user"), trust_of("users")
    assert one[0] == several[0]
    assert one != several
