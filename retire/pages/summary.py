"""``summary.json``: the numbers of a run for other programs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retire.pages.counting import Counts, audited, cell_counts, conditions_declared, deletions

if TYPE_CHECKING:
    from retire.certify.certificate import Certificate
    from retire.wiring import Finished

SCHEMA = "retire.summary/v1"

_TEST_KEYS = {"RQ1": ("p", "p_adjusted")}
_SIGN_KEYS = ("plus", "minus", "ties", "p", "p_adjusted")


def summary(finished: Finished) -> dict[str, Any]:
    """Return the summary, ``retire.summary/v1``.

    ``k/n`` counts authorized cells with the intended effect out of those with evidence;
    ``margin_pp`` is U(S') - U(S) in percentage points. None is a number that the run cannot give.
    """
    run = finished.run
    cells = cell_counts(run)
    counts = Counts(run.outcomes, run.plan.cells)
    return {
        "schema": SCHEMA,
        "evidence": str(finished.evidence),
        "cells": {
            "planned": cells.planned,
            "complete": cells.complete,
            "incomplete": cells.incomplete,
            "invalid_outputs": cells.invalid_outputs,
            "abandoned_attempts": cells.abandoned_attempts,
        },
        "deployments": {
            name: _deployment(finished, counts, name) for name in run.plan.protocol.deployments
        },
        "tests": {
            name: {key: test.get(key) for key in _TEST_KEYS.get(name, _SIGN_KEYS)}
            for name, test in run.hypotheses.tests.items()
        },
        "seconds": {name: round(value, 3) for name, value in finished.seconds.items()},
        "outcome_root": run.traces.outcome_root,
        "record_root": run.traces.record_root,
    }


def _deployment(finished: Finished, counts: Counts, name: str) -> dict[str, Any]:
    protocol = finished.run.plan.protocol
    arms = {it.label: counts.of([it.arm(name)]) for it in conditions_declared(protocol)}
    deleted = deletions(finished.run, name)
    return {
        "clauses": deleted.clauses,
        "deleted": deleted.deleted,
        "empty_reductions": deleted.empty,
        "reducer_trials": deleted.trials,
        "authorized": {label: arm.effect.of() for label, arm in arms.items()},
        "protected_effects": {
            item.label: arms[item.label].leaks.found for item in audited(protocol)
        },
        "stages": {
            label: {
                "proposed": arm.proposed.found,
                "allowed": arm.allowed.found,
                "effect": arm.effect.found,
            }
            for label, arm in arms.items()
        },
        "certificates": {
            str(item.condition): _certificate(item)
            for item in finished.certificates
            if item.deployment == name
        },
    }


def _certificate(item: Certificate) -> dict[str, Any]:
    utility = item.gates.utility
    difference = utility.difference
    return {
        "verdict": str(item.verdict),
        "failed_gates": list(item.predicate.failed_gates),
        "headroom": utility.headroom,
        "margin_pp": None if difference is None else round(float(100 * difference), 2),
    }
