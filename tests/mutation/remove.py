"""Leave out one guard at a time, in copies of the repository: ``python -m tests.mutation.remove``.

Prints, per module, how many removals a test noticed, then each one that none did.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import queue
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Read here once for every mutant's process.
import pytest
import rfc8785  # noqa: F401

from tests.mutation.config import LEFT_OUT, MODULES
from tests.mutation.removals import Removal, removals

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
"""After this long the tests hang on a mutant; printed as a verdict of its own."""
NEAREST = {
    "sink": (
        "tests/unit/sink/test_mutants_truth.py",
        "tests/unit/sink/test_mutants_door.py",
        "tests/unit/sink/test_mutants_record.py",
        "tests/unit/sink",
    ),
    "counterfactuals": ("tests/unit/counterfactuals",),
    "retire": (
        "tests/unit/certify/test_mutants_gates.py",
        "tests/unit/certify",
        "tests/unit/domain",
    ),
}
"""The tests most likely to notice, first."""


def main() -> None:
    """Remove, test, and print what no test noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="modules whose path contains this")
    given = parser.parse_args()
    found = [
        item
        for module in MODULES
        if given.only in module
        for item in removals(module, (ROOT / module).read_text("utf-8"))
    ]
    with tempfile.TemporaryDirectory(prefix="removals-") as folder:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(given.workers):
            copy = Path(folder) / str(number)
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
            copies.put(copy)
        with ThreadPoolExecutor(given.workers) as pool:
            # By the same path as the mutants: unchanged modules must survive.
            whole = [
                Removal(module, 0, "nothing", (ROOT / module).read_text("utf-8"))
                for module in MODULES
            ]
            if set(pool.map(lambda item: _judge(item, copies), whole)) != {"survived"}:
                sys.exit("the tests fail although nothing was left out")
            verdicts = list(pool.map(lambda item: _judge(item, copies), found))
    _report(found, verdicts)


def _judge(removal: Removal, copies: queue.SimpleQueue[Path]) -> str:
    copy = copies.get()
    place = copy / removal.module
    original = place.read_bytes()
    try:
        place.write_text(removal.source, "utf-8")
        return _verdict(copy, NEAREST[removal.module.partition("/")[0]])
    finally:
        place.write_bytes(original)
        copies.put(copy)


def _verdict(copy: Path, tests: tuple[str, ...]) -> str:
    process = multiprocessing.get_context("fork").Process(target=_test, args=(copy, tests))
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        return "timeout"
    if process.exitcode == 0:
        return "survived"
    # Anything but a failed test, such as no test at all, says nothing about the mutant.
    return "killed" if process.exitcode in {1, 2} else f"exit {process.exitcode}"


def _test(copy: Path, tests: tuple[str, ...]) -> None:
    """Run tests in a copy; a fork, so that the libraries need not be read again."""
    os.chdir(copy)
    sys.path[:] = [str(copy), *(place for place in sys.path if place not in {"", str(ROOT)})]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    sys.dont_write_bytecode = True
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    # A fork of a worker thread ends with 1 whatever the tests said, unless it ends here.
    os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests])))


def _report(found: list[Removal], verdicts: list[str]) -> None:
    pairs = list(zip(found, verdicts, strict=True))
    for module in MODULES:
        counted = Counter(verdict for item, verdict in pairs if item.module == module)
        if counted:
            listed = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counted.items()))
            print(f"{module}: {counted.total()} removals, {listed}")
    for item, verdict in pairs:
        if verdict != "killed":
            print(f"\n{item.module}:{item.line} {verdict}\n  {item.what}")


if __name__ == "__main__":
    main()
