"""``summary.json``: the numbers of a run for other programs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retire.certify.certificate import failed_gates
from retire.pages.counting import (
    Counts,
    audited,
    cell_counts,
    conditions_run,
    deletions,
    deployments,
    evidence_kind,
)

if TYPE_CHECKING:
    from retire.certify.certifying import Certified
    from retire.wiring import Finished

SCHEMA = "retire.summary/v1"

_TEST_KEYS = {"RQ1": ("p", "p_adjusted")}
_SIGN_KEYS = ("plus", "minus", "ties", "p", "p_adjusted")


def summary(finished: Finished) -> dict[str, Any]:
    """Return the summary, ``retire.summary/v1``.

    ``k/n`` counts authorized cells with the intended effect out of those with evidence;
    ``margin_pp`` is U(S') - U(S) in percentage points. None is a number that the run cannot give.
    """
    cells = cell_counts(finished)
    counts = Counts(finished)
    return {
        "schema": SCHEMA,
        "evidence": evidence_kind(finished),
        "cells": {
            "planned": cells.planned,
            "complete": cells.complete,
            "incomplete": cells.incomplete,
            "invalid_outputs": cells.invalid_outputs,
            "abandoned_attempts": cells.abandoned_attempts,
        },
        "deployments": {
            name: _deployment(finished, counts, name) for name in deployments(finished)
        },
        "tests": {
            name: {key: test.get(key) for key in _TEST_KEYS.get(name, _SIGN_KEYS)}
            for name, test in finished.hypotheses.tests.items()
        },
        "seconds": {name: round(value, 3) for name, value in finished.seconds.items()},
        "outcome_root": finished.outcome_root,
        "record_root": finished.record_root,
    }


def _deployment(finished: Finished, counts: Counts, name: str) -> dict[str, Any]:
    run = {item.label: counts.of([item.arm(name)]) for item in conditions_run(finished)}
    deleted = deletions(finished, name)
    return {
        "clauses": deleted.clauses,
        "deleted": deleted.deleted,
        "empty_reductions": deleted.empty,
        "reducer_trials": deleted.trials,
        "authorized": {label: arm.effect.of() for label, arm in run.items()},
        "protected_effects": {
            item.label: run[item.label].leaks.found for item in audited(finished)
        },
        "stages": {
            label: {
                "proposed": arm.proposed.found,
                "allowed": arm.allowed.found,
                "effect": arm.effect.found,
            }
            for label, arm in run.items()
        },
        "certificates": {
            str(item.placement.condition): _certificate(item)
            for item in finished.certified
            if item.placement.deployment == name
        },
    }


def _certificate(item: Certified) -> dict[str, Any]:
    utility = item.gates.utility
    difference = utility.difference
    return {
        "verdict": str(item.verdict),
        "failed_gates": failed_gates(item.gates),
        "headroom": utility.headroom,
        "margin_pp": None if difference is None else round(float(100 * difference), 2),
    }
