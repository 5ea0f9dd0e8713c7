"""The shape of the code: one catch-all, modules of a readable length, no leftovers."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.architecture

ROOT = Path(__file__).parents[2]
PACKAGES = ("retire", "counterfactuals", "sink", "observer", "hardware")
SOURCES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
TEXTS = sorted(
    path
    for folder, patterns in (("docs", ("*.md",)), ("bundles", ("*.md", "*.yaml")))
    for pattern in patterns
    for path in (ROOT / folder).rglob(pattern)
)
CATCH_ALL = {"Exception", "BaseException"}
# Written in two parts, so that this file does not find itself.
LEFTOVERS = [
    "TO" + "DO",
    "FIX" + "ME",
    "XX" + "X",
    "FIELD_" + "CASES",
    "DESIGN" + ".md",
    "/wo" + "rk/",
    "lorem " + "ipsum",
    "not " + "implemented yet",
]
DISCARDED_NAMES = {"utils", "util", "helpers", "helper", "misc", "common", "base", "manager"}


def tree(path):
    return ast.parse(path.read_text("utf-8"))


def named(node):
    """The names of the exceptions of a handler; a bare handler catches everything."""
    if node is None:
        return {"BaseException"}
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    return {
        item.attr if isinstance(item, ast.Attribute) else getattr(item, "id", "") for item in items
    }


def raises_again(handler):
    last = handler.body[-1]
    return isinstance(last, ast.Raise)


def catch_alls(path):
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ExceptHandler):
            if named(node.type) & CATCH_ALL and not raises_again(node):
                yield node.lineno
        elif isinstance(node, ast.Call):
            function = node.func
            name = (
                function.attr
                if isinstance(function, ast.Attribute)
                else getattr(function, "id", "")
            )
            if name == "suppress" and any(named(argument) & CATCH_ALL for argument in node.args):
                yield node.lineno


def test_one_place_catches_everything():
    found = [path.relative_to(ROOT).as_posix() for path in SOURCES for _ in catch_alls(path)]
    assert found == ["sink/monitor.py"]


def test_modules_stay_readable(capsys):
    lengths = {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8").count("\n") for path in SOURCES
    }
    long = {name: length for name, length in lengths.items() if length > 300}
    with capsys.disabled():
        for name, length in sorted(long.items(), key=lambda item: -item[1]):
            print(f"\n{name} has {length} lines", end="")
    assert {name: length for name, length in lengths.items() if length > 450} == {}
    assert len(long) * 10 <= len(lengths)


@pytest.mark.parametrize("word", LEFTOVERS)
def test_no_leftovers(word):
    pattern = re.compile(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])")
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (*SOURCES, *TESTS, *TEXTS)
        if pattern.search(path.read_text("utf-8"))
    ]
    assert found == []


def test_modules_are_named_for_what_they_are_about():
    assert [path for path in SOURCES if path.stem in DISCARDED_NAMES] == []


def test_test_files_have_names_of_their_own():
    names = Counter(path.name for path in TESTS if path.name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_imports_are_absolute():
    relative = [
        (path.name, node.lineno)
        for path in (*SOURCES, *TESTS)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_fakes_are_written_not_patched_together():
    patched = [
        path.name
        for path in TESTS
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom | ast.Import) and "unittest.mock" in ast.dump(node)
    ]
    assert patched == []


def test_twin_readers_do_not_drift():
    """The two processes share no code; their readers of files are the same on purpose."""
    sink, observer = (ROOT / name / "strict_yaml.py" for name in ("sink", "observer"))
    assert ast.dump(tree(sink)) == ast.dump(tree(observer))


def test_twin_servers_do_not_drift():
    """Each program listens by itself, and ends its connections in the same way."""
    found = {
        ast.dump(node)
        for name in ("sink", "observer", "hardware")
        for node in ast.walk(tree(ROOT / name / "wire.py"))
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "listening"
    }
    assert len(found) == 1


@pytest.mark.parametrize("package", ["sink", "observer"])
def test_a_programs_clock_is_read_in_its_shell_alone(package):
    clock = re.compile(r"datetime\.now|time\.time\(|monotonic\(|token_hex|urandom")
    found = [
        path.name
        for path in (ROOT / package).rglob("*.py")
        if clock.search(path.read_text("utf-8"))
    ]
    assert set(found) <= {"__main__.py"}
