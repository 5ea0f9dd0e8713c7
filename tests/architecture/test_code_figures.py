"""The figures of a tree that is small enough to count by hand."""

from __future__ import annotations

import pytest

from tests.architecture.figures import figures_of, show

pytestmark = pytest.mark.architecture

FILES = {
    "retire/__init__.py": "",
    "retire/run.py": '''"""A run,
of two lines."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from retire.words import said

# A comment.
class Finished:
    """One that is over."""

    rows: list[dict[str, Any]]
    one: Any


def of(value):
    return cast("Mapping[str, Any]", value)
''',
    "retire/words.py": '''"""The utility gate, in a docstring."""

import retire.run


def said(words):
    return f"the authority gate is {words['headroom']}"
''',
    "sink/alone.py": "KEYS = {'headroom': 'open'}\n",
    "tests/test_run.py": "import retire.run\n",
}


@pytest.fixture
def tree(tmp_path):
    for place, text in FILES.items():
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def test_a_small_tree_is_counted(tree):
    assert figures_of(tree) == {
        "modules": "4",
        "lines": "17",
        "lines of code": "10",
        "untyped annotations": "2",
        "Any alone": "1",
        "one importer": "2 (50%)",
        "import circles": "1",
        "read-models of a run": "1",
        "places that word a gate": "1",
        "over 450 lines": "0",
    }


def test_trees_stand_side_by_side(tree, capsys):
    show({"this tree": figures_of(tree), "another": dict.fromkeys(figures_of(tree), "7")})
    heads, first, *_ = capsys.readouterr().out.splitlines()
    assert heads.split() == ["this", "tree", "another"]
    assert first.split() == ["modules", "4", "7"]
