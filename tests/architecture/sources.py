"""The Python files of a tree, each read and parsed once, and who imports whom."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Source:
    """One file: its place below the root, its text, and every node of its tree."""

    path: Path
    place: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed file."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The tree, flat."""
        return tuple(ast.walk(self.tree))

    @property
    def lines(self) -> int:
        """How many lines the file has."""
        return self.text.count("\n")

    @property
    def module(self) -> str:
        """The name under which the file is imported."""
        return self.place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def imported(self) -> Iterator[str]:
        """Name what the file imports, in functions and for types too, as far as it can be read."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (item.name for item in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield from (f"{node.module}.{item.name}" for item in node.names)


@cache
def sources_of(root: Path, *folders: str) -> tuple[Source, ...]:
    """Return the Python files below some folders of a tree, in order; read once a process."""
    paths = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    return tuple(
        Source(path, path.relative_to(root).as_posix(), path.read_text("utf-8")) for path in paths
    )


def imports_among(sources: tuple[Source, ...]) -> dict[str, set[str]]:
    """Return which of the modules each module imports, itself left out."""
    known = {source.module for source in sources}
    graph: dict[str, set[str]] = {}
    for source in sources:
        found = {name if name in known else name.rpartition(".")[0] for name in source.imported()}
        graph[source.module] = (found & known) - {source.module}
    return graph


def importers(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Turn imports round: who imports each module."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module, imported in graph.items():
        for name in imported:
            found[name].add(module)
    return dict(found)


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that reach each other: the sizes above one, sorted."""
    reached = {module: _reach(graph, module) for module in graph}
    groups = {
        tuple(sorted({other for other in reached[module] if module in reached[other]}))
        for module in graph
        if module in reached[module]
    }
    return sorted(map(list, groups))


def _reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    open_ends = list(graph[start])
    while open_ends:
        module = open_ends.pop()
        if module not in found:
            found.add(module)
            open_ends.extend(graph[module])
    return found
