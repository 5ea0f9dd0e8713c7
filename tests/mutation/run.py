"""Run mutmut in a copy of the repository: ``python -m tests.mutation.run [--only GLOB]``.

Prints the verdicts per module, then every mutant that no test noticed, as file:line and change.
The work tree is never changed. Needs the dependency group ``mutation``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutation.config import LEFT_OUT, MODULES, settings
from tests.mutation.outcome import Mutant, mutants_of, totals

ROOT = Path(__file__).resolve().parents[2]
NOTICED = frozenset({"killed", "timeout", "segfault"})


def main() -> None:
    """Copy, mutate, test, and print what lives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants by name, such as sink.decision.*")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="work in this folder and keep it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = (given.keep or Path(folder)) / "repository"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
        table = (ROOT / "pyproject.toml").read_text("utf-8")
        _mutmut(copy, table + settings(), given.workers, [given.only] if given.only else [])
        _report(_all(copy))


def _mutmut(copy: Path, table: str, workers: int, names: list[str]) -> None:
    (copy / "pyproject.toml").write_text(table, "utf-8")
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(workers), *names]
    subprocess.run(command, cwd=copy, check=True, stdout=sys.stderr)


def _all(copy: Path) -> list[Mutant]:
    return [mutant for module in MODULES for mutant in mutants_of(copy, module)]


def _lives(mutant: Mutant) -> bool:
    return mutant.verdict not in {*NOTICED, "not checked"}


def _report(mutants: list[Mutant]) -> None:
    for module in MODULES:
        counted = totals([mutant for mutant in mutants if mutant.module == module])
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counted.items()))
        print(f"{module}: {counted.total()} mutants, {verdicts}")
    for mutant in filter(_lives, mutants):
        print(f"\n{mutant.module}:{mutant.line} {mutant.verdict} ({mutant.name})")
        print(f"  - {mutant.before}\n  + {mutant.after}")


if __name__ == "__main__":
    main()
