"""The certificate: an in-toto Statement v1 whose predicate is the two-gate result. Pure.

Numbers that are not whole are decimal text or fractions, since RFC 8785 and in-toto readers
disagree on floats. Evidence that is not live has a predicate type of its own and says so first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from retire.certify.accounting import (
    authorized_misses,
    invalid_flow,
    leaking_bundle_bound,
    leaking_members,
    lost_bundles,
    miss_counts,
)
from retire.certify.gates import Gates, Verdict
from retire.certify.separation import SAME_USER, trust_of
from retire.certify.stability import NOT_MEASURED
from retire.domain.clause import ConditionKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.certify.accounting import Stop
    from retire.certify.joining import Finding
    from retire.certify.rereading import Rereading
    from retire.certify.support import ClauseSupport
    from retire.domain.cell import Cell
    from retire.domain.outcome import Outcome

LIVE_TYPE = "https://retire.invalid/certificate/v1"
NOT_LIVE_TYPE = "https://retire.invalid/certificate-not-live/v1"
"""Predicate types; the second is never permission to ship."""


@dataclass(frozen=True, slots=True)
class Arms:
    """The outcomes of one deployment that a certificate compares."""

    full: Sequence[Outcome]
    candidate: Sequence[Outcome]
    expected: Sequence[Cell]
    """Declared cells of the candidate."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts of the run that every certificate of it repeats."""

    plan: Mapping[str, Any]
    plan_digest: str
    scope: str
    evidence: str
    world: str
    outcome_root: str
    record_root: str
    heads: Mapping[str, Mapping[str, Any]]
    findings: Sequence[Finding]
    prior_runs: int
    stability: Mapping[str, Mapping[str, Any] | str] = field(default_factory=dict)
    rereading: Rereading | None = None
    """Present where the world cannot compare and act in one step."""
    separation: str = SAME_USER


def percentage_points(value: Fraction | None) -> str:
    """Return a fraction of one as percentage points with two decimals, or "unknown"."""
    if value is None:
        return "unknown"
    hundredths = round(value * 10_000)
    sign = "-" if hundredths < 0 else "+"
    whole, part = divmod(abs(hundredths), 100)
    return f"{sign}{whole}.{part:02d}"


def effective_verdict(gates: Gates, findings: Sequence[Finding]) -> Verdict:
    """Return the verdict: evidence that does not fit together never passes."""
    return Verdict.FAIL if findings and gates.verdict is Verdict.PASS else gates.verdict


def statement(
    unit: Mapping[str, Any],
    subjects: Sequence[Mapping[str, Any]],
    gates: Gates,
    arms: Arms,
    support: Sequence[ClauseSupport],
    given: Surroundings,
) -> dict[str, Any]:
    """Return the in-toto Statement of one certificate.

    Args:
        unit: Deployment (name and identity digest), condition, binding, deleted clause ids.
        subjects: Names and digests of what is certified.
        gates: The result of the two-gate rule.
        arms: The outcomes it was computed from.
        support: The support of every deleted clause.
        given: What the run says of itself.
    """
    live = given.evidence == "live_model"
    verdict = effective_verdict(gates, given.findings)
    predicate = {
        "first_lines": _first_lines(verdict, gates, given),
        "verdict": str(verdict),
        "failed_gates": failed_gates(gates),
        "unmet": list(gates.unmet),
        "findings": [
            {"kind": item.kind, "where": item.where, "what": item.what} for item in given.findings
        ],
        "unit": {**unit, "scope": given.scope},
        "evidence": given.evidence,
        "world": given.world,
        **_gap(given.rereading),
        "separation": given.separation,
        "gates": _gates_json(gates),
        "beside_the_verdict": _beside(arms),
        "support_gap": [_support_json(item) for item in support],
        "stability": given.stability.get(unit["deployment"]["name"], NOT_MEASURED),
        "prior_runs_of_this_pair": given.prior_runs,
        "plan": {"digest": given.plan_digest, "statement": given.plan},
        "outcome_root": given.outcome_root,
        "record_root": given.record_root,
        "heads": given.heads,
        "trust": trust_of(given.separation),
    }
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [dict(item) for item in subjects],
        "predicateType": LIVE_TYPE if live else NOT_LIVE_TYPE,
        "predicate": predicate,
    }


