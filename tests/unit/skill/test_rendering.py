"""What a skill looks like without some of its clauses."""

from __future__ import annotations

import pytest

from retire.domain.errors import InputError
from retire.skill import parse, render

HEAD = "---\nname: x\ndescription: d\n---\n"


def without(body: str, *texts: str) -> str:
    """Return a body without the clauses of these texts."""
    document = parse((HEAD + body).encode())
    ids = [clause.id for clause in document.clauses if clause.text in texts]
    assert len(ids) == len(texts)
    return render(document, ids).decode().removeprefix(HEAD)


CASES = {
    "a sentence": ("One. Two. Three.\n", ["Two."], "One. Three.\n"),
    "the first sentence of a line": ("One.\nTwo.\n\nEnd.\n", ["One."], "Two.\n\nEnd.\n"),
    "a parent keeps its marker": ("- Parent\n  - child\n", ["Parent"], "- - child\n"),
    "the marker moves past a far child": (
        "Intro\n\n- Parent\n     - child\n       more\n",
        ["Parent"],
        "Intro\n\n- -    child\n       more\n",
    ),
    "a tab child": ("- Parent\n\t- child\n", ["Parent"], "- -   child\n"),
    "a quote in an item": ("1. Parent\n   > said\n", ["Parent"], "1. > said\n"),
    "a fence in an item": (
        "1. Run\n\n   ```\n   x\n   ```\n",
        ["Run"],
        "1. ```\n   x\n   ```\n",
    ),
    "a tight list stays tight": ("- a\n- b\n- c\n", ["b"], "- a\n- c\n"),
    "a loose list stays loose": ("- a\n\n- b\n\n- c\n", ["b"], "- a\n\n- c\n"),
    "nothing is renumbered": ("Do:\n1. a\n2. b\n3. c\n", ["a"], "Do:\n\n2. b\n3. c\n"),
    "an emptied list": ("A.\n\n- b\n- c\n\nD.\n", ["b", "c"], "A.\n\nD.\n"),
    "an emptied section": ("# A\n\na\n\n## B\n\nb\n\n# C\n\nc\n", ["a", "b"], "# C\n\nc\n"),
    "a heading with a living subsection": (
        "# A\n\na\n\n## B\n\nb\n",
        ["a"],
        "# A\n\n## B\n\nb\n",
    ),
    "a heading that never had a clause": ("# A\n\n# B\n\nb\n\nc\n", ["c"], "# A\n\n# B\n\nb\n"),
    "an empty subsection of an emptied section": (
        "# A\n\na\n\n## B\n\n# C\n\nc\n",
        ["a"],
        "# C\n\nc\n",
    ),
    "a table row": (
        "| a |\n|---|\n| 1 |\n| 2 |\n",
        ["| 1 |"],
        "| a |\n|---|\n| 2 |\n",
    ),
    "an emptied table": ("A.\n\n| a |\n|---|\n| 1 |\n\nB.\n", ["| 1 |"], "A.\n\nB.\n"),
    "a neighbour of a quoted line": ("> a\n>\n> b\n>\n> c\n", ["b"], "> a\n>\n> c\n"),
    "a fence that would fall into a list": (
        "- a\n\nBetween.\n\n  ```\ncode\n```\n",
        ["Between."],
        "- a\n\n```\ncode\n```\n",
    ),
    "a rule behind a marker": ("- a\n\n  ---\n\n  b\n", ["a"], "- b\n"),
    "text in invented tags": (
        "<HOLD-ON>\nAsk.\nWait.\n</HOLD-ON>\n\nEnd.\n",
        ["Ask."],
        "<HOLD-ON>\nWait.\n</HOLD-ON>\n\nEnd.\n",
    ),
    "code that parted a rule from a paragraph": (
        "One. Run:\n\n    x\n---\n",
        ["Run:\n\n    x"],
        "One.\n\n---\n",
    ),
    "a paragraph in front of a table": (
        "Ask. | x\n| b |\n|---|\n| 1 |\n",
        ["Ask."],
        "| x\n\n| b |\n|---|\n| 1 |\n",
    ),
    "code behind invented tags": (
        "<HOLD-ON>\nAsk.\nGo.\n</HOLD-ON>\n\n    x\n\nEnd.\n",
        ["<HOLD-ON>\nAsk.\nGo.\n</HOLD-ON>\n\n    x"],
        "End.\n",
    ),
    "emptied tags": ("<HOLD-ON>\nAsk.\n</HOLD-ON>\n\nEnd.\n", ["Ask."], "End.\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_reduced_skill(case: str) -> None:
    body, texts, expected = CASES[case]
    assert without(body, *texts) == expected


def test_windows_line_ends_stay() -> None:
    data = (HEAD + "A.\n\n- b\n\nC.\n").replace("\n", "\r\n").encode()
    document = parse(data)
    assert render(document, ["c002"]) == data.replace(b"- b\r\n\r\n", b"")


def test_nothing_deleted_is_the_file() -> None:
    data = (HEAD + "\n\n  A.  \n\n\n\nB").encode()
    assert render(parse(data), []) == data


def test_an_unknown_clause_is_refused() -> None:
    with pytest.raises(InputError, match="c009"):
        render(parse((HEAD + "A.\n").encode()), ["c009"])


def test_a_body_that_cannot_be_cut_is_one_clause_and_says_so() -> None:
    body = "-  a\n\n     -   b\n\n         c\n\nZ.\n"
    document = parse((HEAD + body).encode())
    assert [clause.text for clause in document.clauses] == [body.strip()]
    assert "one clause" in document.warnings[0]
