"""The report as one HTML file: nothing outside it is asked for, and nothing in it runs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from retire.pages.html.rendering import escaping
from retire.pages.html.shown import visible_markup
from retire.pages.report.content import capitalised
from retire.pages.text import many, plain

if TYPE_CHECKING:
    from jinja2 import Template

    from retire.pages.report.content import Report


@cache
def _template() -> Template:
    made = escaping("retire.pages.report", visible_markup)
    made.filters.update(
        many=lambda count, noun: many(int(count), noun), line=plain, opened=capitalised
    )
    return made.get_template("report.html")


def report_html(report: Report) -> bytes:
    """Return the report as a self-contained HTML file, UTF-8."""
    return _template().render(page=report).encode("utf-8")
