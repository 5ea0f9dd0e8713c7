"""The analogues of the published tables 2, 3 and 4, and the hypothesis tests. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.domain.cell import Condition
from retire.pages.counting import Count, Counts, audited, deletions
from retire.pages.phrases import NOT_RUN, QUESTIONS, UNKNOWN, probability
from retire.pages.text import Column, numeric, section, table
from retire.pages.verdict import NO_HEADROOM, decision, points

if TYPE_CHECKING:
    from retire.certify.accounting import Arm
    from retire.verify.run import SealedRun
    from retire.wiring import Finished

_PRIMARY = (Condition.B1, Condition.B2, Condition.B3, Condition.B4)
_FOLLOW_UP = (Condition.B5, Condition.B6)

# -- table 1 ---------------------------------------------------------------------------------


def construction(finished: Finished, counts: Counts) -> str:
    """Return deleted clauses, protected effects and decisions (paper, table 2)."""
    run = finished.run
    names = run.plan.protocol.deployments
    shown = [item for item in audited(run.plan.protocol) if item.condition in _PRIMARY]
    judged = [item.condition for item in shown if item.condition is not Condition.B1]
    columns = [
        Column("Deployment"),
        *numeric("Deleted clauses", "Empty", *(str(item.condition) for item in shown)),
        *(Column(f"{condition} certificate") for condition in judged),
    ]
    rows = []
    for name in names:
        leaks = [counts.of([item.arm(name)]).leaks for item in shown]
        verdicts = [decision(finished.certificate_of(name, condition)) for condition in judged]
        rows.append([name, *_deleted(run, name), *(it.number() for it in leaks), *verdicts])
    sizes = {counts.of([shown[0].arm(name)]).leaks for name in names}
    cells = max(size.cells + size.missing for size in sizes)
    note = (
        "Empty: reductions that kept no clause. B1 to B4: protected effects on invalid members, "
        f"of {cells} cells each. One effect fails a candidate, however useful it is."
    )
    return section(
        "1. Reduction construction, protected effects and decisions", note, table(columns, rows)
    )


def _deleted(run: SealedRun, name: str) -> list[str]:
    found = deletions(run, name)
    if not found.known:
        return [UNKNOWN, UNKNOWN]
    share = f" ({100 * found.deleted / found.clauses:.1f}%)" if found.clauses else ""
    gap = f", {found.bundles - found.known} missing" if found.known < found.bundles else ""
    return [f"{found.deleted}/{found.clauses}{share}{gap}", f"{found.empty}/{found.bundles}"]


# -- table 2 ---------------------------------------------------------------------------------


def concentration(run: SealedRun, counts: Counts) -> str:
    """Return value, protected effects and misses of each bundle (paper, table 3)."""
    columns = [
        Column("Bundle"),
        Column("Action"),
        *numeric("Delta", *map(str, _PRIMARY), "B4 misses"),
    ]
    rows = []
    for key, bundle in run.bundles.items():
        effects = [_leaks(run, counts, condition, key) for condition in _PRIMARY]
        rows.append(
            [
                key,
                bundle.contract.action.service,
                _difference(run, key),
                *effects,
                _missed(run, counts, key),
            ]
        )
    note = (
        "All deployments together. Delta: authorized successes of B1 minus B0 in the task-value "
        "sample. B1 to B4: protected effects on invalid members. B4 misses: authorized cells "
        "without the intended effect. These counts diagnose concentration; no certificate uses "
        "them."
    )
    return section("2. Concentration in bundles", note, table(columns, rows))


def _arms(run: SealedRun, condition: Condition) -> list[Arm]:
    protocol = run.plan.protocol
    return [
        item.arm(name)
        for item in audited(protocol)
        if item.condition is condition
        for name in protocol.deployments
    ]


def _leaks(run: SealedRun, counts: Counts, condition: Condition, bundle: str) -> str:
    arms = _arms(run, condition)
    return counts.of(arms, bundle).leaks.number() if arms else NOT_RUN


def _missed(run: SealedRun, counts: Counts, bundle: str) -> str:
    arms = _arms(run, Condition.B4)
    if not arms:
        return NOT_RUN
    effect = counts.of(arms, bundle).effect
    return Count(effect.cells - effect.found, effect.cells, effect.missing).number()


def _difference(run: SealedRun, bundle: str) -> str:
    if not run.plan.protocol.task_value:
        return NOT_RUN
    differences = run.hypotheses.differences
    if differences is None:
        return UNKNOWN
    place = sorted(run.bundles).index(bundle)
    total = sum(column[place] for column in differences.values())
    return f"{total:+d}" if total else "0"


# -- table 3 ---------------------------------------------------------------------------------


def follow_up(finished: Finished, counts: Counts) -> str:
    """Return B5 and B6 as far as the plan declares them (paper, table 4)."""
    title = "3. Combined and exact-binding follow-up"
    columns = [
        Column("Variant"),
        Column("Deployment"),
        *numeric("Authorized", "Delta pp", "P/D/E"),
        Column("Certificate"),
    ]
    rows = []
    protocol = finished.run.plan.protocol
    for item in audited(protocol):
        if item.condition not in _FOLLOW_UP:
            continue
        for name in protocol.deployments:
            arm = counts.of([item.arm(name)])
            judged = finished.certificate_of(name, item.condition)
            utility = judged.gates.utility if judged else None
            dagger = "†" if utility is not None and utility.headroom == 0 else ""
            margin = points(utility.difference) if utility else UNKNOWN
            flow = f"{arm.proposals.found}/{arm.denials.found}/{arm.leaks.number()}"
            authorized = arm.effect.fraction() + dagger
            rows.append(
                [str(item.condition), name, authorized, margin, flow, decision(judged)]
            )  # fmt: skip
    note = (
        "Authorized: authorized cells with the intended effect. Delta pp: difference to the full "
        "skill in percentage points. P/D/E: proposals, denials and protected effects on invalid "
        f"members. {NO_HEADROOM}"
    )
    if not rows:
        return section(title, "", "The plan declares neither B5 nor B6.")
    return section(title, note, table(columns, rows))


# -- table 4 ---------------------------------------------------------------------------------


def tests(finished: Finished) -> str:
    """Return the three tests beside the verdicts that they never override (paper, section 4)."""
    columns = [
        Column("Test"),
        Column("Question"),
        *numeric("Plus", "Minus", "Ties", "p", "Adjusted p"),
        Column("Status"),
    ]
    rows = []
    for name, test in finished.run.hypotheses.tests.items():
        signs = [_sign(name, test.get(key)) for key in ("plus", "minus", "ties")]
        numbers = [probability(test["p"]), probability(test["p_adjusted"])]
        status = str(test["status"]).replace("_", " ")
        excluded = test.get("excluded") or []
        status += f"; excluded: {', '.join(excluded)}" if excluded else ""
        rows.append([name, QUESTIONS[name], *signs, *numbers, status])
    alpha = finished.run.plan.protocol.alpha_percent
    note = (
        f"Holm over three tests, alpha {alpha / 100:g}. Plus, minus and ties count bundles, the "
        "unit of inference. The verdicts stand beside the tests; no test overrides one."
    )
    body = table(columns, rows)
    if finished.certificates:
        body += "\n\n" + _verdicts(finished)
    return section("4. The three tests, beside the verdicts", note, body)


def _verdicts(finished: Finished) -> str:
    protocol = finished.run.plan.protocol
    columns = [Column("Deployment"), *(Column(str(condition)) for condition in protocol.candidates)]
    rows = [
        [name, *(decision(finished.certificate_of(name, it)) for it in protocol.candidates)]
        for name in protocol.deployments
    ]
    return table(columns, rows)


def _sign(name: str, value: int | None) -> str:
    if name == "RQ1":
        return "-"
    return UNKNOWN if value is None else str(value)
