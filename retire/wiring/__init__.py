"""Puts the parts together: from a protocol and folders to a sealed, certified run."""

from retire.wiring.concluding import Finished, missing_cells, require_complete
from retire.wiring.preparing import Prepared, Request, load_by_path, prepare
from retire.wiring.running import execute, reduce_only, stability_of
from retire.wiring.verification import RunVerifier, run_of

__all__ = [
    "Finished",
    "Prepared",
    "Request",
    "RunVerifier",
    "execute",
    "load_by_path",
    "missing_cells",
    "prepare",
    "reduce_only",
    "require_complete",
    "run_of",
    "stability_of",
]
