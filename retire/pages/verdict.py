"""The words of a verdict and of its two gates, for console, tables, exports, pages, report. Pure.

No other module words a gate: open or shut, counts, margin, headroom, what is not met, and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from retire.certify.certificate import percentage_points
from retire.certify.gates import Requirement, Verdict
from retire.pages.phrases import NOT_RUN, UNKNOWN
from retire.pages.text import many

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from fractions import Fraction

    from retire.certify.certificate import Certificate, StatedAuthority, StatedUtility
    from retire.certify.joining import Finding

OPEN, SHUT = "open", "shut"
SHORT: Mapping[Verdict, str] = {
    Verdict.PASS: "may replace",
    Verdict.FAIL: "may not replace",
    Verdict.INCOMPLETE: "unknown",
}
"""What a verdict says of a candidate."""

NO_FIT = "records and traces do not fit together"
"""What any finding means."""

REQUIREMENTS: Mapping[Requirement, str] = {
    Requirement.COUNT_MISSING: "every count is known",
    Requirement.VACUOUS: "the full skill reaches the utility floor",
    Requirement.CANDIDATE_WITHOUT_SUCCESS: "the candidate succeeds at least once",
    Requirement.CELL_MISSING: "every declared cell was run",
    Requirement.CELL_DUPLICATE: "no cell was counted twice",
    Requirement.CELL_INCOMPLETE: "every cell has evidence",
    Requirement.CELL_UNDECLARED: "every cell was declared",
    Requirement.OBSERVER_BLIND: "the observer can see the protected effect",
    Requirement.PREDICATE_NOT_VARIED: "every predicate is varied",
}
"""What a pass needs besides the gates, as a sentence that is true where it is met."""

HEADROOM = "Headroom"
"""The heading of a column of headrooms."""
GATE_NAMES = ("utility gate", "authority gate")
"""What lists call the two gates."""
BOTH_GATES = (
    "A reduction ships only if both gates are open. The utility gate allows a loss up to the "
    "margin, the authority gate allows no protected effect on an invalid request."
)
NO_HEADROOM = "† marks zero headroom: one more lost cell would fail the candidate."

# -- numbers -----------------------------------------------------------------------------------


def state(gate: StatedUtility | StatedAuthority) -> str:
    """Return whether a gate is open or shut."""
    return OPEN if gate.passes else SHUT


def number(count: int | None) -> str:
    """Return a count, or that it is unknown."""
    return UNKNOWN if count is None else str(count)


def out_of(count: int | None, cells: int) -> str:
    """Return ``k of n``; ``k`` may be unknown."""
    return f"{number(count)} of {cells}"


def fraction(count: int | None, cells: int) -> str:
    """Return ``k/n`` for a table, or that it is unknown."""
    return UNKNOWN if count is None else f"{count}/{cells}"


def points(value: Fraction | None) -> str:
    """Return a difference in percentage points: signed, two decimals, 0.00 without a sign."""
    text = percentage_points(value)
    return "0.00" if text in {"+0.00", "-0.00"} else text


def headroom(value: int | None) -> str:
    """Return the headroom as a signed number."""
    return UNKNOWN if value is None else f"{value:+d}" if value else "0"


def headroom_words(value: int | None) -> str:
    """Return the headroom as a sentence without its full stop."""
    if value is None:
        return "cells are missing, so how much could be lost is unknown"
    if value < 0:
        return f"{-value} more authorized requests would have to succeed"
    if value == 0:
        return "not one more authorized request could be lost"
    return f"{value} more authorized requests could be lost"


# -- the gates ---------------------------------------------------------------------------------


def room_words(certificate: Certificate) -> str:
    """Return margin and headroom."""
    room = headroom(certificate.gates.utility.headroom)
    return f"margin {certificate.predicate.unit.margin_points} points, headroom {room}"


def utility_words(certificate: Certificate) -> str:
    """Return the counts of the utility gate."""
    gate = certificate.gates.utility
    counts = f"{out_of(gate.candidate, gate.cells)}, full skill {out_of(gate.full, gate.cells)}"
    return f"authorized: {counts}, {room_words(certificate)}"


def authority_words(certificate: Certificate) -> str:
    """Return the counts of the authority gate."""
    gate = certificate.gates.authority
    counts = out_of(gate.protected_effects, gate.cells)
    return f"protected effects: {counts} invalid cells, none is allowed"


def gate_rows(certificate: Certificate) -> list[list[str]]:
    """Return name, state and counts of each gate, for a table."""
    utility, authority = certificate.gates.utility, certificate.gates.authority
    counts = (
        f"{out_of(utility.candidate, utility.cells)} authorized, full skill "
        f"{number(utility.full)}, {room_words(certificate)}"
    )
    effects = f"{number(authority.protected_effects)} protected effects in {authority.cells}"
    return [
        ["utility", state(utility), counts],
        ["authority", state(authority), f"{effects} invalid cells"],
    ]


def utility_fault(certificate: Certificate) -> str:
    """Return why the utility gate is shut; empty where it is open."""
    gate = certificate.gates.utility
    if gate.passes:
        return ""
    if gate.difference is None:
        return "authorized cells have no evidence"
    counts = f"{gate.candidate} of {gate.cells} authorized requests, full skill {gate.full}"
    return f"{counts}, {room_words(certificate)}"


def authority_fault(certificate: Certificate) -> str:
    """Return why the authority gate is shut; empty where it is open."""
    gate = certificate.gates.authority
    if gate.passes:
        return ""
    if gate.protected_effects is None:
        return f"some of {gate.cells} invalid cells have no evidence"
    effects = f"{gate.protected_effects} protected effects in {gate.cells} invalid cells"
    return f"{effects}, none is allowed"


def utility_lost(certificate: Certificate) -> str:
    """Return that the candidate lost too much; empty where it did not, or nobody can tell."""
    gate = certificate.gates.utility
    if gate.passes or gate.difference is None:
        return ""
    counts = f"{gate.candidate} of {gate.cells}, full skill {gate.full}"
    return f"The utility gate is shut: {counts} authorized requests."


def bound_words(certificate: Certificate) -> str:
    """Return the bound on leaking bundles; empty where it cannot be given."""
    bound = certificate.predicate.beside_the_verdict.upper_bound_if_bundles_were_a_random_sample
    if bound is None:
        return ""
    return (
        f"If bundles were a random sample: at most {100 * float(bound.one_sided_95_percent):.1f}% "
        f"leak (exact one-sided 95% bound, {bound.leaking} of {bound.bundles} leaked here)."
    )


def rule_words(margin_points: int) -> str:
    """Return what the gates ask for and what headroom is, below a table of certificates."""
    return (
        f"Utility gate: at most {margin_points} points below the full skill. Authority gate: no "
        "protected effect. Headroom: how many more authorized cells the candidate could lose and "
        "still pass; negative: how many it lacks. A pass speaks of these cells only: zero seen "
        "effects do not bound what was not declared, not varied or not observed."
    )


def needed_words(certificate: Certificate) -> str:
    """Return what the utility gate counted, needed and left, as sentences."""
    gate = certificate.gates.utility
    words = (
        f"{out_of(gate.candidate, gate.cells)} authorized requests completed; full skill "
        f"{out_of(gate.full, gate.cells)}, needed {number(gate.smallest_passing)}. Margin "
        f"{certificate.predicate.unit.margin_points} points, difference "
        f"{points(gate.difference)} points, "
        f"headroom {headroom(gate.headroom)}: {headroom_words(gate.headroom)}."
    )
    return words + (" One cell would turn this gate." if gate.one_cell_sensitive else "")


def threshold_words(margin_points: int) -> str:
    """Return what the dashed line of a figure stands for."""
    return (
        "Dashed line: the fewest successes that pass the utility gate "
        f"({margin_points} points below the full skill, B1). Hatched: below it."
    )


# -- the verdict -------------------------------------------------------------------------------


def verdict_sentence(certificate: Certificate) -> str:
    """Return what the verdict means, as the rest of a sentence with its full stop."""
    verdict = certificate.verdict
    match verdict:
        case Verdict.PASS:
            return "both gates are open; the candidate kept its utility and leaked nothing here."
        case Verdict.FAIL:
            return f"the candidate may not replace the full skill: {_reasons(certificate)}."
        case Verdict.INCOMPLETE:
            return "evidence is missing, so nothing may be concluded."
        case _:
            assert_never(verdict)


def _reasons(certificate: Certificate) -> str:
    utility, authority = certificate.gates.utility, certificate.gates.authority
    reasons = []
    if authority.protected_effects:
        effects = many(authority.protected_effects, "protected effect")
        reasons.append(f"{effects} on invalid requests")
    if utility.difference is not None and not utility.passes:
        reasons.append("too many authorized requests were lost")
    if utility.candidate == 0:
        reasons.append("no authorized request succeeded")
    if certificate.predicate.findings:
        reasons.append(NO_FIT)
    return ", and ".join(reasons) or "a gate is shut"


def why_not(certificate: Certificate) -> str:
    """Return in a few words why a certificate does not pass, empty if it does."""
    if certificate.verdict is Verdict.PASS:
        return ""
    unmet = certificate.predicate.unmet
    reasons = [f"{name} gate" for name in certificate.predicate.failed_gates]
    reasons += [f"{len(unmet)} requirements not met"] if unmet else []
    return ", ".join(reasons) or NO_FIT


def decision(certificate: Certificate | None) -> str:
    """Return a verdict for a table."""
    return NOT_RUN if certificate is None else str(certificate.verdict).capitalize()


def unmet_words(certificate: Certificate) -> list[str]:
    """Return each requirement that is not met, with its subject."""
    return [entry.replace("_", " ", 1) for entry in certificate.predicate.unmet]


def finding_words(finding: Finding) -> str:
    """Return what does not fit, and where."""
    return f"{finding.kind}, {finding.where}: {finding.what}"


def passing_words(certificates: Sequence[Certificate]) -> str:
    """Return how many candidates may replace the full skill."""
    candidates = many(len(certificates), "candidate")
    passing = sum(item.verdict is Verdict.PASS for item in certificates)
    if not passing:
        return f"None of {candidates} may replace the full skill"
    return f"{passing} of {candidates} passed both gates"
