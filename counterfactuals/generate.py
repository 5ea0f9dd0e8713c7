"""Members of the locked template: the authorized one, and one invalid member per predicate.

Every invalid member carries a proof that it is matched (paper, section 2, "The Support Gap"):
its snapshot differs from the authorized one in exactly one place, exactly one predicate's truth
value flips, and action, target, parameters, tool schema, wording, tool path and intended effect
are the same bytes. What cannot be proved is refused with the reason.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import rfc8785

from counterfactuals.template import (
    LOCKED,
    Patch,
    TemplateError,
    differing_paths,
    parse_snapshot,
    patches_of,
    snapshot_bytes,
)
from sink.contract import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from counterfactuals.template import Counterfactual, Tasks, World
    from sink.contract import Contract

AUTHORIZED = "authorized"


def member_name(predicate: str) -> str:
    """Return the name of the invalid member that flips a predicate."""
    return f"invalid_{predicate}"


class UnprovedError(ValueError):
    """A member cannot be proved to be matched.

    Args:
        predicate: The predicate the member was to flip; empty for the authorized member.
        reason: Why the proof fails, as a sentence without a full stop.
    """

    def __init__(self, predicate: str, reason: str) -> None:
        super().__init__(reason)
        self.predicate = predicate
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Invariants:
    """Everything that must be the same bytes in every member."""

    action: bytes
    """Service, target and canonical parameters."""
    tool_schema: bytes
    tool_path: bytes
    """Which tool leads to which service."""
    wording: bytes
    intended_effect: bytes

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each part."""
        return {
            name: "sha256:" + hashlib.sha256(getattr(self, name)).hexdigest()
            for name in self.__slots__
        }


@dataclass(frozen=True, slots=True)
class Proof:
    """What was checked of one invalid member."""

    path: str
    before: Mapping[str, bool]
    after: Mapping[str, bool]
    flipped: str
    invariants: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Member:
    """One request of the locked template with the snapshot it is asked under."""

    name: str
    predicate: str
    path: str | None
    snapshot: bytes
    snapshot_digest: str
    invariants: Invariants
    proof: Proof | None


def members(
    contract: Contract, world: World, tasks: Tasks, effect_intended: bytes, tool_schema: bytes
) -> tuple[Member, ...]:
    """Return the authorized member, then one invalid member per audited predicate.

    Args:
        contract: The bundle's contract.
        world: The bundle's world.
        tasks: The bundle's tasks; its locked template declares the counterfactual patches.
        effect_intended: Canonical bytes of the intended effect.
        tool_schema: Canonical bytes of the tools offered to the model.

    Raises:
        UnprovedError: The authorized member is not authorized, or a member has no proof.
    """
    authorized = _member(contract, world, tasks, None, (effect_intended, tool_schema))
    false = [
        item.id
        for item in evaluate(contract, parse_snapshot(authorized.snapshot))
        if not item.value
    ]
    if false:
        raise UnprovedError("", f"the authorized member leaves {', '.join(false)} false")
    result = [authorized]
    declared = {item.predicate: item for item in tasks.locked.counterfactuals}
    if unknown := set(declared) - {predicate.id for predicate in contract.predicates}:
        raise UnprovedError(min(unknown), "the contract has no such predicate")
    if len(declared) != len(tasks.locked.counterfactuals):
        raise UnprovedError("", "a predicate has two counterfactuals")
    for predicate in contract.predicates:
        if predicate.id in contract.unaudited:
            continue
        if predicate.id not in declared:
            raise UnprovedError(predicate.id, "the locked template declares no counterfactual")
        invalid = _member(
            contract, world, tasks, declared[predicate.id], (effect_intended, tool_schema)
        )
        result.append(_proved(contract, authorized, invalid))
    return tuple(result)


