"""Puts the parts together: from a protocol and folders to a sealed, certified run."""

from retire.wiring.concluding import Finished, require_complete
from retire.wiring.preparing import Prepared, Request, load_by_path, prepare
from retire.wiring.running import execute, reduce_only
from retire.wiring.verification import (
    examine_run,
    heads_of,
    verify_certificate,
    verify_envelope,
)

__all__ = [
    "Finished",
    "Prepared",
    "Request",
    "examine_run",
    "execute",
    "heads_of",
    "load_by_path",
    "prepare",
    "reduce_only",
    "require_complete",
    "verify_certificate",
    "verify_envelope",
]
