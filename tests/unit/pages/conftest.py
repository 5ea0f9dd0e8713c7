"""Finished runs made by hand: real bundles and a real certifier, invented outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from retire.certify.joining import Records
from retire.domain.evidence import Evidence
from retire.domain.trace import NOT_REACHED
from retire.matrix import Protocol
from retire.reduce import Strategy
from retire.runner.reducing import FoundReduction, KeptReduction
from retire.verify.run import SealedRun
from retire.wiring import Finished, Request, prepare
from tests.made_traces import REFUSES, door, made_row, made_trace, proposes, seen

PANEL = Path(__file__).parents[3] / "bundles" / "panel"


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


class _Rows(list):
    """Trace rows in memory, with what a trace file says of them."""

    outcome_root, record_root = "sha256:00", "sha256:01"

    @property
    def outcomes(self):
        return [row.body.outcome() for row in self]

    row = list.__getitem__


class _MadeRun(SealedRun):
    """A sealed run without a folder."""

    def __init__(self, prepared, bundles, rows, deleted, abandoned, findings):
        self.folder, self.plan, self.bundles = prepared.folder, prepared.plan, bundles
        self.traces = _Rows(rows)
        attempts = {row.body.attempt: "audit/x" for row in rows} | abandoned
        self.records = Records(self.traces, {}, {}, (), attempts)
        self.findings, self.untraced = findings, ()
        self.reductions = {
            (deployment, key): KeptReduction(_found(deleted(bundle)), None, None)
            for deployment in prepared.plan.protocol.deployments
            for key, bundle in bundles.items()
        }


def _found(deleted):
    return FoundReduction(
        given=False, strategy=Strategy.HALVING, deleted=tuple(deleted), trials=7, pass_trials=7,
        verification_trials=0, allowed_losses=0, margin_binding=False, vacuous=False,
        non_monotone=(),
    )  # fmt: skip


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
        abandoned=(),
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
        rows = [
            made_row(made_trace(cell, *stages, attempt=f"attempt{number}"), number)
            for number, cell in enumerate(prepared.plan.cells, start=1)
            if (stages := says(cell)) is not None
        ]
        run = _MadeRun(prepared, loaded, rows, deleted, dict(abandoned), findings)
        evidence = Evidence.SIMULATED
        identities = {key: item.identity for key, item in prepared.deployments.items()}
        seconds = {"reduce": 1.0, "matrix": 2.0, "certify": 0.5}
        return Finished(run, run.certify(identities, evidence, 0), evidence, {}, seconds)

    return make
