"""A signed statement read back into the terms that it was made from. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from retire.certify.accounting import Stage, Stop
from retire.certify.certifying import Certified, Placement
from retire.certify.gates import AuthorityGate, Gates, UtilityGate, Verdict
from retire.certify.joining import Finding
from retire.certify.support import ClauseSupport, DeletedClause, Support, TruthCounts
from retire.domain.cell import Condition
from retire.domain.clause import ConditionKind
from retire.domain.errors import InputError
from retire.pages.words import Leak, Told

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.bundle import Bundle
    from retire.domain.clause import Clause
    from retire.skill import SkillDocument

SHAPE = (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError)
"""What reading a document of another shape can raise."""

_BLOCKING = (Support.AUDITED_LEAKS, Support.NEVER_FALSE, Support.AUDITED_INCOMPLETE)


@dataclass(frozen=True, slots=True)
class LeakCount:
    """How many repetitions of an invalid member had a protected effect."""

    member: str
    effects: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """A clause that may not go, and what the audit says of it."""

    clause: Clause
    support: ClauseSupport

    @property
    def rule(self) -> str:
        """The predicate that the clause states, or what else its condition is about."""
        deleted = self.support.clause
        return deleted.predicate or str(deleted.kind)

    @property
    def leaks(self) -> bool:
        """Whether its removal was seen to leak; otherwise nothing tested it."""
        return self.support.status is Support.AUDITED_LEAKS


@dataclass(frozen=True, slots=True)
class Judged:
    """One bundle's certificate as its signed statement has it.

    ``repetitions`` is how often each cell was declared; ``blocked`` are the clauses that may not
    go, in document order.
    """

    item: Certified
    bundle: str
    evidence: str
    margin_points: int
    repetitions: int
    plan_digest: str
    outcome_root: str
    findings: tuple[Finding, ...]
    leaks: tuple[LeakCount, ...]
    blocked: tuple[Blocked, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return self.item.verdict

    @property
    def condition(self) -> Condition:
        """The candidate's condition."""
        return self.item.placement.condition

    @property
    def deployment(self) -> str:
        """The deployment's name."""
        return self.item.placement.deployment

    @property
    def ships(self) -> bool:
        """Whether the evidence is of the kind that may permit shipping."""
        return self.evidence == "live_model"


def read_judged(statement: Mapping[str, Any], skill: SkillDocument) -> Judged:
    """Read a statement about one bundle, whose full skill is given.

    Raises:
        InputError: Not a statement of a certificate, or one about another skill or a panel.
    """
    try:
        return _judged(statement, skill)
    except SHAPE as error:
        raise InputError(
            f"this is no certificate ({type(error).__name__}: {error})",
            mend="It may come from another version: use the same version as whoever signed it",
        ) from error


def read_certified(statement: Mapping[str, Any]) -> Certified:
    """Read what a statement says of one deployment and condition, over one bundle or a panel.

    Raises:
        InputError: Not a statement of a certificate.
    """
    try:
        return _certified(statement, statement["predicate"])
    except SHAPE as error:
        raise InputError(
            f"this is no certificate ({type(error).__name__}: {error})",
            mend="It may come from another version: use the same version as whoever signed it",
        ) from error


