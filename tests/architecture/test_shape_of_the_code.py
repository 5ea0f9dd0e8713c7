"""The shape of the code: one catch-all, modules of a readable length, no leftovers."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.architecture.sources import sources_of

pytestmark = pytest.mark.architecture

ROOT = Path(__file__).parents[2]
PACKAGES = ("retire", "counterfactuals", "sink", "observer", "hardware")
SOURCES = sources_of(ROOT, *PACKAGES)
TESTS = sources_of(ROOT, "tests")
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for pattern in ("docs/**/*.md", "bundles/**/*.md", "bundles/**/*.yaml")
    for path in sorted(ROOT.glob(pattern))
}
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


def catch_alls(source):
    for node in source.nodes:
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
    found = [source.place for source in SOURCES for _ in catch_alls(source)]
    assert found == ["sink/monitor.py"]


def test_modules_stay_readable(capsys):
    lengths = {source.place: source.lines for source in SOURCES}
    long = {name: length for name, length in lengths.items() if length > 300}
    with capsys.disabled():
        for name, length in sorted(long.items(), key=lambda item: -item[1]):
            print(f"\n{name} has {length} lines", end="")
    assert {name: length for name, length in lengths.items() if length > 450} == {}
    assert len(long) * 10 <= len(lengths)


@pytest.mark.parametrize("word", LEFTOVERS)
def test_no_leftovers(word):
    pattern = re.compile(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])")
    texts = {source.place: source.text for source in (*SOURCES, *TESTS)} | TEXTS
    assert [place for place, text in texts.items() if pattern.search(text)] == []


def test_modules_are_named_for_what_they_are_about():
    assert [source.place for source in SOURCES if source.path.stem in DISCARDED_NAMES] == []


def test_test_files_have_names_of_their_own():
    names = Counter(source.path.name for source in TESTS if source.path.name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_imports_are_absolute():
    relative = [
        (source.place, node.lineno)
        for source in (*SOURCES, *TESTS)
        for node in source.nodes
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_fakes_are_written_not_patched_together():
    patched = [
        source.place
        for source in TESTS
        for node in source.nodes
        if isinstance(node, ast.ImportFrom | ast.Import) and "unittest.mock" in ast.dump(node)
    ]
    assert patched == []


def test_twin_readers_do_not_drift():
    """The two processes share no code; their readers of files are the same on purpose."""
    sink, observer = (
        ast.dump(source.tree) for source in SOURCES if source.path.name == "strict_yaml.py"
    )
    assert sink == observer


def test_twin_servers_do_not_drift():
    """Each program listens by itself, and ends its connections in the same way."""
    found = {
        ast.dump(node)
        for source in SOURCES
        if source.path.name == "wire.py"
        for node in source.nodes
        if isinstance(node, ast.AsyncFunctionDef) and node.name == "listening"
    }
    assert len(found) == 1


@pytest.mark.parametrize("package", ["sink", "observer"])
def test_a_programs_clock_is_read_in_its_shell_alone(package):
    clock = re.compile(r"datetime\.now|time\.time\(|monotonic\(|token_hex|urandom")
    found = {source.path.name for source in sources_of(ROOT, package) if clock.search(source.text)}
    assert found <= {"__main__.py"}
