"""The A/A check: how often a deployment's proposal differs when it is asked the same twice. Pure.

A pair of cells can differ because the text differs, or because the model does not repeat itself.
What the second alone does is measured on identical input, and stated beside the verdict.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NOT_MEASURED = "not measured"
_CELL = r"^[^/]+/[^/]+/[^/]+/B1/[^/]+/[0-9]+$"
_AGAIN = "Measure again: retire stability"


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class BundleStability(_Strict):
    """One bundle: its full skill by digest, pairs answered twice, and those that differ."""

    skill: str
    pairs: int = Field(ge=0)
    differ: int = Field(ge=0)


class Differing(_Strict):
    """Two proposals to the same input."""

    cell: str = Field(pattern=_CELL)
    first: dict[str, Any]
    second: dict[str, Any]


class Unanswered(_Strict):
    """A pair that could not be asked."""

    cell: str = Field(pattern=_CELL)
    why: str


class Stability(_Strict):
    """What one measurement found, for one deployment under the full skill (B1)."""

    schema_: Literal["retire.stability/v1"] = Field(alias="schema")
    deployment: str
    identity_digest: str
    evidence: str
    seed: int
    repetitions: int = Field(ge=1)
    bundles: dict[str, BundleStability]
    differing: list[Differing]
    unanswered: list[Unanswered]

    @model_validator(mode="after")
    def _adds_up(self) -> Stability:
        """Counts and lists say the same: a file is read that anybody may have written."""
        differing = Counter(item.cell.split("/")[2] for item in self.differing)
        unanswered = Counter(item.cell.split("/")[2] for item in self.unanswered)
        if not {*differing, *unanswered} <= set(self.bundles):
            raise ValueError("a pair belongs to no bundle of the file")
        for key, item in self.bundles.items():
            if item.differ > item.pairs or item.differ != differing[key]:
                raise ValueError(f"{key}: the pairs that differ are not those that are listed")
            if (item.pairs + unanswered[key]) % self.repetitions:
                raise ValueError(f"{key}: a member was asked less often than the others")
        return self

    def stated(self, bundles: Iterable[str]) -> dict[str, Any] | str:
        """Return what a certificate over some of its bundles states of it."""
        chosen = {key: self.bundles[key] for key in sorted(bundles)}
        if not any(item.pairs for item in chosen.values()):
            return NOT_MEASURED
        return {
            "condition": "B1",
            "pairs": sum(item.pairs for item in chosen.values()),
            "differ": sum(item.differ for item in chosen.values()),
            "by_bundle": {
                key: {"pairs": item.pairs, "differ": item.differ} for key, item in chosen.items()
            },
            "unanswered": sum(item.cell.split("/")[2] in chosen for item in self.unanswered),
        }


def differ(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether two proposals to the same input differ in what the next stage would see.

    The wording of a refusal or of broken output decides nothing; tool and arguments do.
    """
    names = ("outcome", "rule", "tool", "arguments")
    return any(first.get(name) != second.get(name) for name in names)


def read_stability(data: bytes, where: str) -> Stability:
    """Read a measurement.

    Raises:
        InputError: It is none.
    """
    try:
        return Stability.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(
            f"this is no measurement of stability ({place}: {first['msg']})",
            where=where,
            mend=_AGAIN,
        ) from error


def stated_of(
    measured: Iterable[Stability], plan: Mapping[str, Any]
) -> dict[str, dict[str, Any] | str]:
    """Return what certificates state, by deployment, of measurements that fit a plan's statement.

    Raises:
        InputError: One was made with another deployment or another skill.
    """
    identities = plan["deployments"]
    skills = {key: str(value["skill"]) for key, value in plan["bundles"].items()}
    found: dict[str, dict[str, Any] | str] = {}
    for item in measured:
        if identities.get(item.deployment) != item.identity_digest:
            raise InputError(
                f"it measures {item.deployment!r} as the plan does not hold it",
                where="--stability",
                mend=_AGAIN,
            )
        for key, skill in skills.items():
            if key not in item.bundles or item.bundles[key].skill != skill:
                raise InputError(
                    f"it was not measured with the full skill of bundle {key}",
                    where="--stability",
                    mend=_AGAIN,
                )
        found[item.deployment] = item.stated(skills)
    return found
