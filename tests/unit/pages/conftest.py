"""Finished runs made by hand: real bundles and a real certifier, invented outcomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from retire.certify.certificate import Surroundings
from retire.certify.certifying import Run, certify, licensing_cells, placements
from retire.certify.hypotheses import run_hypotheses
from retire.certify.joining import Evidence
from retire.domain.trace import SCHEMA, cell_json, outcome_of
from retire.matrix import Protocol
from retire.wiring import Finished, Request, prepare

PANEL = Path(__file__).parents[3] / "bundles" / "panel"

REFUSES = {"outcome": "refusal", "rule": "", "text": "a rule is not met"}
BREAKS = {"outcome": "invalid", "rule": "not_json", "text": "no object"}
NOT_REACHED = {
    "outcome": "not_reached", "basis": "", "reason": "", "detail": "", "parameter": "",
    "predicates": {}, "record": None, "act": None,
}  # fmt: skip


def proposes(tool="tool", **arguments):
    return {"outcome": "proposal", "rule": "", "tool": tool, "arguments": arguments}


def door(outcome, **fields):
    return {**NOT_REACHED, "outcome": outcome, **fields}


def seen(*, intended=False, protected=False, complete=True):
    return {
        "complete": complete, "intended": intended, "protected": protected,
        "evidence_class": "target_state_read", "reason": "",
    }  # fmt: skip


def _obedient(cell):
    """Acts when authorized, refuses otherwise; the reduction B2 leaks at the first repetition."""
    if cell.authorized:
        way = "unmediated" if str(cell.condition) in {"B0", "B1", "B2", "B3"} else "allow"
        return proposes(), door(way, basis="authority"), seen(intended=True)
    if str(cell.condition) == "B2" and cell.repetition == 1:
        return proposes(), door("unmediated"), seen(intended=True, protected=True)
    return REFUSES, NOT_REACHED, seen()


@pytest.fixture
def obedient():
    """Return the default behaviour of :func:`build`."""
    return _obedient


@pytest.fixture
def build(tmp_path):
    """Return a maker of finished runs; ``says`` maps a cell to its stages, or None for no row."""

    def make(
        says=_obedient,
        *,
        bundles=("ACC_L01", "PRV_L05"),
        deployments=("plain", "eager"),
        conditions=("B1", "B2", "B4"),
        deleted=lambda bundle: [clause.id for clause in bundle.skill.clauses],
        change=lambda bundle: bundle,
        abandoned=None,
        findings=(),
        name="run",
        **declared,
    ) -> Finished:
        protocol = Protocol(
            schema="retire.protocol/v1",
            name="made",
            seed=1,
            bundles=bundles,
            deployments=deployments,
            conditions=conditions,
            **declared,
        )
        folders = {key: PANEL / key for key in bundles}
        prepared = prepare(Request(protocol, folders, tmp_path / name))
        loaded = {key: change(bundle) for key, bundle in prepared.bundles.items()}
        prepared = replace(prepared, bundles=MappingProxyType(loaded))
        rows = _rows(prepared, says)
        attempts = {row["body"]["attempt"]: "audit/x" for row in rows} | (abandoned or {})
        evidence = Evidence(rows, {}, {}, [], attempts)
        reductions = {
            (deployment, key): {
                "given": False, "deleted": list(deleted(bundle)), "trials": 7,
            }
            for deployment in deployments
            for key, bundle in loaded.items()
        }  # fmt: skip
        run = Run(
            plan=prepared.plan,
            bundles=loaded,
            identities={key: item.identity for key, item in prepared.deployments.items()},
            outcomes=[outcome_of(row["body"]) for row in rows],
            deleted={pair: tuple(value["deleted"]) for pair, value in reductions.items()},
            licensing={key: licensing_cells(bundle) for key, bundle in loaded.items()},
        )
        given = Surroundings(
            prepared.plan.statement, prepared.plan.digest, "panel", "simulated", "stub",
            "sha256:00", "sha256:01", {}, findings, 0,
        )  # fmt: skip
        return Finished(
            prepared=prepared,
            evidence=evidence,
            run=run,
            findings=findings,
            certified=tuple(certify(run, placement, given) for placement in placements(run)),
            hypotheses=run_hypotheses(run.outcomes, prepared.plan.cells, protocol),
            reductions=reductions,
            incomplete={},
            outcome_root="sha256:00",
            record_root="sha256:01",
            seconds={"reduce": 1.0, "matrix": 2.0, "certify": 0.5},
        )

    return make


def _rows(prepared, says):
    rows = []
    for number, cell in enumerate(prepared.plan.cells, start=1):
        stages = says(cell)
        if stages is None:
            continue
        d1, d2, d3 = stages
        body = {
            "schema": SCHEMA, "cell": cell_json(cell), "attempt": f"attempt{number}",
            "d1": d1, "d2": d2, "d3": d3, "snapshot": "sha256:aa",
        }  # fmt: skip
        rows.append({"seq": number, "prev": "", "hash": f"sha256:{number}", "body": body})
    return rows
