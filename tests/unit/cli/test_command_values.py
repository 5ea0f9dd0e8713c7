"""Values from the command line: refused with the option's name, or passed on unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from retire.cli.inputs import check_deployments, many, printable, protocol_for, read_skill
from retire.cli.matrix import changed
from retire.deployments import EMBEDDED
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = {"name": "x", "seed": 1, "bundles": ("A",), "deployments": ("plain",)}


@pytest.mark.parametrize(
    ("field", "value", "option"),
    [
        ("margin_points", 101, "--margin"),
        ("margin_points", -1, "--margin"),
        ("seed", -1, "--seed"),
        ("seed", 2**53, "--seed"),
        ("reducer", "thirds", "--reducer"),
        ("repetitions", 0, "--repetitions"),
    ],
)
def test_a_value_out_of_range_names_its_option(field: str, value: object, option: str) -> None:
    with pytest.raises(InputError) as caught:
        protocol_for(**{**GOOD, field: value})
    assert caught.value.where == option
    assert repr(value) in caught.value.what
    assert "\n" not in str(caught.value)


def test_a_follow_up_adds_the_contract_placements_once() -> None:
    protocol = protocol_for(**GOOD)
    once = changed(protocol, None, follow_up=True)
    assert once.conditions == ("B1", "B2", "B3", "B4", "B5", "B6")
    assert changed(once, None, follow_up=True) == once
    assert changed(protocol, None, follow_up=False) == protocol
    assert changed(protocol, 7, follow_up=False).seed == 7


def test_a_changed_seed_out_of_range_names_its_option() -> None:
    with pytest.raises(InputError) as caught:
        changed(protocol_for(**GOOD), -1, follow_up=False)
    assert caught.value.where == "--seed"


def test_an_unknown_deployment_names_the_protocol_file() -> None:
    with pytest.raises(InputError) as caught:
        check_deployments(protocol_for(**{**GOOD, "deployments": ("plian",)}), "p.yaml", EMBEDDED)
    assert caught.value.where == "p.yaml"
    assert "plain" in caught.value.mend


def test_a_skill_is_a_file_or_the_folder_that_holds_it(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_bytes(b"text")
    assert read_skill(tmp_path) == read_skill(tmp_path / "SKILL.md") == b"text"
    with pytest.raises(InputError):
        read_skill(tmp_path / "other")


@pytest.mark.parametrize("char", ["\x1b", "\u202e", "\u200b", "\x00", "\n"])
def test_unprintable_characters_are_shown_not_sent(char: str) -> None:
    shown = printable(f"a{char}b ü 中")
    assert char not in shown
    assert shown.startswith("a")
    assert shown.endswith("b ü 中")


def test_counts_agree_with_their_nouns() -> None:
    assert [many(count, "fault") for count in (0, 1, 2)] == ["0 faults", "1 fault", "2 faults"]
