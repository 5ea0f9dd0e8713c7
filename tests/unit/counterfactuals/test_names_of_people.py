"""Two people whose names cannot be told apart are refused at enrolment."""

from __future__ import annotations

import pytest

from counterfactuals.people import name_fault


@pytest.mark.parametrize(
    "names",
    [
        ["Zo\u00eb", "Zoe\u0308"],
        ["Kim", "kim"],
        ["Kim", "\uff2bim"],
        ["Kim  Lee", "Kim Lee"],
        ["Noa", "N\u043ea"],
        ["Kim", "Kim\u200b"],
        ["Kim\u202e"],
    ],
)
def test_names_that_look_alike_are_refused(names: list[str]) -> None:
    assert name_fault(names)


@pytest.mark.parametrize(
    "names", [["Kim", "Noa"], ["Zoe", "Zo\u00eb"], ["\u041d\u043e\u0430", "Kim"], ["R1", "R2"], []]
)
def test_names_that_can_be_told_apart_stand(names: list[str]) -> None:
    assert not name_fault(names)
