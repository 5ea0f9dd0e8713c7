"""``python -m retire.service.lint_program FOLDER SECONDS BYTES``: lint one bundle, bounded.

An uploaded bundle is hostile until it is read. It is read here, in a process that can be ended,
with bounds on processor time and memory; the report goes to standard output as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import TypedDict

from retire.bundle import FILES
from retire.bundle.lint import Linter, Severity
from retire.deployments.simulated import rule_holds

FAULTS_SHOWN = 200
"""Most faults of a report; errors come first."""

MESSAGE_LIMIT = 1000
"""Most characters of one message: some quote the file."""

ABSURD = 3
"""Exit code where the bundle needs more than its bounds."""


class LintReport(TypedDict):
    """How many errors and warnings there are; severity, where, what and mend of the first."""

    errors: int
    warnings: int
    faults: list[dict[str, str]]


def main(arguments: list[str]) -> int:
    """Lint the folder and print the report; return the exit code."""
    folder, seconds, size = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        report = lint(folder)
    except (MemoryError, RecursionError):
        return ABSURD
    json.dump(report, sys.stdout)
    return 0


def lint(folder: Path) -> LintReport:
    """Return how many errors and warnings a bundle folder has, and the first of them."""
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).is_file()}
    faults = Linter(files, folder.name, rule_holds).run()
    errors = [fault for fault in faults if fault.severity is Severity.ERROR]
    warnings = [fault for fault in faults if fault.severity is not Severity.ERROR]
    shown = [
        {
            "severity": str(fault.severity),
            "where": fault.where,
            "what": fault.what[:MESSAGE_LIMIT],
            "mend": fault.mend[:MESSAGE_LIMIT],
        }
        for fault in [*errors, *warnings][:FAULTS_SHOWN]
    ]
    return {"errors": len(errors), "warnings": len(warnings), "faults": shown}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
