"""The look of a PDF report: colours, paragraphs, tables and the frame of every page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reportlab.lib.colors import HexColor
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Table, TableStyle

from retire.pages.report.lettering import BOLD, FONT, MONO, drawn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

INK, SOFT, LINE, PANEL = (HexColor(it) for it in ("#1d2129", "#565c68", "#d5d9e0", "#f5f6f8"))
VERDICTS = {
    "pass": HexColor("#14693a"),
    "fail": HexColor("#a8261b"),
    "incomplete": HexColor("#7a5200"),
    "none": SOFT,
}
DONE = ("#f5f6f8", "#e6f1fa", "#c0dcf2", "#5d9fd3", "#135a94")
LEAKED = ("#f5f6f8", "#fdebd7", "#f9cf9f", "#d9772b", "#8f3210")
"""Grounds by share, none to all; the text on the last is white."""

MARGIN = 17 * mm
WIDTH = A4[0] - 2 * MARGIN


def _style(name: str, size: float, **more: Any) -> ParagraphStyle:  # noqa: ANN401  # the library's
    wanted: dict[str, Any] = {
        "fontName": FONT,
        "leading": size * 1.4,
        "textColor": INK,
        "splitLongWords": 1,
    }
    return ParagraphStyle(name, fontSize=size, **(wanted | more))


BODY = _style("body", 9, spaceAfter=5)
SMALL = _style("small", 7.5)
STRONG = _style("strong", 7.5, fontName=BOLD)
CODE = _style("code", 7, fontName=MONO)
NUMBER = _style("number", 7.5, alignment=1)
WHITE = _style("white", 7.5, alignment=1, textColor=HexColor("#ffffff"), fontName=BOLD)
TITLE = _style("title", 11, textColor=SOFT, fontName=BOLD, spaceAfter=8)
SECTION = _style("section", 13.5, fontName=BOLD, spaceBefore=16, spaceAfter=6, keepWithNext=1)
PART = _style("part", 10, fontName=BOLD, spaceBefore=10, spaceAfter=4, keepWithNext=1)
VERDICT = _style("verdict", 20, fontName=BOLD, spaceBefore=10, spaceAfter=4)
LEAD = _style("lead", 11, spaceAfter=8)
NOTICE = _style(
    "notice", 9, backColor=PANEL, borderColor=LINE, borderWidth=0.7, borderPadding=7,
    leftIndent=7, rightIndent=7, spaceBefore=10, spaceAfter=14,
)  # fmt: skip


class ReportFile(BaseDocTemplate):
    """A4 pages with what the report is about at the foot, and an outline of its headings.

    Args:
        file: Where the bytes go.
        title: The report's title, as a reader of the file sees it.
        foot: What stands at the foot of every page; a page alone still says what it is.
    """

    def __init__(self, file: IO[bytes], title: str, foot: str) -> None:
        super().__init__(
            file, pagesize=A4, title=title, author="retire", lang="en", invariant=1,
            leftMargin=MARGIN, rightMargin=MARGIN, topMargin=MARGIN, bottomMargin=MARGIN,
        )  # fmt: skip
        self._foot = foot
        frame = Frame(MARGIN, MARGIN, WIDTH, A4[1] - 2 * MARGIN, 0, 0, 0, 0)
        self.addPageTemplates(PageTemplate("page", [frame], onPage=self._draw_foot))
        self._headings = 0

    def _draw_foot(self, canvas: Any, _: object) -> None:  # noqa: ANN401  # reportlab's canvas
        canvas.setFont(FONT, 7)
        canvas.setFillColor(SOFT)
        canvas.drawString(MARGIN, 9 * mm, self._foot)
        canvas.drawRightString(A4[0] - MARGIN, 9 * mm, f"page {canvas.getPageNumber()}")

    def afterFlowable(self, flowable: object) -> None:  # noqa: N802  # reportlab's name
        """Put headings into the outline."""
        if not isinstance(flowable, Paragraph) or flowable.style.name not in {"section", "part"}:
            return
        self._headings += 1
        key = f"heading-{self._headings}"
        self.canv.bookmarkPage(key)
        level = 0 if flowable.style.name == "section" else 1
        self.canv.addOutlineEntry(flowable.getPlainText(), key, level, closed=level == 0)


def text(words: str, style: ParagraphStyle = SMALL) -> Paragraph:
    """Return somebody's words as one paragraph."""
    return Paragraph(drawn(words), style)


def listing(titles: Sequence[str], rows: Sequence[Sequence[Any]], shares: Sequence[float]) -> Table:
    """Return a table over the page's width; its titles stand on every page.

    Args:
        titles: One a column.
        rows: Text or flowables.
        shares: Each column's part of the width.
    """
    body = [[it if isinstance(it, Paragraph) else text(str(it)) for it in row] for row in rows]
    whole = sum(shares)
    table = Table(
        [[text(title, STRONG) for title in titles], *body],
        colWidths=[WIDTH * share / whole for share in shares],
        repeatRows=1,
        splitInRow=1,
        hAlign="LEFT",
    )
    table.setStyle(
        TableStyle(
            [
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("LINEBELOW", (0, 0), (-1, -1), 0.5, LINE),
                ("LEFTPADDING", (0, 0), (-1, -1), 0),
                ("RIGHTPADDING", (0, 0), (-1, -1), 6),
                ("TOPPADDING", (0, 0), (-1, -1), 3),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 4),
            ]
        )
    )
    return table