def read_findings(statement: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Read what the certifier found that does not fit together; the statement was read before."""
    return tuple(
        Finding(str(it["kind"]), str(it["where"]), str(it["what"]))
        for it in statement["predicate"]["findings"]
    )


def _judged(statement: Mapping[str, Any], skill: SkillDocument) -> Judged:
    predicate = statement["predicate"]
    removed = predicate["unit"]["deleted_clauses"]
    if len(removed) != 1:
        raise InputError(
            f"the certificate is about {len(removed)} bundles",
            mend="Name the certificate of one bundle, as `retire certify` makes it",
        )
    (bundle,) = removed
    _check_skill(statement, bundle, skill)
    item = _certified(statement, predicate)
    return Judged(
        item=item,
        bundle=bundle,
        evidence=str(predicate["evidence"]),
        margin_points=int(predicate["unit"]["margin_points"]),
        repetitions=int(predicate["plan"]["statement"]["protocol"]["repetitions"]),
        plan_digest=str(predicate["plan"]["digest"]),
        outcome_root=str(predicate["outcome_root"]),
        findings=read_findings(statement),
        leaks=tuple(
            LeakCount(str(it["member"]), int(it["effects"]))
            for it in predicate["beside_the_verdict"]["leaks"]
        ),
        blocked=_blocked(item, skill),
    )


def _check_skill(statement: Mapping[str, Any], bundle: str, skill: SkillDocument) -> None:
    digests = {it["name"]: "sha256:" + it["digest"]["sha256"] for it in statement["subject"]}
    if digests[f"{bundle}/full-skill"] != skill.digest:
        raise InputError(
            "the certificate is about another full skill",
            mend="Name the bundle as it was when it was certified",
        )


def _certified(statement: Mapping[str, Any], predicate: Mapping[str, Any]) -> Certified:
    unit = predicate["unit"]
    removed = {key: tuple(value) for key, value in unit["deleted_clauses"].items()}
    return Certified(
        placement=Placement(str(unit["deployment"]["name"]), Condition(unit["condition"]), removed),
        gates=_gates(predicate),
        verdict=Verdict(predicate["verdict"]),
        support=tuple(_support(entry) for entry in predicate["support_gap"]),
        statement=statement,
    )


def _gates(predicate: Mapping[str, Any]) -> Gates:
    utility, authority = predicate["gates"]["utility"], predicate["gates"]["authority"]
    candidate, full = _count(utility["candidate"]), _count(utility["full"])
    cells, margin = int(utility["cells"]), Fraction(utility["margin"])
    difference = None
    if candidate is not None and full is not None:
        difference = Fraction(candidate - full, cells)
    return Gates(
        utility=UtilityGate(
            candidate=candidate,
            full=full,
            n=cells,
            margin=margin,
            passes=utility["passes"] is True,
            difference=difference,
            smallest_passing=None if full is None else max(1, math.ceil(full - margin * cells)),
            headroom=_count(utility["headroom"]),
            one_cell_sensitive=utility["one_cell_sensitive"],
        ),
        authority=AuthorityGate(
            effects=_count(authority["protected_effects"]),
            n=int(authority["cells"]),
            passes=authority["passes"] is True,
        ),
        verdict=Verdict(predicate["verdict"]),
        unmet=tuple(str(entry) for entry in predicate["unmet"]),
    )


def _count(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise TypeError("a count is no whole number")


def _support(entry: Mapping[str, Any]) -> ClauseSupport:
    bundle, clause = str(entry["bundle"]), str(entry["clause"])
    none = TruthCounts(false=0, true=0)
    if entry["role"] == "task_guidance":
        return ClauseSupport(DeletedClause(bundle, clause, None), None, none, none, 0, {})
    predicate = entry["predicate"]
    return ClauseSupport(
        clause=DeletedClause(
            bundle,
            clause,
            None if predicate is None else str(predicate),
            ConditionKind(entry["kind"]),
        ),
        status=Support(entry["status"]),
        licensing=_truths(entry["licensing_evidence"]),
        audit=_truths(entry["audit"]),
        effects=int(entry["protected_effects"]),
        stops={read_stop(it): int(it["cells"]) for it in entry["stopped"]},
    )


def read_stop(entry: Mapping[str, Any]) -> Stop:
    """Read where cells stopped."""
    return Stop(Stage(entry["stage"]), str(entry["reason"]), str(entry["parameter"]))


def _truths(counts: Mapping[str, Any]) -> TruthCounts:
    return TruthCounts(false=int(counts["false"]), true=int(counts["true"]))


def _blocked(item: Certified, skill: SkillDocument) -> tuple[Blocked, ...]:
    found = [
        Blocked(skill.clause(support.clause.clause), support)
        for support in item.support
        if support.status in _BLOCKING
    ]
    return tuple(sorted(found, key=lambda blocked: blocked.clause.start))


def told_of(
    judged: Judged, bundle: Bundle, traces: Mapping[str, Mapping[str, Any]], place: str
) -> Told:
    """Return what the words of ``retire certify`` rest on.

    Args:
        judged: The certificate.
        bundle: Its bundle.
        traces: Body of one leaking trace by member, as far as they are at hand.
        place: Where the certificate lies.
    """
    leaks: Sequence[Leak] = [
        Leak(judged.bundle, it.member, it.effects, judged.repetitions, traces.get(it.member))
        for it in judged.leaks
    ]
    return Told(
        item=judged.item,
        bundles={judged.bundle: bundle},
        evidence=judged.evidence,
        margin_points=judged.margin_points,
        findings=judged.findings,
        leaks=leaks,
        place=place,
    )
