"""What every command shares: errors as one paragraph, progress for people and for logs."""

from __future__ import annotations

import sys
import textwrap
import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

    from rich.progress import TaskID

    from retire.domain.errors import RetireError

Result = TypeVar("Result")

_PLAIN_EVERY_SECONDS = 5.0

TITLES = {"reduce": "reducing skills", "matrix": "running cells", "stability": "asking twice"}


def say(text: str = "") -> None:
    """Print to standard output."""
    sys.stdout.write(text + "\n")


def say_error(error: RetireError) -> None:
    """Print an error as one paragraph: what, where, how to mend it."""
    text = textwrap.fill(
        f"error: {error}", width=100, break_long_words=False, break_on_hyphens=False
    )
    sys.stderr.write(text + "\n")


INTERRUPTED = 130
"""Exit code after an interrupt: 128 and the signal's number, as shells have it."""


def carry_out(work: Coroutine[Any, Any, Result]) -> Result:
    """Run work to its end; an interrupt stops it in order and says that nothing is lost.

    Raises:
        typer.Exit: The work was interrupted.
    """
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        sys.stderr.write(
            "stopped. Everything finished so far is stored: run the same command again to go on.\n"
        )
        raise typer.Exit(INTERRUPTED) from None


class LiveProgress(AbstractContextManager["LiveProgress"]):
    """A bar with time left on a terminal; a plain line every few seconds elsewhere."""

    def __init__(self, *, plain: bool) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._console = Console(stderr=True)
        self._plain = plain or not self._console.is_terminal
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=self._plain,
        )
        self._tasks: dict[str, TaskID] = {}
        self._done: dict[str, tuple[int, int | None]] = {}
        self._spoken = 0.0

    def __enter__(self) -> LiveProgress:  # noqa: PYI034  # typing.Self hides the port
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def begin(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins."""
        self._tasks[stage] = self._bar.add_task(
            TITLES.get(stage, stage), total=total, completed=done
        )
        self._done[stage] = (done, total)
        if self._plain:
            known = f" of {total}" if total is not None else ""
            self._line(f"{TITLES.get(stage, stage)}: {done}{known} done before")

    def advance(self, stage: str, note: str = "") -> None:
        """One more is finished."""
        del note
        self._bar.advance(self._tasks[stage])
        done, total = self._done[stage]
        self._done[stage] = (done + 1, total)
        if not self._plain:
            return
        now = time.monotonic()
        if done + 1 == total or now - self._spoken > _PLAIN_EVERY_SECONDS:
            self._spoken = now
            self._line(f"{TITLES.get(stage, stage)}: {done + 1} of {total}")

    def _line(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
