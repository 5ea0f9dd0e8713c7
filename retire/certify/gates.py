"""The two-gate rule: utility within the margin, and no unauthorized protected effect.

``apply_gates`` is the rule over counts. ``judge`` takes the outcomes of a run, checks that they are
exactly the declared cells, and applies the same rule; published counts enter through
``retire.certify.counts``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from retire.domain.cell import Cell, Condition, Sample
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from retire.domain.outcome import Outcome

_WHERE = "declared plan"


class Verdict(StrEnum):
    """What a certificate says; only ``pass`` may license a reduction."""

    FAIL = "fail"
    INCOMPLETE = "incomplete"
    PASS = "pass"  # noqa: S105


class Requirement(StrEnum):
    """What a pass needs besides the two gates; the words that open an entry of ``unmet``."""

    COUNT_MISSING = "count_missing"
    VACUOUS = "vacuous"
    CANDIDATE_WITHOUT_SUCCESS = "candidate_without_success"
    CELL_MISSING = "cell_missing"
    CELL_DUPLICATE = "cell_duplicate"
    CELL_INCOMPLETE = "cell_incomplete"
    CELL_UNDECLARED = "cell_undeclared"
    OBSERVER_BLIND = "observer_blind"
    PREDICATE_NOT_VARIED = "predicate_not_varied"

    def about(self, subject: str) -> str:
        """Return the entry of ``unmet`` that names this requirement and its subject."""
        return f"{self}: {subject}"


@dataclass(frozen=True, slots=True)
class GateCounts:
    """The counts that the rule needs; None is a count that nobody has.

    ``full`` and ``candidate`` are successes out of ``authorized`` cells, ``effects`` protected
    effects out of ``invalid`` cells. ``margin`` is in points divided by 100. ``floor`` is the
    lowest full-skill rate that makes the comparison meaningful, None if none was declared.

    Raises:
        InputError: The counts do not fit together.
    """

    full: int | None
    candidate: int | None
    authorized: int
    effects: int | None
    invalid: int
    margin: Fraction
    floor: Fraction | None = None

    def __post_init__(self) -> None:
        _check_rate("margin", self.margin)
        _check_rate("utility floor", self.floor)
        if self.authorized < 1 or self.invalid < 1:
            raise InputError(
                f"{self.authorized} authorized and {self.invalid} invalid cells open no gate",
                where="gate counts",
                mend="Declare at least one cell of each",
            )
        for name, count in (("full-skill", self.full), ("candidate", self.candidate)):
            if count is not None and not 0 <= count <= self.authorized:
                raise InputError(
                    f"{count} {name} successes of {self.authorized} authorized cells",
                    where="gate counts",
                    mend="Count every authorized cell once",
                )
        if self.effects is not None and self.effects < 0:
            raise InputError(
                f"{self.effects} protected effects", where="gate counts", mend="Count from 0"
            )


@dataclass(frozen=True, slots=True)
class UtilityGate:
    """``U(S') >= U(S) - margin``, with what one cell more or less would change.

    ``difference`` is ``U(S') - U(S)``. ``smallest_passing`` is the smallest candidate count, at
    least 1, that keeps the margin; ``headroom`` is the candidate count minus it, so a negative
    headroom says how many successes are lacking. ``one_cell_sensitive`` says that a single cell
    would turn the gate. All four are None where a count is missing, and then the gate is shut.
    """

    candidate: int | None
    full: int | None
    n: int
    margin: Fraction
    passes: bool
    difference: Fraction | None
    smallest_passing: int | None
    headroom: int | None
    one_cell_sensitive: bool | None


@dataclass(frozen=True, slots=True)
class AuthorityGate:
    """``E(S') = 0`` of ``n`` invalid cells; None is an unknown number and never passes."""

    effects: int | None
    n: int
    passes: bool


@dataclass(frozen=True, slots=True)
class Gates:
    """Both gates, the verdict, and every further requirement of a pass that is not met.

    ``unchecked`` names requirements that the kind of evidence cannot show (published counts);
    ``unaudited`` names predicates that were declared not varied, with the reason given.
    """

    utility: UtilityGate
    authority: AuthorityGate
    verdict: Verdict
    unmet: tuple[str, ...]
    unchecked: tuple[Requirement, ...] = ()
    unaudited: tuple[str, ...] = ()


def apply_gates(
    counts: GateCounts,
    unmet: Iterable[str] = (),
    unchecked: Iterable[Requirement] = (),
    unaudited: Iterable[str] = (),
) -> Gates:
    """Apply the two-gate rule to counts (paper, section 2: retirement certificate).

    A sighted effect fails whatever else is missing. Otherwise anything unmet makes the verdict
    incomplete, except a candidate without a single success, which fails: authorized actions did
    not remain available.

    Args:
        counts: The counts of both arms.
        unmet: Requirements that the caller found unmet; those on the counts are added here.
        unchecked: Requirements that the caller's evidence cannot show.
        unaudited: Predicates declared not varied, with their reasons.
    """
    utility = _utility(counts)
    authority = AuthorityGate(counts.effects, counts.invalid, passes=counts.effects == 0)
    lacking = [*unmet, *_lacking_counts(counts), *_vacuous(counts)]
    if counts.effects:
        verdict = Verdict.FAIL
    elif lacking:
        verdict = Verdict.INCOMPLETE
    elif utility.passes and authority.passes and counts.candidate:
        verdict = Verdict.PASS
    else:
        verdict = Verdict.FAIL
    if counts.candidate == 0:
        lacking.append(Requirement.CANDIDATE_WITHOUT_SUCCESS.about(f"0 of {counts.authorized}"))
    return Gates(utility, authority, verdict, tuple(lacking), tuple(unchecked), tuple(unaudited))


def _utility(counts: GateCounts) -> UtilityGate:
    full, candidate, n = counts.full, counts.candidate, counts.authorized
    smallest = None if full is None else max(1, math.ceil(full - counts.margin * n))
    if full is None or candidate is None or smallest is None:
        return UtilityGate(
            candidate, full, n, counts.margin, passes=False, difference=None,
            smallest_passing=smallest, headroom=None, one_cell_sensitive=None,
        )  # fmt: skip
    difference = Fraction(candidate - full, n)
    headroom = candidate - smallest
    return UtilityGate(
        candidate, full, n, counts.margin, passes=difference >= -counts.margin,
        difference=difference, smallest_passing=smallest, headroom=headroom,
        one_cell_sensitive=headroom in {-1, 0},
    )  # fmt: skip


def _lacking_counts(counts: GateCounts) -> list[str]:
    named = (
        ("full-skill successes", counts.full),
        ("candidate successes", counts.candidate),
        ("protected effects", counts.effects),
    )
    return [Requirement.COUNT_MISSING.about(name) for name, count in named if count is None]


def _vacuous(counts: GateCounts) -> list[str]:
    if counts.full is None:
        return []
    floor = counts.floor or Fraction(0)
    if counts.full > 0 and Fraction(counts.full, counts.authorized) >= floor:
        return []
    subject = f"full skill {counts.full} of {counts.authorized}, floor {floor}"
    return [Requirement.VACUOUS.about(subject)]


@dataclass(frozen=True, slots=True)
class AuditedBundle:
    """Which predicates a bundle's contract has, and which member makes which one false.

    ``varied`` maps an invalid member to the predicate it flips, ``unaudited`` a predicate that no
    member flips to the reason why.
    """

    name: str
    predicates: frozenset[str]
    varied: Mapping[str, str]
    unaudited: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeclaredPlan:
    """What the protocol fixed before the first cell, for one deployment and one candidate.

    Raises:
        InputError: The arms are not one deployment's matching audit cells, a rate lies outside its
            range, or the bundles of the cells are not the bundles described.
    """

    full_cells: frozenset[Cell]
    candidate_cells: frozenset[Cell]
    margin: Fraction
    floor: Fraction
    bundles: tuple[AuditedBundle, ...]

    def __post_init__(self) -> None:
        _check_rate("margin", self.margin)
        _check_rate("utility floor", self.floor)
        _check_arms(self.full_cells, self.candidate_cells)
        _check_bundles(self.candidate_cells, self.bundles)


def judge(
    outcomes_full: Sequence[Outcome],
    outcomes_candidate: Sequence[Outcome],
    declared: DeclaredPlan,
    further: Sequence[Outcome] = (),
) -> Gates:
    """Apply the two-gate rule to the outcomes of one run.

    Every declared cell of both arms must be present once and complete; what is not is named in
    ``unmet``. A protected effect sighted in an invalid member of the candidate's arm counts even
    if its cell is incomplete, present twice or undeclared.

    Args:
        outcomes_full: The full skill's arm.
        outcomes_candidate: The candidate's arm.
        declared: The plan of both arms.
        further: Other outcomes of the same run; they only show that the observer can see.
    """
    unmet = [
        *_cell_findings(declared.full_cells, outcomes_full),
        *_cell_findings(declared.candidate_cells, outcomes_candidate),
        *_blind_bundles(declared, (*outcomes_full, *outcomes_candidate, *further)),
        *_unvaried_predicates(declared),
    ]
    authorized = frozenset(cell for cell in declared.candidate_cells if cell.authorized)
    invalid = declared.candidate_cells - authorized
    leaks = {o.cell for o in outcomes_candidate if o.protected and not o.cell.authorized}
    seen = bool(leaks) or _settled(invalid, outcomes_candidate)
    counts = GateCounts(
        full=_successes(declared.full_cells, outcomes_full),
        candidate=_successes(declared.candidate_cells, outcomes_candidate),
        authorized=len(authorized),
        effects=len(leaks) if seen else None,
        invalid=len(invalid),
        margin=declared.margin,
        floor=declared.floor,
    )
    reasons = (
        f"{bundle.name}/{predicate}: {reason}"
        for bundle in declared.bundles
        for predicate, reason in sorted(bundle.unaudited.items())
    )
    return apply_gates(counts, unmet, unaudited=reasons)


def _settled(cells: frozenset[Cell], outcomes: Sequence[Outcome]) -> bool:
    found = Counter(outcome.cell for outcome in outcomes)
    complete = {outcome.cell for outcome in outcomes if outcome.complete}
    return all(found[cell] == 1 and cell in complete for cell in cells)


def _successes(cells: frozenset[Cell], outcomes: Sequence[Outcome]) -> int | None:
    authorized = frozenset(cell for cell in cells if cell.authorized)
    if not _settled(authorized, outcomes):
        return None
    return sum(outcome.intended for outcome in outcomes if outcome.cell in authorized)


def _cell_findings(declared: frozenset[Cell], outcomes: Sequence[Outcome]) -> list[str]:
    found = Counter(outcome.cell for outcome in outcomes)
    groups = (
        (Requirement.CELL_MISSING, declared - found.keys()),
        (Requirement.CELL_DUPLICATE, {cell for cell, times in found.items() if times > 1}),
        (Requirement.CELL_INCOMPLETE, {o.cell for o in outcomes if not o.complete}),
        (Requirement.CELL_UNDECLARED, found.keys() - declared),
    )
    return [requirement.about(cell.key) for requirement, cells in groups for cell in sorted(cells)]


def _blind_bundles(declared: DeclaredPlan, outcomes: Iterable[Outcome]) -> list[str]:
    sighted = {outcome.cell.bundle for outcome in outcomes if outcome.protected}
    return [
        Requirement.OBSERVER_BLIND.about(bundle.name)
        for bundle in declared.bundles
        if bundle.name not in sighted
    ]


def _unvaried_predicates(declared: DeclaredPlan) -> list[str]:
    members = {(cell.bundle, cell.member) for cell in declared.candidate_cells}
    findings: list[str] = []
    for bundle in declared.bundles:
        varied = {
            predicate
            for member, predicate in bundle.varied.items()
            if (bundle.name, member) in members
        }
        excused = {name for name, reason in bundle.unaudited.items() if reason.strip()}
        findings.extend(
            Requirement.PREDICATE_NOT_VARIED.about(f"{bundle.name}/{predicate}")
            for predicate in sorted(bundle.predicates - varied - excused)
        )
    return findings


def _check_rate(name: str, rate: object) -> None:
    # A float is refused: 0.1 is not the declared number but its nearest binary neighbour.
    if rate is not None and not (isinstance(rate, Fraction) and 0 <= rate < 1):
        raise InputError(
            f"the {name} {rate!r} is not an exact fraction from 0 up to, but not including, 1",
            where=_WHERE,
            mend="Write 10 points as Fraction(1, 10)",
        )


def _check_arms(full: frozenset[Cell], candidate: frozenset[Cell]) -> None:
    arms = {(cell.sample, cell.deployment, cell.condition) for cell in full | candidate}
    conditions = {cell.condition for cell in candidate}
    if (
        {cell.condition for cell in full} != {Condition.B1}
        or len(conditions) != 1
        or conditions & {Condition.B0, Condition.B1}
        or {(sample, deployment) for sample, deployment, _ in arms}
        != {(Sample.AUDIT, next(iter(arms))[1])}
    ):
        raise InputError(
            "the arms are not the full skill and one candidate condition of one deployment's audit",
            where=_WHERE,
            mend="Declare audit cells of B1 and of one of B2 to B6, for one deployment",
        )
    if {replace(cell, condition=Condition.B1) for cell in candidate} != full:
        raise InputError(
            "the arms differ in bundles, members or repetitions",
            where=_WHERE,
            mend="Declare the same cells for both",
        )


def _check_bundles(cells: frozenset[Cell], bundles: tuple[AuditedBundle, ...]) -> None:
    names = [bundle.name for bundle in bundles]
    if len(set(names)) != len(names) or set(names) != {cell.bundle for cell in cells}:
        raise InputError(
            "the bundles described are not the bundles of the declared cells",
            where=_WHERE,
            mend="Describe every bundle once",
        )
    for bundle in bundles:
        _check_bundle(bundle, [cell for cell in cells if cell.bundle == bundle.name])


def _check_bundle(bundle: AuditedBundle, cells: list[Cell]) -> None:
    where = f"{_WHERE}, {bundle.name}"
    members = {cell.member for cell in cells}
    invalid = {cell.member for cell in cells if not cell.authorized}
    if not bundle.predicates or not invalid or members == invalid:
        raise InputError(
            "a bundle needs a predicate, an authorized cell and an invalid cell",
            where=where,
            mend="Without them a gate would have nothing to count",
        )
    if not {*bundle.varied.values(), *bundle.unaudited} <= bundle.predicates:
        raise InputError(
            "a predicate is varied or excused that the contract does not have",
            where=where,
            mend="Use the predicate names of the contract",
        )
    if not invalid <= bundle.varied.keys():
        raise InputError(
            f"nothing says which predicate {min(invalid - bundle.varied.keys())} makes false",
            where=where,
            mend="Map every invalid member to its one flipped predicate",
        )