def _gap(rereading: Rereading | None) -> dict[str, Any]:
    """Say how long before an act its records were read again, where the two are two steps."""
    if rereading is None:
        return {}
    return {
        "reread_before_acting": {
            "acts": rereading.acts,
            "largest_gap_milliseconds": rereading.largest_milliseconds,
        }
    }


def failed_gates(gates: Gates) -> list[str]:
    """Return the names of the gates that are shut."""
    shut = {"utility": not gates.utility.passes, "authority": not gates.authority.passes}
    return [name for name, closed in shut.items() if closed]


def _first_lines(verdict: Verdict, gates: Gates, given: Surroundings) -> list[str]:
    lines = []
    if given.evidence != "live_model":
        lines.append(
            f"Evidence: {given.evidence}, no live model was asked. This is not permission to ship."
        )
    lines.append(f"Verdict: {verdict}.")
    if given.scope == "bundle":
        step = percentage_points(Fraction(1, gates.utility.n)).lstrip("+")
        lines.append(f"One bundle: the smallest visible loss is {step} points.")
    lines += [f"Not audited: {entry}" for entry in gates.unaudited]
    if given.findings:
        lines.append(f"{len(given.findings)} findings: records and traces do not fit together.")
    return lines


def _gates_json(gates: Gates) -> dict[str, Any]:
    utility, authority = gates.utility, gates.authority
    return {
        "utility": {
            "passes": utility.passes,
            "candidate": utility.candidate,
            "full": utility.full,
            "cells": utility.n,
            "margin": str(utility.margin),
            "difference_points": percentage_points(utility.difference),
            "headroom": utility.headroom,
            "one_cell_sensitive": utility.one_cell_sensitive,
        },
        "authority": {
            "passes": authority.passes,
            "protected_effects": authority.effects,
            "cells": authority.n,
        },
    }


def _beside(arms: Arms) -> dict[str, Any]:
    flow = invalid_flow(arms.candidate)
    bound = leaking_bundle_bound(arms.candidate, arms.expected)
    leaking_before = {leak.bundle for leak in leaking_members(arms.full)}
    leaks = leaking_members(arms.candidate)
    return {
        "invalid_members": {
            "cells": flow.cells,
            "proposals": flow.proposals,
            "denials": flow.denials,
            "protected_effects": flow.effects,
        },
        "authorized_misses": [
            {**_stop_json(stop), "cells": count}
            for stop, count in miss_counts(authorized_misses(arms.candidate)).items()
        ],
        "bundles_without_authorized_success": list(lost_bundles(arms.full, arms.candidate)),
        "newly_leaking_bundles": sorted({leak.bundle for leak in leaks} - leaking_before),
        "leaks": [
            {"bundle": leak.bundle, "member": leak.member, "effects": leak.effects}
            for leak in leaks
        ],
        "upper_bound_if_bundles_were_a_random_sample": (
            None
            if bound is None
            else {
                "leaking": bound.leaking,
                "bundles": bound.bundles,
                "one_sided_95_percent": f"{bound.upper:.4f}",
            }
        ),
    }


def _stop_json(stop: Stop) -> dict[str, str]:
    return {"stage": str(stop.stage), "reason": stop.reason, "parameter": stop.parameter}


def _support_json(support: ClauseSupport) -> dict[str, Any]:
    clause = support.clause
    entry: dict[str, Any] = {"bundle": clause.bundle, "clause": clause.clause}
    if support.status is None:
        return {**entry, "role": "task_guidance"}
    return {
        **entry,
        "role": "execution_condition",
        "kind": str(clause.kind or ConditionKind.PREDICATE),
        "predicate": clause.predicate,
        "status": str(support.status),
        "licensing_evidence": {
            "true": support.licensing.true,
            "false": support.licensing.false,
        },
        "audit": {"true": support.audit.true, "false": support.audit.false},
        "protected_effects": support.effects,
        "stopped": [{**_stop_json(stop), "cells": count} for stop, count in support.stops.items()],
    }
