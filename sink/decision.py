"""The decision: one pure function from contract, proposal and snapshot to a frozen answer.

There is no default answer. ``allow`` exists only as the result of a complete evaluation; each
deny has exactly one reason out of a closed set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from sink.contract import Scalar, canonical_scalar, evaluate, same_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sink.contract import Contract, PredicateValue, ProtectedAction, Snapshot
    from sink.proposal import Proposal


class Reason(StrEnum):
    """Why the sink denies."""

    MALFORMED_PROPOSAL = "malformed_proposal"
    UNKNOWN_SERVICE = "unknown_service"
    NONCANONICAL_TARGET = "noncanonical_target"
    PARAMETER_MISMATCH = "parameter_mismatch"
    GRANT_ABSENT = "grant_absent"
    GRANT_STALE = "grant_stale"
    GRANT_REPLAYED = "grant_replayed"
    PRINCIPAL_MISMATCH = "principal_mismatch"
    QUORUM_UNMET = "quorum_unmet"
    STATE_UNMET = "state_unmet"
    VERSION_MISMATCH = "version_mismatch"
    SNAPSHOT_MISMATCH = "snapshot_mismatch"
    EPISODE_MISMATCH = "episode_mismatch"
    INTERNAL_ERROR = "internal_error"


class Binding(StrEnum):
    """How parameters are compared with the canonical ones."""

    CANONICAL = "canonical"
    """Schema defaults are filled in on both sides first."""
    EXACT = "exact"
    """Keys and values as sent."""


class Basis(StrEnum):
    """What an allow rests on."""

    AUTHORITY = "authority"
    FREE_BAND = "free_band"


@dataclass(frozen=True, slots=True)
class Action:
    """The canonical action that will be sent: rebuilt from the contract, not from the model."""

    service: str
    target: str
    parameters: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Allow:
    """The action may be sent, once."""

    basis: Basis
    action: Action
    predicates: tuple[PredicateValue, ...]
    grants: tuple[str, ...]
    """Names of the grants that this allow spends."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Nothing may be sent."""

    reason: Reason
    detail: str = ""
    parameter: str = ""
    predicates: tuple[PredicateValue, ...] = field(default=())


def decide(
    contract: Contract, proposal: Proposal, snapshot: Snapshot, binding: Binding
) -> Allow | Deny:
    """Decide one proposal.

    Every predicate is evaluated and reported whatever the outcome. The order of the checks fixes
    which reason a deny gives: tool, target, schema, free band, binding, then the predicates in
    the contract's order.
    """
    values = evaluate(contract, snapshot)
    action = contract.action
    if proposal.tool != action.tool:
        return Deny(Reason.UNKNOWN_SERVICE, detail=proposal.tool[:200], predicates=values)
    target = proposal.arguments.get("target")
    if target != action.target:
        return Deny(Reason.NONCANONICAL_TARGET, detail=str(target)[:200], predicates=values)
    sent = {key: value for key, value in proposal.arguments.items() if key != "target"}
    fault = _schema_fault(action, sent)
    if fault is not None:
        return Deny(Reason.PARAMETER_MISMATCH, detail="schema", parameter=fault, predicates=values)
    if _in_free_band(contract, sent, binding):
        return Allow(
            Basis.FREE_BAND, Action(action.service, action.target, sent), values, grants=()
        )
    fault = _binding_fault(action, sent, dict(action.canonical), binding)
    if fault is not None:
        return Deny(
            Reason.PARAMETER_MISMATCH, detail=str(binding), parameter=fault, predicates=values
        )
    for value in values:
        if not value.value:
            return Deny(Reason(value.reason), detail=value.detail, predicates=values)
    canonical = Action(action.service, action.target, dict(action.canonical))
    return Allow(Basis.AUTHORITY, canonical, values, grants=_grants(contract))


def _schema_fault(action: ProtectedAction, sent: Mapping[str, Scalar]) -> str | None:
    """Return the first parameter that the schema refuses, or None; an empty key is a name too."""
    for key, value in sent.items():
        if key not in action.parameters or not action.parameters[key].accepts(value):
            return key
    for key, parameter in action.parameters.items():
        if parameter.required and key not in sent:
            return key
    return None


def _binding_fault(
    action: ProtectedAction,
    sent: Mapping[str, Scalar],
    canonical: Mapping[str, Scalar],
    binding: Binding,
) -> str | None:
    """Return the first parameter that differs from the canonical ones, or None."""
    left, right = dict(sent), dict(canonical)
    if binding is Binding.CANONICAL:
        left, right = with_defaults(action, left), with_defaults(action, right)
    for key in sorted(set(left) | set(right)):
        if key not in left or key not in right or not same_value(left[key], right[key]):
            return key
    return None


def with_defaults(action: ProtectedAction, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the parameters with the schema's defaults filled in."""
    filled = dict(values)
    for key, parameter in action.parameters.items():
        if key not in filled and parameter.default is not None:
            filled[key] = parameter.default
    return filled


def _in_free_band(contract: Contract, sent: Mapping[str, Scalar], binding: Binding) -> bool:
    """Whether the banded parameter lies in the band and every other one is canonical."""
    band = contract.free_band
    if band is None:
        return False
    value = sent.get(band.parameter)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False
    if not band.minimum <= value <= band.maximum:
        return False
    others = {key: item for key, item in sent.items() if key != band.parameter}
    canonical = {
        key: item for key, item in contract.action.canonical.items() if key != band.parameter
    }
    return _binding_fault(contract.action, others, canonical, binding) is None


def _grants(contract: Contract) -> tuple[str, ...]:
    return tuple(item.grant for item in contract.predicates if item.kind == "grant")


def action_record(action: Action) -> dict[str, object]:
    """Return the JSON form of an action; numbers as marked canonical decimal text."""
    return {
        "service": action.service,
        "target": action.target,
        "parameters": {key: canonical_scalar(item) for key, item in action.parameters.items()},
    }
