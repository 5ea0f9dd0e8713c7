"""``python -m retire.service.lint_program FOLDER SECONDS BYTES``: lint one bundle, bounded.

An uploaded bundle is hostile until it is read. It is read here, in a process that can be ended,
with bounds on processor time and memory; the report goes to standard output as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from retire.bundle import FILES
from retire.bundle.lint import Linter
from retire.deployments.simulated import read_rules


def reads(text: str, snapshot: bytes) -> bool | None:
    """Whether the simulated deployments find the rule satisfied; None where they read none."""
    readings = read_rules(text, json.loads(snapshot))
    if not readings:
        return None
    return all(reading.satisfied for reading in readings)


def main(arguments: list[str]) -> int:
    """Lint the folder and print the report."""
    folder, seconds, size = Path(arguments[0]), int(arguments[1]), int(arguments[2])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).is_file()}
    report = [
        {
            "severity": str(fault.severity),
            "where": fault.where,
            "what": fault.what,
            "mend": fault.mend,
        }
        for fault in Linter(files, folder.name, reads).run()
    ]
    json.dump(report, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
