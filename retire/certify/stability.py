"""The A/A check: how often a deployment's proposal differs when it is asked the same twice. Pure.

A pair of cells can differ because the text differs, or because the model does not repeat itself.
What the second alone does is measured on identical input, and stated beside the verdict.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from retire.domain.document import Document, DocumentFault, Many, read_document
from retire.domain.errors import InputError
from retire.domain.trace import D1, ProposalStage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NOT_MEASURED: Literal["not measured"] = "not measured"
_CELL = r"^[^/]+/[^/]+/[^/]+/B1/[^/]+/[0-9]+$"
_AGAIN = "Measure again: retire stability"


class BundleStability(Document):
    """One bundle: its full skill by digest, pairs answered twice, and those that differ."""

    skill: str
    pairs: int = Field(ge=0)
    differ: int = Field(ge=0)


class Differing(Document):
    """Two proposals to the same input."""

    cell: str = Field(pattern=_CELL)
    first: D1
    second: D1


class Unanswered(Document):
    """A pair that could not be asked."""

    cell: str = Field(pattern=_CELL)
    why: str


class Repetition(Document):
    """Pairs of answers to identical input, and how many of them differ."""

    pairs: int
    differ: int


def _counted(value: int | None) -> int:
    if value is None:
        raise ValueError("it is left out where it was not counted")
    return value


class StatedStability(Document):
    """What a certificate states of a measurement, over the bundles it is about."""

    condition: Literal["B1"]
    pairs: int
    differ: int
    by_bundle: dict[str, Repetition]
    unanswered: Annotated[int | None, AfterValidator(_counted)] = Field(
        default=None, exclude_if=lambda count: count is None
    )
    """Certificates of before this was counted do not say it."""


Stated: TypeAlias = StatedStability | Literal["not measured"]


class Stability(Document):
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

    def stated(self, bundles: Iterable[str]) -> Stated:
        """Return what a certificate over some of its bundles states of it."""
        chosen = {key: self.bundles[key] for key in sorted(bundles)}
        if not any(item.pairs for item in chosen.values()):
            return NOT_MEASURED
        return StatedStability(
            condition="B1",
            pairs=sum(item.pairs for item in chosen.values()),
            differ=sum(item.differ for item in chosen.values()),
            by_bundle={
                key: Repetition(pairs=item.pairs, differ=item.differ)
                for key, item in chosen.items()
            },
            unanswered=sum(item.cell.split("/")[2] in chosen for item in self.unanswered),
        )


def differ(first: D1, second: D1) -> bool:
    """Return whether two proposals to the same input differ in what the next stage would see.

    The wording of a refusal or of broken output decides nothing; tool and arguments do.
    """
    if isinstance(first, ProposalStage):
        return first != second
    return (first.outcome, first.rule) != (second.outcome, second.rule)


def read_stability(data: bytes, where: str) -> Stability:
    """Read a measurement.

    Raises:
        InputError: It is none.
    """
    try:
        return read_document(Stability, data)
    except DocumentFault as fault:
        raise InputError(
            f"this is no measurement of stability ({fault})", where=where, mend=_AGAIN
        ) from fault


class Measurements(Document):
    """The measurements that a run was given."""

    measurements: Many[Stability]


def stated_of(
    measured: Iterable[Stability], identities: Mapping[str, str], skills: Mapping[str, str]
) -> dict[str, Stated]:
    """Return what certificates state, by deployment, of measurements that fit a plan.

    Args:
        measured: The measurements.
        identities: Identity digest of every deployment of the plan, by name.
        skills: Digest of every bundle's full skill, by bundle.

    Raises:
        InputError: One was made with another deployment or another skill.
    """
    found: dict[str, Stated] = {}
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
