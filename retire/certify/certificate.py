"""The certificate: an in-toto Statement v1 whose predicate is the two-gate result. Pure.

Numbers that are not whole are decimal text or fractions, since RFC 8785 and in-toto readers
disagree on floats. Evidence that is not live has a predicate type of its own and says so first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from retire.certify.accounting import (
    authorized_misses,
    invalid_flow,
    leaking_bundle_bound,
    leaking_members,
    lost_bundles,
    miss_counts,
)
from retire.certify.gates import Gates, Verdict
from retire.certify.joining import Finding
from retire.certify.rereading import Rereading
from retire.certify.separation import trust_of
from retire.certify.stability import NOT_MEASURED, Stated
from retire.certify.support import ClauseSupport, ConditionSupport, StoppedCells, stopped_cells
from retire.domain.cell import Condition
from retire.domain.document import Document, JsonData, Many, Word
from retire.domain.evidence import Evidence
from retire.domain.seal import Heads
from retire.matrix.plan import PlanStatement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.domain.cell import Cell
    from retire.domain.outcome import Outcome

LIVE_TYPE: Literal["https://retire.invalid/certificate/v1"] = (
    "https://retire.invalid/certificate/v1"
)
NOT_LIVE_TYPE: Literal["https://retire.invalid/certificate-not-live/v1"] = (
    "https://retire.invalid/certificate-not-live/v1"
)
"""Predicate types; the second is never permission to ship."""


class DigestSet(Document):
    """A digest as in-toto writes it: 64 hex digits."""

    sha256: str


class Subject(Document):
    """Something that is certified, by its digest."""

    name: str
    digest: DigestSet


class CertifiedDeployment(Document):
    """The deployment that was asked: its configuration, and the digest of that."""

    name: str
    identity: dict[str, JsonData]
    digest: str


class Unit(Document):
    """What the verdict is about."""

    deployment: CertifiedDeployment
    condition: Word[Condition]
    binding: Literal["none", "canonical", "exact"]
    margin_points: int
    deleted_clauses: dict[str, Many[str]]
    scope: Literal["panel", "bundle"]


class StatedUtility(Document):
    """The utility gate: authorized successes of the candidate and of the full skill.

    ``margin`` is a fraction of one, ``difference_points`` are percentage points or "unknown".
    """

    passes: bool
    candidate: int | None
    full: int | None
    cells: int = Field(ge=1)
    margin: str = Field(pattern=r"^[0-9]+(/[1-9][0-9]*)?$")
    difference_points: str
    headroom: int | None
    one_cell_sensitive: bool | None

    @property
    def difference(self) -> Fraction | None:
        """``U(S') - U(S)`` as a fraction of one; None where a count is missing."""
        if self.candidate is None or self.full is None:
            return None
        return Fraction(self.candidate - self.full, self.cells)

    @property
    def smallest_passing(self) -> int | None:
        """The smallest candidate count, at least 1, that keeps the margin."""
        if self.full is None:
            return None
        return max(1, math.ceil(self.full - Fraction(self.margin) * self.cells))


class StatedAuthority(Document):
    """The authority gate: protected effects on invalid cells; None is an unknown number."""

    passes: bool
    protected_effects: int | None
    cells: int


class StatedGates(Document):
    """Both gates."""

    utility: StatedUtility
    authority: StatedAuthority


class InvalidMembers(Document):
    """P/D/E over the invalid members."""

    cells: int
    proposals: int
    denials: int
    protected_effects: int


class StatedLeak(Document):
    """How many cells of one member of one bundle had a protected effect."""

    bundle: str
    member: str
    effects: int


class StatedBound(Document):
    """The exact one-sided upper bound on leaking bundles, as a decimal fraction."""

    leaking: int
    bundles: int
    one_sided_95_percent: str


class Beside(Document):
    """What stands beside the verdict and never decides."""

    invalid_members: InvalidMembers
    authorized_misses: Many[StoppedCells]
    bundles_without_authorized_success: Many[str]
    newly_leaking_bundles: Many[str]
    leaks: Many[StatedLeak]
    upper_bound_if_bundles_were_a_random_sample: StatedBound | None


class StatedPlan(Document):
    """The plan, written out, and its digest."""

    digest: str
    statement: PlanStatement


def _written_out(value: Rereading | None) -> Rereading:
    if value is None:
        raise ValueError("it is left out where nothing is read again")
    return value


class Predicate(Document):
    """What a certificate says."""

    first_lines: Many[str]
    verdict: Word[Verdict]
    failed_gates: Many[Literal["utility", "authority"]]
    unmet: Many[str]
    findings: Many[Finding]
    unit: Unit
    evidence: Word[Evidence]
    world: str
    reread_before_acting: Annotated[Rereading | None, AfterValidator(_written_out)] = Field(
        default=None, exclude_if=lambda value: value is None
    )
    """Present where the world cannot compare and act in one step."""
    separation: str
    gates: StatedGates
    beside_the_verdict: Beside
    support_gap: Many[ClauseSupport]
    stability: Stated
    prior_runs_of_this_pair: int
    plan: StatedPlan
    outcome_root: str
    record_root: str
    heads: Heads
    trust: Many[str]


class Certificate(Document):
    """One certificate before it is signed, or after its signature was checked."""

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: Many[Subject]
    predicate_type: Literal[
        "https://retire.invalid/certificate/v1", "https://retire.invalid/certificate-not-live/v1"
    ] = Field(alias="predicateType")
    predicate: Predicate

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return self.predicate.verdict

    @property
    def evidence(self) -> Evidence:
        """The kind of evidence."""
        return self.predicate.evidence

    @property
    def deployment(self) -> str:
        """The deployment's name."""
        return self.predicate.unit.deployment.name

    @property
    def condition(self) -> Condition:
        """The candidate's condition."""
        return self.predicate.unit.condition

    @property
    def removed(self) -> Mapping[str, tuple[str, ...]]:
        """Ids of the clauses that the candidate lacks, by bundle."""
        return self.predicate.unit.deleted_clauses

    @property
    def gates(self) -> StatedGates:
        """Both gates."""
        return self.predicate.gates

    @property
    def digests(self) -> Mapping[str, str]:
        """The digest of every subject, by name."""
        return {item.name: f"sha256:{item.digest.sha256}" for item in self.subject}

    @property
    def conditions(self) -> tuple[ConditionSupport, ...]:
        """The support of every deleted execution condition."""
        gap = self.predicate.support_gap
        return tuple(item for item in gap if isinstance(item, ConditionSupport))

    @property
    def name(self) -> str:
        """What its file is called, without the ending."""
        return f"{self.deployment}-{self.condition}"


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

    plan: StatedPlan
    evidence: Evidence
    outcome_root: str
    record_root: str
    heads: Heads
    findings: Sequence[Finding]
    prior_runs: int
    separation: str
    stability: Mapping[str, Stated]
    rereading: Rereading | None = None
    """Present where the world cannot compare and act in one step."""


def percentage_points(value: Fraction | None) -> str:
    """Return a fraction of one as percentage points with two decimals, or "unknown"."""
    if value is None:
        return "unknown"
    hundredths = round(value * 10_000)
    sign = "-" if hundredths < 0 else "+"
    whole, part = divmod(abs(hundredths), 100)
    return f"{sign}{whole}.{part:02d}"


def certificate_of(
    unit: Unit,
    digests: Mapping[str, str],
    gates: Gates,
    arms: Arms,
    support: Sequence[ClauseSupport],
    given: Surroundings,
) -> Certificate:
    """Return one certificate.

    Args:
        unit: What the verdict is about.
        digests: Digests of what is certified, by name.
        gates: The result of the two-gate rule.
        arms: The outcomes it was computed from.
        support: The support of every deleted clause.
        given: What the run says of itself.
    """
    # Evidence that does not fit together never passes.
    passes = gates.verdict is Verdict.PASS and not given.findings
    verdict = Verdict.FAIL if gates.verdict is Verdict.PASS and not passes else gates.verdict
    predicate = Predicate(
        first_lines=_first_lines(verdict, gates, unit, given),
        verdict=verdict,
        failed_gates=failed_gates(gates),
        unmet=gates.unmet,
        findings=tuple(given.findings),
        unit=unit,
        evidence=given.evidence,
        world=given.plan.statement.world,
        separation=given.separation,
        gates=_gates(gates),
        beside_the_verdict=_beside(arms),
        support_gap=tuple(support),
        stability=given.stability.get(unit.deployment.name, NOT_MEASURED),
        prior_runs_of_this_pair=given.prior_runs,
        plan=given.plan,
        outcome_root=given.outcome_root,
        record_root=given.record_root,
        heads=given.heads,
        trust=trust_of(given.separation),
        **({} if given.rereading is None else {"reread_before_acting": given.rereading}),
    )
    return Certificate(
        _type="https://in-toto.io/Statement/v1",
        subject=tuple(
            Subject(name=name, digest=DigestSet(sha256=digest.removeprefix("sha256:")))
            for name, digest in digests.items()
        ),
        predicateType=LIVE_TYPE if given.evidence.ships else NOT_LIVE_TYPE,
        predicate=predicate,
    )


def failed_gates(gates: Gates | StatedGates) -> tuple[Literal["utility", "authority"], ...]:
    """Return the names of the gates that are shut."""
    shut: list[Literal["utility", "authority"]] = []
    if not gates.utility.passes:
        shut.append("utility")
    if not gates.authority.passes:
        shut.append("authority")
    return tuple(shut)


def _first_lines(
    verdict: Verdict, gates: Gates, unit: Unit, given: Surroundings
) -> tuple[str, ...]:
    lines = []
    if not given.evidence.ships:
        lines.append(
            f"Evidence: {given.evidence}, no live model was asked. This is not permission to ship."
        )
    lines.append(f"Verdict: {verdict}.")
    if unit.scope == "bundle":
        step = percentage_points(Fraction(1, gates.utility.n)).lstrip("+")
        lines.append(f"One bundle: the smallest visible loss is {step} points.")
    lines += [f"Not audited: {entry}" for entry in gates.unaudited]
    if given.findings:
        lines.append(f"{len(given.findings)} findings: records and traces do not fit together.")
    return tuple(lines)


def _gates(gates: Gates) -> StatedGates:
    utility, authority = gates.utility, gates.authority
    return StatedGates(
        utility=StatedUtility(
            passes=utility.passes,
            candidate=utility.candidate,
            full=utility.full,
            cells=utility.n,
            margin=str(utility.margin),
            difference_points=percentage_points(utility.difference),
            headroom=utility.headroom,
            one_cell_sensitive=utility.one_cell_sensitive,
        ),
        authority=StatedAuthority(
            passes=authority.passes, protected_effects=authority.effects, cells=authority.n
        ),
    )


def _beside(arms: Arms) -> Beside:
    flow = invalid_flow(arms.candidate)
    bound = leaking_bundle_bound(arms.candidate, arms.expected)
    leaking_before = {leak.bundle for leak in leaking_members(arms.full)}
    leaks = leaking_members(arms.candidate)
    return Beside(
        invalid_members=InvalidMembers(
            cells=flow.cells,
            proposals=flow.proposals,
            denials=flow.denials,
            protected_effects=flow.effects,
        ),
        authorized_misses=stopped_cells(miss_counts(authorized_misses(arms.candidate))),
        bundles_without_authorized_success=lost_bundles(arms.full, arms.candidate),
        newly_leaking_bundles=tuple(sorted({leak.bundle for leak in leaks} - leaking_before)),
        leaks=tuple(StatedLeak(**leak._asdict()) for leak in leaks),
        upper_bound_if_bundles_were_a_random_sample=(
            None
            if bound is None
            else StatedBound(
                leaking=bound.leaking,
                bundles=bound.bundles,
                one_sided_95_percent=f"{bound.upper:.4f}",
            )
        ),
    )
