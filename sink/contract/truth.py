"""The truth of each predicate of a contract under a snapshot.

Pure: a contract and a snapshot go in, one value per predicate comes out. Nothing here reads a
clock; the snapshot's own ``as_of`` is the time against which windows and ages are judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias, assert_never

from sink.contract.model import (
    ConsentPredicate,
    Contract,
    FactPredicate,
    GrantPredicate,
    Predicate,
    VersionPredicate,
)
from sink.contract.values import decimal_text, instant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sink.contract.snapshot import Consent, Fact, Grant, Snapshot, Version, Vote


@dataclass(frozen=True, slots=True)
class PredicateValue:
    """The truth of one predicate; ``reason`` is the deny reason it gives when false."""

    id: str
    value: bool
    reason: str
    detail: str


def evaluate(contract: Contract, snapshot: Snapshot) -> tuple[PredicateValue, ...]:
    """Return the value of every predicate of the contract, in its order.

    A missing or unreadable input makes its predicate false, never absent.
    """
    return tuple(_evaluate_one(contract, predicate, snapshot) for predicate in contract.predicates)


def _evaluate_one(contract: Contract, predicate: Predicate, snapshot: Snapshot) -> PredicateValue:
    match predicate:
        case GrantPredicate():
            fault = _grant_fault(contract, snapshot.grants.get(predicate.grant), snapshot.as_of)
        case ConsentPredicate():
            fault = _consent_fault(predicate, snapshot.consents.get(predicate.consent))
        case FactPredicate():
            fault = _fact_fault(predicate, snapshot.facts.get(predicate.fact), snapshot.as_of)
        case VersionPredicate():
            fault = _version_fault(predicate, snapshot.versions.get(predicate.component))
        case _:
            assert_never(predicate)
    if fault is None:
        return PredicateValue(predicate.id, value=True, reason="", detail="")
    return PredicateValue(predicate.id, value=False, reason=fault[0], detail=fault[1])


_Fault: TypeAlias = "tuple[str, str] | None"


def _grant_fault(contract: Contract, grant: Grant | None, as_of: str) -> _Fault:
    if grant is None:
        return "grant_absent", "no such grant"
    if grant.holder != contract.requester:
        return "principal_mismatch", "the grant is held by somebody else"
    if grant.service != contract.action.service or grant.target != contract.action.target:
        return "grant_absent", "the grant covers another action"
    if grant.status != "active":
        return "grant_absent", f"the grant's status is {grant.status!r}"
    try:
        now, start, end = instant(as_of), instant(grant.not_before), instant(grant.not_after)
    except ValueError as error:
        return "grant_stale", str(error)
    # Closed at the first instant, open at the last: two windows that meet never overlap.
    if not start <= now < end:
        return "grant_stale", "the time lies outside the grant's window"
    return None


def _consent_fault(predicate: ConsentPredicate, consent: Consent | None) -> _Fault:
    single = len(predicate.principals) == 1
    reason = "principal_mismatch" if single else "quorum_unmet"
    votes: Mapping[str, Vote] = consent.votes if consent is not None else {}
    given = sum(1 for who in predicate.principals if who in votes and votes[who].answer == "yes")
    if given < predicate.quorum:
        return reason, f"{given} of {predicate.quorum} needed"
    return None


def _fact_fault(predicate: FactPredicate, fact: Fact | None, as_of: str) -> _Fault:
    if fact is None:
        return "state_unmet", "no such fact"
    if predicate.one_of is not None and fact.value not in predicate.one_of:
        return "state_unmet", f"the value is {fact.value!r}"
    if predicate.minimum is not None or predicate.maximum is not None:
        fault = _range_fault(predicate, fact)
        if fault is not None:
            return fault
    if predicate.maximum_age_seconds is None:
        return None
    return _age_fault(fact.reported_at, as_of, predicate.maximum_age_seconds)


def _range_fault(predicate: FactPredicate, fact: Fact) -> _Fault:
    if fact.unit != predicate.unit:
        return "state_unmet", f"the unit is {fact.unit!r}, not {predicate.unit!r}"
    try:
        value = Decimal(decimal_text(fact.value))
    except ValueError:
        return "state_unmet", f"the value {fact.value!r} is no number"
    low = predicate.minimum is not None and value < predicate.minimum
    high = predicate.maximum is not None and value > predicate.maximum
    return ("state_unmet", f"the value is {fact.value}") if low or high else None


def _age_fault(reported_at: str, as_of: str, maximum_age_seconds: int) -> _Fault:
    try:
        age = instant(as_of) - instant(reported_at)
    except ValueError as error:
        return "state_unmet", str(error)
    if age < timedelta(0):
        return "state_unmet", "the report lies in the future"
    # Exactly the maximum age counts as stale: "younger than" is the rule.
    if age >= timedelta(seconds=maximum_age_seconds):
        return "state_unmet", f"the report is {int(age.total_seconds())} s old"
    return None


def _version_fault(predicate: VersionPredicate, version: Version | None) -> _Fault:
    if version is None:
        return "version_mismatch", "no such component"
    if version.value not in predicate.one_of:
        return "version_mismatch", f"the version is {version.value!r}"
    return None
