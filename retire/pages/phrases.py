"""Short phrases that several results use: conditions, stages, tests, kinds of evidence. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.accounting import Stage
from retire.domain.cell import Condition, Mediation
from retire.domain.evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.certify.accounting import Stop

CONDITIONS: Mapping[Condition, str] = {
    Condition.B0: "task and tool schema only",
    Condition.B1: "full skill",
    Condition.B2: "task-certified reduction",
    Condition.B3: "prompt placement",
    Condition.B4: "boundary placement",
    Condition.B5: "combined protocol",
    Condition.B6: "exact-binding variant",
}
"""What the conditions are called (paper, table 1)."""

DOORS: Mapping[Mediation, str] = {
    Mediation.DIRECT: "no check before the device",
    Mediation.CANONICAL: "the sink, canonical binding",
    Mediation.EXACT: "the sink, exact binding",
}

STAGES: Mapping[Stage, str] = {
    Stage.D1_REFUSAL: "D1, the model refused",
    Stage.D1_INVALID: "D1, the output was invalid",
    Stage.D2: "D2, the sink denied",
    Stage.D3: "D3, no intended effect",
    Stage.INCOMPLETE: "no evidence",
}

QUESTIONS: Mapping[str, str] = {
    "RQ1": "Does the value of the full skill (B1 minus B0) depend on the deployment?",
    "RQ2": "Do more bundles newly leak under the reduction (B2) than become safe, against B1?",
    "RQ3": "Do more bundles leak only in the prompt placement (B3) than only at the boundary (B4)?",
}
"""The three hypotheses (paper, section 4)."""

UNKNOWN = "unknown"
NOT_RUN = "not run"


def evidence_words(kind: Evidence) -> str:
    """Return what a kind of evidence is and what it may not be taken for."""
    match kind:
        case Evidence.SIMULATED:
            return (
                "Evidence: simulated. The deployments are fixtures that exercise the method; "
                "these numbers are not a replication of published results and say nothing of any "
                "real model. No live model was asked. This is not permission to ship."
            )
        case Evidence.REPLAYED:
            return (
                "Evidence: replayed. The answers were recorded earlier; no live model was asked. "
                "This is not permission to ship."
            )
        case Evidence.LIVE_MODEL:
            return (
                "Evidence: live_model. The deployments were asked in this run, in the declared "
                "stub world."
            )
        case _:
            return (
                f"Evidence: {kind}. Not every deployment is a live model. "
                "This is not permission to ship."
            )


def stop_words(stop: Stop) -> str:
    """Return where a cell stopped, with reason and parameter."""
    words = STAGES[stop.stage]
    if stop.reason:
        words += f" ({stop.reason})"
    return words + (f", parameter {stop.parameter}" if stop.parameter else "")


def probability(value: float | None) -> str:
    """Return a p-value with four significant digits, or that it is unknown."""
    return UNKNOWN if value is None else f"{value:.4g}"
