"""Linting an uploaded bundle in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from retire.service.problems import Fault, Kind, ProblemError, fault_at

if TYPE_CHECKING:
    from pathlib import Path

    from retire.service.settings import ServiceSettings

_FAULTS_SHOWN = 200
_SLOWNESS = 6
"""Wall seconds granted per second of processor time: other runs use the processors too."""


async def lint_upload(folder: Path, settings: ServiceSettings) -> list[Fault]:
    """Return the warnings of an unpacked bundle.

    Args:
        folder: The unpacked bundle.
        settings: How much processor time and memory the reading may take.

    Raises:
        ProblemError: 422 with the whole report where there is an error, or where the bundle takes
            more time or memory to read than any sensible one.
    """
    report = await _report(folder, settings)
    faults = [
        fault_at(item["where"], item["what"], item["mend"], item["severity"]) for item in report
    ]
    errors = sum(fault.severity == "error" for fault in faults)
    if errors:
        shown = sorted(faults, key=lambda fault: fault.severity != "error")[:_FAULTS_SHOWN]
        raise ProblemError(
            Kind.UNSOUND,
            f"lint finds {errors} error{'s' if errors > 1 else ''} and "
            f"{len(faults) - errors} warning{'s' if len(faults) - errors != 1 else ''}",
            faults=shown,
        )
    return faults


async def _report(folder: Path, settings: ServiceSettings) -> list[dict[str, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "retire.service.lint_program",
        str(folder),
        str(settings.lint_time),
        str(settings.lint_memory),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(settings.lint_time * _SLOWNESS):
            output, _ = await process.communicate()
    except TimeoutError as error:
        raise _absurd() from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode != 0:
        raise _absurd()
    report: list[dict[str, str]] = json.loads(output)
    return report


def _absurd() -> ProblemError:
    return ProblemError(
        Kind.UNSOUND,
        "reading the bundle takes more time or memory than any sensible one",
        faults=[Fault("it could not be read within the bounds", field="archive")],
    )
