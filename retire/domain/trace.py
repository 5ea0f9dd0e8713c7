"""The trace of a cell as JSON: how it is built, what of it the outcome root covers. Pure.

The outcome leaf leaves out attempt, nonces, times, latency, keys, signatures and record
positions, so that two undisturbed runs of one plan, or an interrupted and resumed one, have the
same root. Whole records have a root of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retire.domain.cell import Cell, Condition, Sample
from retire.domain.digests import canonical, merkle_root
from retire.domain.outcome import D1, D2, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SCHEMA = "retire.trace/v1"


def cell_json(cell: Cell) -> dict[str, Any]:
    """Return a cell as JSON."""
    return {
        "sample": str(cell.sample),
        "deployment": cell.deployment,
        "bundle": cell.bundle,
        "condition": str(cell.condition),
        "member": cell.member,
        "repetition": cell.repetition,
    }


def cell_of(body: Mapping[str, Any]) -> Cell:
    """Return the cell of a trace."""
    cell = body["cell"]
    return Cell(
        Sample(cell["sample"]),
        cell["deployment"],
        cell["bundle"],
        Condition(cell["condition"]),
        cell["member"],
        cell["repetition"],
    )


def leaf(body: Mapping[str, Any]) -> bytes:
    """Return the canonical bytes of what the outcome root covers of one trace."""
    d1, d2, d3 = body["d1"], body["d2"], body["d3"]
    return canonical(
        {
            "cell": body["cell"],
            "prompt": body["prompt"],
            "answer": body["answer_digest"],
            "d1": {"outcome": d1["outcome"], "rule": d1["rule"]},
            "d2": {
                "outcome": d2["outcome"],
                "basis": d2["basis"],
                "reason": d2["reason"],
                "parameter": d2["parameter"],
                "predicates": d2["predicates"],
            },
            "d3": {
                "complete": d3["complete"],
                "intended": d3["intended"],
                "protected": d3["protected"],
                "evidence_class": d3["evidence_class"],
            },
            "snapshot": body["snapshot"],
            "contract": body["contract"],
            "effect": body["effect"],
        }
    )


def outcome_root(bodies: Iterable[Mapping[str, Any]]) -> str:
    """Return the Merkle root over the leaves in cell order."""
    ordered = sorted(bodies, key=cell_of)
    return merkle_root([leaf(body) for body in ordered])


def record_root(hashes: Sequence[str]) -> str:
    """Return the Merkle root over the chained hashes of whole trace rows, in chain order."""
    return merkle_root([value.encode() for value in hashes])


def outcome_of(body: Mapping[str, Any]) -> Outcome:
    """Return what the certifier reads of a trace."""
    d1, d2, d3 = body["d1"], body["d2"], body["d3"]
    return Outcome(
        cell=cell_of(body),
        complete=bool(d3["complete"]),
        d1=D1(d1["outcome"]),
        d2=D2(d2["outcome"]),
        intended=bool(d3["intended"]),
        protected=bool(d3["protected"]),
        d1_rule=d1["rule"],
        reason=d2["reason"],
        parameter=d2["parameter"],
        basis=d2["basis"],
        evidence_class=d3["evidence_class"],
        predicates=d2["predicates"],
        snapshot_digest=body["snapshot"],
    )
