"""Matching a candidate with the full skill."""

from __future__ import annotations

import pytest

from retire.domain.errors import NotAReduction
from retire.skill import SkillDocument, align, parse, render

HEAD = "---\nname: x\ndescription: d\n---\n"
FULL = "# One\n\nAsk. Wait. Ask.\n\n# Two\n\n| a |\n|---|\n| 1 |\n\nEnd.\n"


def read(body: str, head: str = HEAD) -> SkillDocument:
    return parse((head + body).encode())


def test_a_reduction_is_kept_and_deleted() -> None:
    full = read(FULL)
    result = align(full, parse(render(full, ["c002", "c004"])))
    assert result.kept == ("c001", "c003", "c005")
    assert result.deleted == ("c002", "c004")


def test_equal_texts_match_leftmost() -> None:
    result = align(read(FULL), read("Ask.\n"))
    assert result.kept == ("c001",)


@pytest.mark.parametrize(
    ("body", "quoted", "line"),
    [
        ("# One\n\nAsk. Wait long. Ask.\n", "Wait long.", 7),
        ("# One\n\nAsk.\n\nEnd.\nWait.\n", "Wait.", 10),
        ("# Unlock all\n\nAsk.\n", "# Unlock all", 5),
        ("| allowed |\n|---|\n| 1 |\n", "| allowed |", 5),
    ],
)
def test_added_edited_or_moved_text_is_quoted(body: str, quoted: str, line: int) -> None:
    with pytest.raises(NotAReduction) as caught:
        align(read(FULL), read(body))
    assert quoted in str(caught.value)
    assert caught.value.where.endswith(f":{line}")
    assert caught.value.exit_code == 2


def test_another_frontmatter_is_no_reduction() -> None:
    with pytest.raises(NotAReduction) as caught:
        align(read(FULL), read(FULL, HEAD.replace("description: d", "description: e")))
    assert "description: e" in str(caught.value)
    assert caught.value.where.endswith(":3")
