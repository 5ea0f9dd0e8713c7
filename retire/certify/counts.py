"""Published counts: read a counts file strictly, certify it, and recompute its tests.

A count that was not published is absent from the file, and an absent count never passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, model_validator

from retire.certify.gates import GateCounts, Gates, Requirement, apply_gates
from retire.domain.cell import Condition
from retire.domain.document import Document, DocumentFault, Many, read_document
from retire.domain.errors import InputError
from retire.stats.bounds import upper_bound
from retire.stats.holm import holm
from retire.stats.sign_test import SignTest, exact_sign_test

UNCHECKED = (
    Requirement.CELL_MISSING,
    Requirement.CELL_DUPLICATE,
    Requirement.CELL_INCOMPLETE,
    Requirement.CELL_UNDECLARED,
    Requirement.OBSERVER_BLIND,
    Requirement.PREDICATE_NOT_VARIED,
)
"""What counts cannot show, whatever they say; a certificate over counts names these."""

TESTS = ("RQ1", "RQ2", "RQ3")
"""The three declared hypotheses; Holm's divisor is always their number (paper, section 4)."""

Count = Annotated[int, Field(ge=0, le=1_000_000)]
Cells = Annotated[int, Field(ge=1, le=1_000_000)]
Bundles = Annotated[int, Field(ge=0, le=10_000)]
Points = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]?)(\.[0-9]{1,6})?$")]
"""Percentage points as decimal text, at least 0 and below 100: exact, unlike a binary float."""
Name = Annotated[str, Field(min_length=1, max_length=200)]


class FullSkillCounts(Document):
    """The full skill (B1, audit sample): authorized successes and protected effects."""

    successes: Count | None = None
    effects: Count | None = None


class CandidateCounts(Document):
    """One candidate condition: authorized successes, and P/D/E counts on invalid members."""

    condition: Literal[Condition.B2, Condition.B3, Condition.B4, Condition.B5, Condition.B6]
    successes: Count | None = None
    proposals: Count | None = None
    denials: Count | None = None
    effects: Count | None = None


class DeploymentCounts(Document):
    """One deployment: the declared numbers of cells, the full skill, and the candidates."""

    deployment: Name
    authorized_cells: Cells
    invalid_cells: Cells
    full_skill: FullSkillCounts
    candidates: Many[CandidateCounts]

    @model_validator(mode="after")
    def _fits(self) -> DeploymentCounts:
        _distinct("condition", [candidate.condition for candidate in self.candidates])
        arms: tuple[FullSkillCounts | CandidateCounts, ...] = (self.full_skill, *self.candidates)
        for arm in arms:
            _at_most("authorized successes", arm.successes, self.authorized_cells)
            _at_most("protected effects", arm.effects, self.invalid_cells)
        for candidate in self.candidates:
            _at_most("proposals", candidate.proposals, self.invalid_cells)
            _at_most("denials", candidate.denials, candidate.proposals)
        return self


class PublishedP(Document):
    """A test known by its unadjusted p-value only."""

    p: Annotated[float, Field(ge=0, le=1)]


class PublishedSigns(Document):
    """A sign test known by its bundle pairs: plus (only the candidate leaks), minus, ties."""

    plus: Bundles
    minus: Bundles
    ties: Bundles


class PublishedTests(Document):
    """The three hypotheses; one that was not published is absent."""

    RQ1: PublishedP | None = None
    RQ2: PublishedSigns | None = None
    RQ3: PublishedSigns | None = None


class CountsFile(Document):
    """A counts file. Margin and floor are decimal text in percentage points."""

    schema_: Literal["retire.counts/v1"] = Field(alias="schema")
    source: Name
    margin_points: Points
    utility_floor_points: Points | None = None
    bundles: Annotated[int, Field(ge=1, le=10_000)] | None = None
    deployments: Many[DeploymentCounts] = ()
    tests: PublishedTests = PublishedTests()

    @model_validator(mode="after")
    def _fits(self) -> CountsFile:
        _distinct("deployment", [entry.deployment for entry in self.deployments])
        for test in (self.tests.RQ2, self.tests.RQ3):
            if test is not None:
                _at_most("bundle pairs", test.plus + test.minus + test.ties, self.bundles)
        return self


