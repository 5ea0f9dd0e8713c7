"""Figures of the code, of this tree and of others beside it.

    python -m tests.architecture.figures [FOLDER ...]

Counted are the Python files of ``retire``, ``sink``, ``observer``, ``counterfactuals``,
``hardware``, ``bundles``, ``scripts`` and ``deploy``; tests are not. What each row counts:

- *lines*: lines that are not blank. *Lines of code*: of these, without docstrings (any statement
  that is a bare string) and without imports; comments count.
- *untyped annotations*: each ``dict[str, Any]``, ``Mapping[str, Any]`` and
  ``MutableMapping[str, Any]``, wherever it stands: in a signature, inside ``list[...]``, in an
  alias or in a ``cast``. *Any alone*: every other ``Any`` that is no import.
- *one importer*: modules that exactly one other module imports, type-only imports counted.
- *import circles*: groups of modules that reach each other by imports, type-only ones counted.
- *read-models of a run*: which classes hand on what a run left behind is a matter of judgement, so
  this row counts the names of a fixed list, ``READ_MODELS``, that a class of ``retire`` bears.
- *places that word a gate*: modules with a string (no docstring, no key of a dictionary or
  subscript) in which ``GATE_WORDS`` is found, or with both "open" and "shut" as whole strings.
- *over 450 lines*: modules of more than 450 lines, blank ones counted.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from tests.architecture.sources import circles, importers, imports_among, sources_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.architecture.sources import Source

ROOT = Path(__file__).parents[2]
COUNTED = (
    "retire",
    "sink",
    "observer",
    "counterfactuals",
    "hardware",
    "bundles",
    "scripts",
    "deploy",
)
UNTYPED = {"dict", "Mapping", "MutableMapping"}
READ_MODELS = {
    "RunFolder",
    "Run",
    "Finished",
    "Examined",
    "StoredCells",
    "OpenedRun",
    "Review",
    "Judged",
    "Told",
    "Report",
    "ListedRun",
    "RunRow",
    # The one that is to follow them.
    "SealedRun",
}
GATE_WORDS = re.compile(
    r"\b(?:utility|authority) gate|\b(?:both|the) gates?\b|\bheadroom\b", re.IGNORECASE
)


def figures_of(root: Path) -> dict[str, str]:
    """Return the figures of a tree, by row."""
    sources = sources_of(root, *COUNTED)
    graph = imports_among(sources)
    single = sum(len(found) == 1 for found in importers(graph).values())
    untyped = [_untyped(source) for source in sources]
    return {
        "modules": f"{len(sources):,}",
        "lines": f"{sum(len(_filled(source)) for source in sources):,}",
        "lines of code": f"{sum(map(_code, sources)):,}",
        "untyped annotations": f"{sum(maps for maps, _ in untyped):,}",
        "Any alone": f"{sum(alone for _, alone in untyped):,}",
        "one importer": f"{single:,} ({single / max(len(sources), 1):.0%})",
        "import circles": f"{len(circles(graph)):,}",
        "read-models of a run": f"{len(_read_models(sources)):,}",
        "places that word a gate": f"{sum(map(words_a_gate, sources)):,}",
        "over 450 lines": f"{sum(source.lines > 450 for source in sources):,}",
    }


def _filled(source: Source) -> set[int]:
    return {at for at, line in enumerate(source.text.splitlines(), 1) if line.strip()}


def _code(source: Source) -> int:
    left = _filled(source)
    for node in source.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) or _bare_string(node):
            left.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(left)


def _bare_string(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _untyped(source: Source) -> tuple[int, int]:
    """Count mappings to Any, and what Any there is beside them."""
    nodes = list(source.nodes)
    for node in source.nodes:
        # A type in quotes, as in a cast; other strings have no subscript of this kind.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "Any" in node.value:
            nodes.extend(_quoted(node.value))
    maps = sum(map(_is_map_to_any, nodes))
    names = sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)
    return maps, names - maps


def _quoted(text: str) -> Iterator[ast.AST]:
    try:
        yield from ast.walk(ast.parse(text, mode="eval"))
    except SyntaxError:
        return


def _is_map_to_any(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in UNTYPED
        and isinstance(node.slice, ast.Tuple)
        and [getattr(item, "id", None) for item in node.slice.elts] == ["str", "Any"]
    )


def _read_models(sources: Sequence[Source]) -> set[str]:
    return READ_MODELS & {
        node.name
        for source in sources
        if source.place.startswith("retire/")
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
    }


def words_a_gate(source: Source) -> bool:
    """Return whether a module holds a sentence or word about a gate, keys and docstrings aside."""
    aside: set[int] = set()
    for node in source.nodes:
        if isinstance(node, ast.Dict):
            aside.update(id(key) for key in node.keys)
        elif isinstance(node, ast.Subscript):
            aside.add(id(node.slice))
        elif _bare_string(node):
            aside.add(id(node.value))
    strings = {
        node.value
        for node in source.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in aside
    }
    return {"open", "shut"} <= strings or any(map(GATE_WORDS.search, strings))


def show(columns: Mapping[str, Mapping[str, str]]) -> None:
    """Print the figures: a table on a terminal, plain columns into a file or a pipe."""
    console = Console()
    rows = next(iter(columns.values()))
    if console.is_terminal:
        table = Table("", *columns)
        for row in rows:
            table.add_row(row, *(column[row] for column in columns.values()))
        console.print(table)
        return
    for row in ["", *rows]:
        cells = [column[row] if row else name for name, column in columns.items()]
        print(f"{row:<26}", *(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    trees = {"this tree": ROOT, **{name: Path(name) for name in sys.argv[1:]}}
    show({name: figures_of(root.resolve()) for name, root in trees.items()})
