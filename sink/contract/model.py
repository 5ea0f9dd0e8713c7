"""The contract of one bundle as strict types: what the sink enforces."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from sink.contract.values import Identifier, Name, Scalar, canonical_decimal, same_value
from sink.strict_yaml import StrictModel, read_model


class Parameter(StrictModel):
    """One parameter of a tool: a small, safe part of JSON Schema."""

    type: Literal["string", "number", "integer", "boolean"]
    description: str
    required: bool = False
    default: Scalar | None = None
    enum: tuple[Scalar, ...] | None = None
    const: Scalar | None = None
    minimum: int | Decimal | None = None
    maximum: int | Decimal | None = None
    max_length: int = Field(default=200, ge=1, le=4096)
    decimals: int = Field(default=2, ge=0, le=6)
    """Most digits after the decimal point; more are refused, never rounded."""
    unit: str | None = None

    @model_validator(mode="after")
    def _values_fit(self) -> Parameter:
        if self.required and self.default is not None:
            raise ValueError("a required parameter has no default")
        for value in (self.default, self.const, *(self.enum or ())):
            if value is not None and not self.accepts(value, alone=True):
                raise ValueError(f"{value!r} does not fit type {self.type} and its bounds")
        return self

    def accepts(self, value: Scalar, *, alone: bool = False) -> bool:
        """Whether a value has the type and lies in the bounds; ``alone`` skips enum and const."""
        if not self._type_fits(value):
            return False
        if alone:
            return True
        if self.const is not None and not same_value(value, self.const):
            return False
        return self.enum is None or any(same_value(value, item) for item in self.enum)

    def _type_fits(self, value: Scalar) -> bool:
        if self.type == "boolean":
            return isinstance(value, bool)
        if self.type == "string":
            return isinstance(value, str) and len(value) <= self.max_length
        if isinstance(value, bool | str):
            return False
        number = Decimal(value)
        # A huge exponent makes "to_integral" and formatting expensive; no device needs one.
        exponent = number.as_tuple().exponent
        if not isinstance(exponent, int) or abs(number.adjusted()) > 15:
            return False
        places = 0 if self.type == "integer" else self.decimals
        if -Decimal(canonical_decimal(number)).as_tuple().exponent > places:  # type: ignore[operator]  # finite
            return False
        low_enough = self.maximum is None or number <= self.maximum
        return low_enough and (self.minimum is None or number >= self.minimum)


class Tool(StrictModel):
    """A tool the model is offered."""

    tool: Name
    description: str
    service: Identifier
    targets: dict[Identifier, str] = Field(min_length=1)
    """Offered registry identities with the names people use for them."""
    parameters: dict[Name, Parameter] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _no_shadowing(self) -> Tool:
        if "target" in self.parameters:
            raise ValueError("'target' is the tool's target and cannot be a parameter")
        return self


class ProtectedAction(Tool):
    """The one action that needs authority, with the values the authority covers."""

    target: Identifier
    canonical: dict[Name, Scalar] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _canonical_fits(self) -> ProtectedAction:
        if self.target not in self.targets:
            raise ValueError(f"the canonical target {self.target} is not among the offered targets")
        for key, value in self.canonical.items():
            if key not in self.parameters or not self.parameters[key].accepts(value):
                raise ValueError(f"the canonical value of {key} does not fit its schema")
        for key, parameter in self.parameters.items():
            if parameter.required and key not in self.canonical:
                raise ValueError(f"the required parameter {key} has no canonical value")
        return self


class GrantPredicate(StrictModel):
    """Authority evidence: a grant to this requester for this service and target, in its window."""

    kind: Literal["grant"]
    id: Name
    grant: Name


class ConsentPredicate(StrictModel):
    """Consent of affected principals: at least ``quorum`` of those named answered yes."""

    kind: Literal["consent"]
    id: Name
    consent: Name
    principals: tuple[Identifier, ...] = Field(min_length=1)
    quorum: int = Field(ge=1)

    @model_validator(mode="after")
    def _quorum_fits(self) -> ConsentPredicate:
        if self.quorum > len(set(self.principals)) or len(set(self.principals)) < len(
            self.principals
        ):
            raise ValueError("the quorum needs that many different principals")
        return self


class FactPredicate(StrictModel):
    """A live fact: equal to one of some texts, or within bounds with a unit, and fresh enough."""

    kind: Literal["fact"]
    id: Name
    fact: Name
    one_of: tuple[str, ...] | None = None
    minimum: int | Decimal | None = None
    maximum: int | Decimal | None = None
    unit: str | None = None
    maximum_age_seconds: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _says_something(self) -> FactPredicate:
        bounded = self.minimum is not None or self.maximum is not None
        if self.one_of is None and not bounded and self.maximum_age_seconds is None:
            raise ValueError("state one_of, minimum, maximum or maximum_age_seconds")
        if self.one_of is not None and bounded:
            raise ValueError("one_of compares text, bounds compare numbers: state one of them")
        if bounded and self.unit is None:
            raise ValueError("a bound needs its unit")
        return self


class VersionPredicate(StrictModel):
    """A version that must be exactly one of those listed."""

    kind: Literal["version"]
    id: Name
    component: Name
    one_of: tuple[str, ...] = Field(min_length=1)


Predicate: TypeAlias = Annotated[
    GrantPredicate | ConsentPredicate | FactPredicate | VersionPredicate,
    Field(discriminator="kind"),
]


class FreeBand(StrictModel):
    """Values of one number parameter that need no authority (for example a mild setpoint)."""

    parameter: Name
    minimum: int | Decimal
    maximum: int | Decimal


class Contract(StrictModel):
    """Everything the sink enforces for one bundle."""

    schema_: Literal["retire.contract/v1"] = Field(alias="schema")
    bundle: str
    requester: Identifier
    action: ProtectedAction
    other_tools: tuple[Tool, ...] = ()
    predicates: tuple[Predicate, ...] = Field(min_length=1)
    free_band: FreeBand | None = None
    unaudited: dict[Name, str] = Field(default_factory=dict)
    """Predicates that no member varies, each with the reason; printed first on a certificate."""

    @model_validator(mode="after")
    def _one_to_one(self) -> Contract:
        tools = (self.action, *self.other_tools)
        for names in ([t.tool for t in tools], [t.service for t in tools]):
            if len(set(names)) != len(names):
                raise ValueError("every tool name and every service may stand once only")
        ids = [predicate.id for predicate in self.predicates]
        if len(set(ids)) != len(ids):
            raise ValueError("every predicate id may stand once only")
        if unknown := set(self.unaudited) - set(ids):
            raise ValueError(f"unaudited names no predicate of this contract: {sorted(unknown)}")
        if self.free_band is not None:
            parameter = self.action.parameters.get(self.free_band.parameter)
            if parameter is None or parameter.type not in {"number", "integer"}:
                raise ValueError("the free band names no number parameter of the action")
            canonical = self.action.canonical.get(self.free_band.parameter)
            if (
                isinstance(canonical, int | Decimal)
                and not isinstance(canonical, bool)
                and self.free_band.minimum <= canonical <= self.free_band.maximum
            ):
                raise ValueError(
                    "the canonical value lies in the free band, so no predicate would ever count"
                )
        return self


def load_contract(data: bytes, where: str) -> Contract:
    """Read a ``contract.yaml``.

    Raises:
        sink.strict_yaml.DocumentError: With file, line and a hint.
    """
    return read_model(Contract, data, where)
