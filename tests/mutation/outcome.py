"""Read what mutmut left behind: each mutant's verdict, its line in the source and its change."""

from __future__ import annotations

import ast
import difflib
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutmut.stats import status_by_exit_code

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function, and whether a test noticed it."""

    name: str
    module: str
    line: int
    before: str
    after: str
    verdict: str


def mutants_of(copy: Path, module: str) -> list[Mutant]:
    """Return the mutants of a module, in the order of the source."""
    mutated = copy / "mutants" / module
    verdicts = json.loads(mutated.with_name(mutated.name + ".meta").read_text("utf-8"))
    spans = json.loads(mutated.with_name(mutated.name + ".spans").read_text("utf-8"))["spans"]
    lines = mutated.read_text("utf-8").splitlines()
    starts = _starts((copy / module).read_text("utf-8"))
    found = []
    for name, code in verdicts["exit_code_by_key"].items():
        short = name.rpartition(".")[2]
        function = short.rpartition("__mutmut_")[0]
        first, last = spans[f"{function}__mutmut_orig"]
        original = lines[first - 1 : last]
        first, last = spans[short]
        offset, before, after = _change(original, lines[first - 1 : last])
        verdict = status_by_exit_code[code]
        found.append(Mutant(name, module, starts[function] + offset, before, after, verdict))
    return sorted(found, key=lambda mutant: mutant.line)


def totals(mutants: list[Mutant]) -> Counter[str]:
    """Count the verdicts."""
    return Counter(mutant.verdict for mutant in mutants)


def _starts(source: str) -> dict[str, int]:
    """Return the first line of each function, by the name that mutmut gives it."""
    starts = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            starts[f"x_{node.name}"] = node.lineno
        elif isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                    starts[f"x\u01c1{node.name}\u01c1{item.name}"] = item.lineno
    return starts


def _change(original: list[str], mutated: list[str]) -> tuple[int, str, str]:
    """Return the offset of the first line that differs, and the lines before and after.

    The first line is the name, which always differs.
    """
    matcher = difflib.SequenceMatcher(None, original[1:], mutated[1:], autojunk=False)
    for kind, low, high, new_low, new_high in matcher.get_opcodes():
        if kind != "equal":
            before = " ".join(line.strip() for line in original[low + 1 : high + 1])
            after = " ".join(line.strip() for line in mutated[new_low + 1 : new_high + 1])
            return low + 1, before, after
    return 0, original[0].strip(), mutated[0].strip()
