"""Where a run of a service stands."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETE = "complete"
    """Every declared cell has evidence and the certificate is signed."""
    INCOMPLETE = "incomplete"
    """It ended without evidence for some cells; the certificate says so."""
    FAILED = "failed"
    """It could not run at all; ``error`` says why and how to mend it."""
    CANCELLED = "cancelled"

    @property
    def going_on(self) -> bool:
        """Whether it may still change by itself."""
        return self in {RunState.QUEUED, RunState.RUNNING}


OPEN_STATES = tuple(state for state in RunState if state.going_on)
"""The states of a run that goes on."""