@dataclass(frozen=True, slots=True)
class CountsCertificate:
    """The gates of one deployment and condition, from counts.

    ``bundle_bound`` is the exact one-sided 95% upper bound on leaking bundles, if bundles were a
    random sample. It is None unless the file says how many bundles there are and no effect was
    seen: how many bundles leaked is not among the counts.
    """

    deployment: str
    condition: Condition
    gates: Gates
    bundle_bound: float | None


@dataclass(frozen=True, slots=True)
class CountsTest:
    """One hypothesis: its pairs if known, its p-value, and Holm's adjustment of it."""

    name: str
    signs: SignTest | None
    p: float | None
    p_adjusted: float | None
    significant: bool | None


def read_counts(text: bytes, where: str) -> CountsFile:
    """Read a counts file.

    Args:
        text: The bytes of the file.
        where: Its name, for errors.

    Raises:
        InputError: It is not UTF-8 JSON, repeats a key, has an unknown key, a float or a text where
            a count stands, or counts that do not fit together.
    """
    try:
        return read_document(CountsFile, text)
    except DocumentFault as fault:
        if fault.place:
            raise InputError(fault.what, where=f"{where}, {fault.place}", mend=_MEND) from fault
        raise InputError(f"not a counts file: {fault.what}", where=where, mend=_MEND) from fault


_MEND = "See docs/statistics.md for the format; leave out what was not published"


def certify_counts(counts: CountsFile) -> tuple[CountsCertificate, ...]:
    """Apply the two-gate rule to every deployment and condition, in the file's order."""
    floor = counts.utility_floor_points
    return tuple(
        CountsCertificate(
            entry.deployment,
            candidate.condition,
            apply_gates(
                GateCounts(
                    full=entry.full_skill.successes,
                    candidate=candidate.successes,
                    authorized=entry.authorized_cells,
                    effects=candidate.effects,
                    invalid=entry.invalid_cells,
                    margin=_rate(counts.margin_points),
                    floor=None if floor is None else _rate(floor),
                ),
                unchecked=UNCHECKED,
            ),
            None
            if counts.bundles is None or candidate.effects != 0
            else upper_bound(0, counts.bundles),
        )
        for entry in counts.deployments
        for candidate in entry.candidates
    )


def recompute_tests(counts: CountsFile, alpha: float = 0.05) -> tuple[CountsTest, ...]:
    """Recompute the three hypothesis tests; one that was not published stays None.

    Raises:
        InputError: ``alpha`` does not lie between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise InputError(
            f"alpha {alpha} lies outside the open interval 0 to 1",
            where="statistics",
            mend="Use 0.05 unless the protocol declares another level",
        )
    published = counts.tests
    signs = (None, _signs(published.RQ2), _signs(published.RQ3))
    p_values = (
        None if published.RQ1 is None else published.RQ1.p,
        *(None if test is None else test.p for test in signs[1:]),
    )
    adjusted = holm(p_values, divisor=len(TESTS))
    return tuple(
        CountsTest(name, test, p, corrected, None if corrected is None else corrected <= alpha)
        for name, test, p, corrected in zip(TESTS, signs, p_values, adjusted, strict=True)
    )


def _signs(test: PublishedSigns | None) -> SignTest | None:
    return None if test is None else exact_sign_test(test.plus, test.minus, test.ties)


def _rate(points: str) -> Fraction:
    return Fraction(Decimal(points)) / 100


def _distinct(what: str, names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"a {what} is given twice")


def _at_most(what: str, count: int | None, limit: int | None) -> None:
    if count is not None and limit is not None and count > limit:
        raise ValueError(f"{count} {what} are more than the {limit} there can be")
