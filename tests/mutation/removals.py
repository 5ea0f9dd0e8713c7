"""The changes that mutmut does not make: what the code guards against is left out, one at a time.

An ``if`` that never holds, a statement that is never reached, an exception that is never caught,
an integer of a module one too large, a pattern that no longer ends where the text ends. Each
mutant is a whole module, to be written in a copy of the repository.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Removal:
    """One changed module; ``what`` says what was left out of ``line``."""

    module: str
    line: int
    what: str
    source: str


def removals(module: str, source: str) -> list[Removal]:
    """Return every removal of a module, in the order of the source."""
    found: list[Removal] = []
    number = 0
    while True:
        tree = ast.parse(source)
        changes = _changes(tree)
        if number == len(changes):
            return sorted(found, key=lambda removal: removal.line)
        line, what, change = changes[number]
        change()
        found.append(Removal(module, line, what, ast.unparse(tree) + "\n"))
        number += 1


Change = tuple[int, str, Callable[[], None]]


def _changes(tree: ast.Module) -> list[Change]:
    changes: list[Change] = []
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            changes += _constants(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for inner in ast.walk(node):
                changes += _inside(inner)
    return changes


def _constants(node: ast.Assign | ast.AnnAssign) -> list[Change]:
    changes: list[Change] = []
    for item in ast.walk(node):
        if not isinstance(item, ast.Constant):
            continue
        if type(item.value) is int:
            what = f"{ast.unparse(node)}: {item.value} is one larger"
            changes.append((node.lineno, what, _setter(item, "value", item.value + 1)))
        elif isinstance(item.value, str) and item.value.endswith(r"\Z"):
            what = f"{ast.unparse(node)}: the end is open"
            changes.append((node.lineno, what, _setter(item, "value", item.value[:-2])))
    return changes


def _inside(node: ast.AST) -> list[Change]:
    never = ast.Constant(value=False)
    if isinstance(node, ast.If):
        what = f"never: if {ast.unparse(node.test)}"
        return [(node.lineno, what, _setter(node, "test", never))]
    if isinstance(node, ast.ExceptHandler):
        what = f"never caught: {ast.unparse(node.type) if node.type else 'anything'}"
        return [(node.lineno, what, _setter(node, "type", ast.Tuple(elts=[], ctx=ast.Load())))]
    changes: list[Change] = []
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(node, name, None)
        if not isinstance(statements, list):
            continue
        for index, item in enumerate(statements):
            if _has_effect(item):
                what = f"left out: {ast.unparse(item).splitlines()[0]}"
                # Not taken out: a generator stays one, and a body keeps a statement.
                unreached = ast.If(test=never, body=[item], orelse=[])
                changes.append((item.lineno, what, _placer(statements, index, unreached)))
    return changes


def _has_effect(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    return isinstance(node, ast.AugAssign)


def _setter(node: ast.AST, name: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, name, value)


def _placer(statements: list[ast.stmt], index: int, value: ast.stmt) -> Callable[[], None]:
    return lambda: statements.__setitem__(index, value)
