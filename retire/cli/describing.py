"""A contract in plain words, for the person who approves it."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, assert_never

from retire.cli.inputs import printable
from sink.contract import ConsentPredicate, FactPredicate, GrantPredicate, VersionPredicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from decimal import Decimal

    from sink.contract import Contract, Parameter, Predicate, Scalar


def contract_words(contract: Contract, digest: str, bindings: Mapping[str, str]) -> str:
    """Return what a contract lets the sink do, and under which conditions.

    Whoever wrote the contract is not trusted: characters that move or turn text on a terminal
    stand as escapes.

    Args:
        contract: The contract.
        digest: Digest of its bytes.
        bindings: Entity of the real world, by target.
    """
    return "\n".join(printable(line) for line in _lines(contract, digest, bindings))


def _lines(contract: Contract, digest: str, bindings: Mapping[str, str]) -> Iterator[str]:
    action = contract.action
    yield f"contract {digest}"
    yield f"of the bundle {contract.bundle}"
    yield f"lets {contract.requester} have {action.service} called"
    yield f"    on {action.target}, which is the entity {bindings[action.target]}"
    if not action.parameters:
        yield "    without parameters"
    for name, parameter in action.parameters.items():
        yield from _wrapped(f"with {name}: {_parameter(parameter, action.canonical.get(name))}")
    yield f"if all of these hold ({len(contract.predicates)}):"
    for predicate in contract.predicates:
        yield from _wrapped(f"{predicate.id}: {_predicate(predicate, contract)}")
    if contract.free_band is not None:
        band = contract.free_band
        limits = f"{band.parameter} from {band.minimum} to {band.maximum}"
        yield f"AND WITHOUT ANY OF THESE, with {limits}"
        yield "    and everything else as above"
    for name, reason in contract.unaudited.items():
        yield from _wrapped(f"{name} is tested by no request: {reason}")


def _wrapped(text: str) -> Iterable[str]:
    # Before the escapes are made: a line feed in a value must not look like a line of ours.
    return textwrap.wrap(printable(text), 96, initial_indent="    ", subsequent_indent="        ")


def _parameter(parameter: Parameter, canonical: Scalar | None) -> str:
    unit = f" {parameter.unit}" if parameter.unit else ""
    if canonical is not None:
        return f"exactly {_value(canonical)}{unit}"
    if parameter.default is not None:
        return f"left out, or its default {_value(parameter.default)}{unit}"
    return "left out"


def _predicate(predicate: Predicate, contract: Contract) -> str:
    match predicate:
        case GrantPredicate():
            return (
                f"the grant {predicate.grant} is active, in its time, held by "
                f"{contract.requester}, for this service and target"
            )
        case ConsentPredicate():
            people = _listed(predicate.principals, "and")
            if len(predicate.principals) > 1:
                people = f"{predicate.quorum} of {people}"
            return f"{people} said yes in the consent {predicate.consent}"
        case FactPredicate():
            return f"the fact {predicate.fact} {_listed(_fact(predicate), 'and')}"
        case VersionPredicate():
            versions = _listed([_value(item) for item in predicate.one_of], "or")
            return f"the version of {predicate.component} is {versions}"
        case _:
            assert_never(predicate)


def _fact(predicate: FactPredicate) -> list[str]:
    said = []
    if predicate.one_of is not None:
        said.append(f"is {_listed([_value(item) for item in predicate.one_of], 'or')}")
    bounds: tuple[tuple[str, int | Decimal | None], ...] = (
        ("at least", predicate.minimum),
        ("at most", predicate.maximum),
    )
    said += [f"is {word} {bound} {predicate.unit}" for word, bound in bounds if bound is not None]
    if predicate.maximum_age_seconds is not None:
        said.append(f"was reported less than {predicate.maximum_age_seconds} s before")
    return said


def _value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _listed(items: Sequence[str], word: str) -> str:
    *most, last = items
    return f"{', '.join(most)} {word} {last}" if most else last
