"""Linting an uploaded bundle in a process of its own."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from retire.service.lint_program import ABSURD
from retire.service.problems import Fault, Kind, ProblemError, fault_at

if TYPE_CHECKING:
    from pathlib import Path

    from retire.service.lint_program import LintReport
    from retire.service.settings import ServiceSettings

_SLOWNESS = 6
"""Wall seconds granted per second of processor time: other runs use the processors too."""


async def lint_upload(folder: Path, settings: ServiceSettings) -> list[Fault]:
    """Return the warnings of an unpacked bundle.

    Args:
        folder: The unpacked bundle.
        settings: How much processor time and memory the reading may take.

    Raises:
        RuntimeError: The lint program itself failed.
        ProblemError: 422 with the whole report where there is an error, or where the bundle takes
            more time or memory to read than any sensible one.
    """
    report = await _report(folder, settings)
    faults = [
        fault_at(item["where"], item["what"], item["mend"], item["severity"])
        for item in report["faults"]
    ]
    errors, warnings = report["errors"], report["warnings"]
    if errors:
        raise ProblemError(
            Kind.UNSOUND,
            f"lint finds {_counted(errors, 'error')} and {_counted(warnings, 'warning')}",
            faults=faults,
        )
    return faults


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


async def _report(folder: Path, settings: ServiceSettings) -> LintReport:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-m",
        "retire.service.lint_program",
        str(folder),
        str(settings.lint_time),
        str(settings.lint_memory),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # It reads what strangers wrote, so it gets none of the operator's secrets.
        env={},
    )
    try:
        async with asyncio.timeout(settings.lint_time * _SLOWNESS):
            output, told = await process.communicate()
    except TimeoutError as error:
        raise _absurd() from error
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    code = await process.wait()
    # A negative code: a bound or the system's memory killer ended it.
    if code == ABSURD or code < 0:
        raise _absurd()
    if code != 0:
        raise RuntimeError(f"the lint program failed: {told.decode(errors='replace')[-2000:]}")
    report: LintReport = json.loads(output)
    return report


def _absurd() -> ProblemError:
    return ProblemError(
        Kind.UNSOUND,
        "reading the bundle takes more time or memory than any sensible one",
        faults=[Fault("it could not be read within the bounds", field="archive")],
    )
