"""The report as a PDF file. It needs no program beside it: fonts and shapes are inside."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from reportlab.graphics.shapes import Drawing, Line, Rect, String
from reportlab.lib.colors import HexColor
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import KeepTogether, Paragraph, Spacer, Table

from retire.pages.html.gates_view import scale_of
from retire.pages.phrases import CONDITIONS, DOORS, evidence_words, stop_words
from retire.pages.report.content import capitalised
from retire.pages.report.drawing import (
    BODY,
    CODE,
    DONE,
    INK,
    LEAD,
    NOTICE,
    PART,
    SECTION,
    SMALL,
    SOFT,
    STRONG,
    TITLE,
    VERDICT,
    VERDICTS,
    WIDTH,
    ReportFile,
    listing,
    text,
)
from retire.pages.report.lettering import FONT, drawn, register_fonts
from retire.pages.report.squares import heat_maps
from retire.pages.text import many, shortened
from retire.pages.verdict import (
    BOTH_GATES,
    bound_words,
    finding_words,
    needed_words,
    number,
    out_of,
    state,
    unmet_words,
    verdict_sentence,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from retire.certify.certificate import Certificate, StatedUtility
    from retire.pages.html.gates_view import Scale
    from retire.pages.report.content import Report
    from retire.pages.report.deletions import Deletion
    from retire.pages.report.leaking import LeakGroup


def report_pdf(report: Report) -> bytes:
    """Return the report as PDF; equal reports give equal bytes."""
    register_fonts()
    target = io.BytesIO()
    foot = shortened(f"{report.title}: {report.headline}. Evidence: {report.evidence}.", 110)
    document = ReportFile(target, shortened(f"{report.headline}: {report.title}", 200), foot)
    document.build(list(_parts(report)))
    return target.getvalue()


def _parts(report: Report) -> Iterator[Any]:
    yield text(f"{report.title}: may the reduction ship?", TITLE)
    yield text(evidence_words(report.evidence), NOTICE)
    yield text(report.headline, _coloured(VERDICT, report.verdict))
    yield text(report.sentence, LEAD)
    if report.faults:
        yield text("Certificates that cannot be believed", SECTION)
        yield from (text(f"{name}: {fault}", BODY) for name, fault in report.faults)
    if report.judgements:
        yield from _gates(report)
    yield from heat_maps(report)
    yield from _tests(report)
    yield text("Deleted clauses and the support gap", SECTION)
    yield text(
        "For every execution condition that a candidate lacks: how often its predicate was false "
        "in the authorized tasks that licensed the deletion, and what the audit saw when it was "
        "made false.",
        BODY,
    )
    for deletion in report.deletions:
        yield from _deletion(deletion)
    yield from _guidance(report)
    yield from _leaks(report)
    yield text("What this does not say", SECTION)
    yield from (Paragraph(drawn(it), BODY, bulletText="•") for it in report.limits)
    yield text("The run", SECTION)
    rows = [[text(name), text(value, CODE)] for name, value in report.facts + report.provenance]
    yield listing(["", ""], rows, (1, 4))
    yield Spacer(1, 8)
    yield text(
        "Check it yourself with retire verify and the run's folder. This file repeats what the "
        "folder says; it verifies no more than each certificate's signature.",
        BODY,
    )


def _coloured(style: ParagraphStyle, verdict: str) -> ParagraphStyle:
    return ParagraphStyle(f"{style.name} {verdict}", style, textColor=VERDICTS[verdict])


def _gates(report: Report) -> Iterator[Any]:
    yield text("Gates", SECTION)
    yield text(BOTH_GATES, BODY)
    if len(report.judgements) > 1:
        yield _overview(report)
    for it in report.judgements:
        yield KeepTogether(list(_judgement(it)))


def _overview(report: Report) -> Table:
    titles = ["Deployment", *(f"{it} {CONDITIONS[it]}" for it in report.candidates)]
    rows: list[list[Any]] = []
    for deployment, row in report.overview.items():
        rows.append(
            [text(deployment, STRONG), *(_square(it) if it else "not judged" for it in row)]
        )
    return listing(titles, rows, (1,) * len(titles))


def _square(it: Certificate) -> Paragraph:
    utility, authority = it.gates.utility, it.gates.authority
    words = (
        f"<b>{drawn(it.verdict)}</b><br/>"
        f"{drawn(out_of(utility.candidate, utility.cells))} authorized<br/>"
        f"{drawn(number(authority.protected_effects))} leaked"
    )
    return Paragraph(words, _coloured(SMALL, it.verdict))


def _judgement(it: Certificate) -> Iterator[Any]:
    condition = it.condition
    unit = f"{it.deployment}, {condition} ({CONDITIONS[condition]}; {DOORS[condition.mediation]})"
    yield text(f"{it.verdict.upper()}: {unit}", _coloured(PART, it.verdict))
    yield text(capitalised(verdict_sentence(it)), BODY)
    utility, authority = it.gates.utility, it.gates.authority
    rows = [["utility", state(utility), _kept(it)], ["authority", state(authority), _harmed(it)]]
    yield listing(["Gate", "", "Counts"], rows, (1, 0.7, 7))
    if (scale := scale_of(utility)) is not None:
        yield _scale(scale, utility)
    for title, entries in (
        ("Not met", unmet_words(it)),
        ("Records and traces do not fit together", map(finding_words, it.predicate.findings)),
    ):
        if words := "; ".join(entries):
            yield text(f"{title}: {words}.", BODY)


def _kept(it: Certificate) -> str:
    misses = it.predicate.beside_the_verdict.authorized_misses
    lost = "; ".join(f"{miss.cells} at {stop_words(miss.stop)}" for miss in misses)
    return needed_words(it) + (f" Lost: {lost}." if lost else "")


def _harmed(it: Certificate) -> str:
    gate, flow = it.gates.authority, it.predicate.beside_the_verdict.invalid_members
    return (
        f"{out_of(gate.protected_effects, gate.cells)} invalid requests had the protected effect; "
        f"none is allowed. {bound_words(it)} On invalid requests: {flow.proposals} proposals, "
        f"{flow.denials} denials, {flow.protected_effects} protected effects."
    )


def _scale(scale: Scale, gate: StatedUtility) -> Drawing:
    """Draw the utility gate: how many completed, and where the gate stands."""
    width = WIDTH * 0.6
    drawing = Drawing(WIDTH, 26)
    needed = width * scale.needed / 1000
    drawing.add(_bar(width, "#d5d9e0"))
    drawing.add(_bar(width * scale.candidate / 1000, DONE[3]))
    drawing.add(Line(needed, 11, needed, 25, strokeColor=INK, strokeDashArray=[3, 2]))
    label = String(needed, 3, f"needed {gate.smallest_passing}", fontName=FONT, fontSize=7)
    label.textAnchor = "end" if scale.needed > 500 else "start"
    label.fillColor = SOFT
    drawing.add(label)
    return drawing


def _bar(width: float, colour: str) -> Rect:
    bar = Rect(0, 14, width, 8)
    bar.fillColor, bar.strokeColor = HexColor(colour), None
    return bar


def _tests(report: Report) -> Iterator[Any]:
    yield text("Tests beside the verdict", SECTION)
    yield text(
        "These hypothesis tests speak of the whole run. They stand beside the verdict and never "
        "override it.",
        BODY,
    )
    rows = []
    for test in report.tests:
        numbers = test.numbers + (f" ({test.status})" if test.status != "computed" else "")
        numbers += f"; without {test.excluded}" if test.excluded else ""
        rows.append([test.name, test.question, numbers, test.p, test.p_adjusted])
    yield listing(["Test", "Question", "Counts", "p", "p, Holm"], rows, (0.7, 4.5, 2, 0.9, 0.9))


def _deletion(deletion: Deletion) -> Iterator[Any]:
    yield text(deletion.deployment, PART)
    yield text(deletion.summary, BODY)
    rows = []
    for it in deletion.conditions:
        fates = "<br/>".join(
            drawn(f"{fate.condition}: {fate.meaning}")
            if not fate.effects
            else f"<b>{drawn(f'{fate.condition}: {fate.meaning}')}</b>"
            for fate in it.fates
        )
        place = f"{it.bundle}, {it.line}"
        rows.append([place, it.text, it.rule, it.licensing, Paragraph(fates, SMALL)])
    if rows:
        titles = ["Bundle, line", "Condition", "States", "Licensing tasks", "Audit"]
        yield listing(titles, rows, (1.2, 3.6, 1, 1.1, 2.6))


def _guidance(report: Report) -> Iterator[Any]:
    if not report.guidance:
        return
    yield text("Task guidance", PART)
    yield text(
        "Clauses of task guidance that the reductions lack. No predicate stands behind them, so "
        "nothing here tests their removal.",
        BODY,
    )
    for group in report.guidance:
        names = ", ".join(group.deployments)
        yield text(f"{group.bundle}: {many(len(group.texts), 'clause')} ({names})", STRONG)
        words = " · ".join(f"{line}: {words}" for line, words in group.texts)
        yield text(words, _coloured(SMALL, "none"))
        yield Spacer(1, 5)


def _leaks(report: Report) -> Iterator[Any]:
    yield text("Leaking cells", SECTION)
    if not report.leaks:
        yield text("No protected effect was seen on an invalid request.", BODY)
        return
    yield text(
        "Every invalid request on which the observer saw the protected effect, with its three "
        "stages. Repetitions that went the same way share a line.",
        BODY,
    )
    for group in report.leaks:
        yield from _leak_group(group)


def _leak_group(group: LeakGroup) -> Iterator[Any]:
    unit = f"{group.deployment}, {group.condition} ({group.meaning})"
    yield text(f"{unit}: {many(group.cells, 'cell')}", PART)
    rows = [
        [
            Paragraph(
                f"<b>{drawn(it.bundle)}</b><br/>{drawn(it.member)}<br/>"
                f"repetition {drawn(it.repetitions)}",
                SMALL,
            ),
            it.flipped,
            text(it.proposed, CODE),
            it.decided,
            it.seen,
        ]
        for it in group.lines
    ]
    titles = ["Bundle, member", "Made false", "1 Proposal", "2 Decision", "3 Effect"]
    yield listing(titles, rows, (1.5, 2.2, 2, 1.8, 1.8))
