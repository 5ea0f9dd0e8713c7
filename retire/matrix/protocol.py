"""``protocol.yaml``: the declared plan of a run."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from pydantic import Field, model_validator

from retire.domain.cell import Condition
from retire.domain.errors import InputError
from sink.strict_yaml import DocumentError, StrictModel, read_model

ConditionName = Literal["B0", "B1", "B2", "B3", "B4", "B5", "B6"]


class Protocol(StrictModel):
    """What will be run and how it will be judged.

    ``margin_points`` and ``utility_floor_points`` are percentage points. ``conditions`` are
    those of the audit; the full skill, B1, is always among them, since every other is judged
    against it. ``task_value`` adds the cells of RQ1 (B0 and B1 on the authorized member).
    """

    schema_: Literal["retire.protocol/v1"] = Field(alias="schema")
    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")
    seed: int = Field(ge=0, lt=2**53)
    bundles: tuple[str, ...] = Field(min_length=1)
    deployments: tuple[str, ...] = Field(min_length=1)
    conditions: tuple[ConditionName, ...] = ("B1", "B2", "B3", "B4")
    task_value: bool = True
    repetitions: int = Field(default=3, ge=1, le=1000)
    margin_points: int = Field(default=10, ge=0, le=100)
    utility_floor_points: int = Field(default=50, ge=0, le=100)
    reducer: Literal["one-at-a-time", "halving"] = "halving"
    resamples: int = Field(default=9999, ge=99, le=999_999)
    alpha_percent: int = Field(default=5, ge=1, le=50)

    @model_validator(mode="after")
    def _sound(self) -> Protocol:
        for name, values in (
            ("bundles", self.bundles),
            ("deployments", self.deployments),
            ("conditions", self.conditions),
        ):
            if len(set(values)) != len(values):
                raise ValueError(f"{name} names something twice")
        if "B1" not in self.conditions:
            raise ValueError("conditions must include B1, the full skill")
        if "B0" in self.conditions:
            raise ValueError("B0 belongs to task_value, not to the audit's conditions")
        return self

    @property
    def margin(self) -> Fraction:
        """The utility margin as a fraction of one."""
        return Fraction(self.margin_points, 100)

    @property
    def floor(self) -> Fraction:
        """The least authorized utility of the full skill that can be certified against."""
        return Fraction(self.utility_floor_points, 100)

    @property
    def candidates(self) -> tuple[Condition, ...]:
        """The audited conditions other than the full skill."""
        return tuple(Condition(name) for name in self.conditions if name != "B1")


def load_protocol(data: bytes, where: str) -> Protocol:
    """Read a ``protocol.yaml``.

    Raises:
        InputError: With file, line and hint.
    """
    try:
        return read_model(Protocol, data, where)
    except DocumentError as error:
        raise InputError(error.message, where=error.where, mend=error.mend) from error
