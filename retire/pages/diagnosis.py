"""What stands beside the verdicts: flow of invalid members, misses, certificates. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.certify.accounting import Stage, authorized_misses
from retire.pages.counting import Counts, Labelled, audited
from retire.pages.phrases import STAGES
from retire.pages.text import Column, numeric, section, shortened, table
from retire.pages.verdict import HEADROOM, fraction, headroom, points, rule_words, why_not

if TYPE_CHECKING:
    from retire.certify.accounting import Miss, Stop
    from retire.wiring import Finished


def flow(finished: Finished, counts: Counts) -> str:
    """Return proposals, denials and protected effects per deployment and condition."""
    columns = [
        Column("Deployment"),
        Column("Condition"),
        *numeric("Cells", "Proposals", "Denials", "Protected effects"),
    ]
    rows = []
    for name in finished.run.plan.protocol.deployments:
        for item in audited(finished.run.plan.protocol):
            arm = counts.of([item.arm(name)])
            cells = str(arm.leaks.cells + arm.leaks.missing)
            numbers = [arm.proposals.number(), arm.denials.number(), arm.leaks.number()]
            rows.append([name, str(item.condition), cells, *numbers])
    note = "B1 to B3 have no check before the device, so nothing can be denied there."
    return section(
        "5. Proposals, denials and protected effects on invalid members", note, table(columns, rows)
    )


def misses(finished: Finished, counts: Counts) -> str:
    """Return the stage, reason and parameter at which authorized cells were lost."""
    columns = [
        Column("Deployment"),
        Column("Condition"),
        *numeric("Cells"),
        Column("Stage"),
        Column("Reason"),
        Column("Parameter"),
        Column("Bundles"),
    ]
    rows = [
        row
        for name in finished.run.plan.protocol.deployments
        for item in audited(finished.run.plan.protocol)
        for row in _lost(counts, name, item)
    ]
    title = "6. Where authorized misses arose"
    if not rows:
        return section(title, "", "Every authorized cell had its intended effect.")
    note = "Audit sample. D1: the proposal, D2: the decision, D3: the observed effect."
    return section(title, note, table(columns, rows))


def _lost(counts: Counts, deployment: str, item: Labelled) -> list[list[str]]:
    start = [deployment, str(item.condition)]
    arm = item.arm(deployment)
    groups: dict[Stop, list[Miss]] = {}
    for miss in authorized_misses(counts.outcomes([arm])):
        groups.setdefault(miss.stop, []).append(miss)
    rows = [
        [
            *start,
            str(len(lost)),
            STAGES[stop.stage],
            shortened(stop.reason, 60),
            shortened(stop.parameter, 40),
            ", ".join(sorted({miss.cell.bundle for miss in lost})),
        ]
        for stop, lost in sorted(groups.items())
        if stop.stage is not Stage.INCOMPLETE
    ]
    missing = counts.of([arm]).effect.missing
    if missing:
        rows.append([*start, str(missing), STAGES[Stage.INCOMPLETE], "", "", ""])
    return rows


def certificates(finished: Finished) -> str:
    """Return every verdict with the counts of both gates and the headroom."""
    columns = [
        Column("Deployment"),
        Column("Condition"),
        Column("Verdict"),
        *numeric("Authorized", "Full skill", "Delta pp", HEADROOM, "Protected effects"),
        Column("Why not"),
    ]
    rows = []
    for item in finished.certificates:
        utility, authority = item.gates.utility, item.gates.authority
        rows.append(
            [
                item.deployment,
                str(item.condition),
                str(item.verdict),
                fraction(utility.candidate, utility.cells),
                fraction(utility.full, utility.cells),
                points(utility.difference),
                headroom(utility.headroom),
                fraction(authority.protected_effects, authority.cells),
                why_not(item),
            ]
        )
    title = "7. Certificates"
    if not rows:
        return section(title, "", "The plan declares no candidate, so nothing was judged.")
    note = rule_words(finished.run.plan.protocol.margin_points)
    return section(title, note, table(columns, rows))
