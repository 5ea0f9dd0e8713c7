"""Read what mutmut left behind: each mutant's verdict, its line in the source and its change."""

from __future__ import annotations

import ast
import difflib
import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import dropwhile
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
        original = _body(lines, spans[f"{function}__mutmut_orig"])
        offset, before, after = _change(original, _body(lines, spans[short]))
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


def _body(lines: list[str], span: tuple[int, int]) -> list[str]:
    """Return a generated function from its ``def`` on, by one name whatever its number."""
    first, last = span
    body = [re.sub(r"__mutmut_(orig|\d+)(?=\()", "", line) for line in lines[first - 1 : last]]
    return list(dropwhile(lambda line: "def x" not in line, body))


def _change(original: list[str], mutated: list[str]) -> tuple[int, str, str]:
    """Return the offset of the first line that differs, and the lines before and after."""
    matcher = difflib.SequenceMatcher(None, original, mutated, autojunk=False)
    _, low, high, new_low, new_high = next(
        code for code in matcher.get_opcodes() if code[0] != "equal"
    )
    before = " ".join(line.strip() for line in original[low:high])
    after = " ".join(line.strip() for line in mutated[new_low:new_high])
    return low, before, after