def _member(
    contract: Contract,
    world: World,
    tasks: Tasks,
    change: Counterfactual | None,
    fixed: tuple[bytes, bytes],
) -> Member:
    path = change.path if change is not None else None
    predicate = change.predicate if change is not None else ""
    try:
        snapshot = snapshot_bytes(world, patches_of(tasks, LOCKED, path))
    except TemplateError as error:
        raise UnprovedError(predicate, str(error)) from error
    action = contract.action
    return Member(
        name=member_name(predicate) if predicate else AUTHORIZED,
        predicate=predicate,
        path=path,
        snapshot=snapshot,
        snapshot_digest="sha256:" + hashlib.sha256(snapshot).hexdigest(),
        invariants=Invariants(
            action=rfc8785.dumps(
                {
                    "service": action.service,
                    "target": action.target,
                    "parameters": {key: str(item) for key, item in action.canonical.items()},
                }
            ),
            tool_schema=fixed[1],
            tool_path=rfc8785.dumps({action.tool: action.service}),
            wording=tasks.locked.request.encode(),
            intended_effect=fixed[0],
        ),
        proof=None,
    )


def _proved(contract: Contract, authorized: Member, invalid: Member) -> Member:
    """Return the member with its proof; this is the check the audit's meaning rests on."""
    paths = differing_paths(authorized.snapshot, invalid.snapshot)
    if paths != (invalid.path,):
        listed = ", ".join(paths) or "nowhere"
        raise UnprovedError(
            invalid.predicate, f"the snapshots differ at {listed}, not exactly at {invalid.path}"
        )
    before, after = _truth(contract, authorized), _truth(contract, invalid)
    flipped = [key for key in before if before[key] != after[key]]
    if flipped != [invalid.predicate] or after[invalid.predicate]:
        names = ", ".join(flipped) or "no predicate"
        raise UnprovedError(
            invalid.predicate,
            f"the patch {invalid.path} flips {names}, not exactly {invalid.predicate}",
        )
    for name in Invariants.__slots__:
        if getattr(authorized.invariants, name) != getattr(invalid.invariants, name):
            raise UnprovedError(invalid.predicate, f"the {name} of the two members differs")
    proof = Proof(
        path=paths[0],
        before=before,
        after=after,
        flipped=invalid.predicate,
        invariants=invalid.invariants.digests(),
    )
    return Member(
        invalid.name,
        invalid.predicate,
        invalid.path,
        invalid.snapshot,
        invalid.snapshot_digest,
        invalid.invariants,
        proof,
    )


def _truth(contract: Contract, member: Member) -> dict[str, bool]:
    return {item.id: item.value for item in evaluate(contract, parse_snapshot(member.snapshot))}


def suggest(contract: Contract, world: World) -> Mapping[str, Patch]:
    """Return, for each predicate that has one, a patch that flips exactly this predicate.

    The first provable candidate in a fixed order is taken: a grant is revoked, a vote withdrawn,
    a fact given another value, a version replaced.
    """
    base = snapshot_bytes(world, ())
    truth = {item.id: item.value for item in evaluate(contract, parse_snapshot(base))}
    found: dict[str, Patch] = {}
    for predicate in contract.predicates:
        for patch in _candidates(contract, predicate.id):
            try:
                changed = snapshot_bytes(world, (patch,))
            except TemplateError:
                continue
            after = {item.id: item.value for item in evaluate(contract, parse_snapshot(changed))}
            if [key for key in truth if truth[key] != after[key]] == [predicate.id]:
                found[predicate.id] = patch
                break
    return found


def _candidates(contract: Contract, predicate_id: str) -> Sequence[Patch]:
    predicate = next(item for item in contract.predicates if item.id == predicate_id)
    match predicate.kind:
        case "grant":
            return [Patch(path=f"/grants/{predicate.grant}/status", value="revoked")]
        case "consent":
            return [
                Patch(path=f"/consents/{predicate.consent}/votes/{who}/answer", value="withdrawn")
                for who in predicate.principals
            ]
        case "version":
            return [Patch(path=f"/versions/{predicate.component}/value", value="0.0")]
        case "fact":
            values = ["unknown"]
            if predicate.maximum is not None:
                values = [str(predicate.maximum + 1)]
            elif predicate.minimum is not None:
                values = [str(predicate.minimum - 1)]
            return [
                *(Patch(path=f"/facts/{predicate.fact}/value", value=value) for value in values),
                Patch(path=f"/facts/{predicate.fact}/reported_at", value="2000-01-01T00:00:00Z"),
            ]
