"""From a view model to HTML: one environment, everything escaped and visible."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from retire.pages import verdict
from retire.pages.html import addresses
from retire.pages.html.certificate_page import standing
from retire.pages.html.gap_view import MEANINGS
from retire.pages.html.gates_view import scale_of
from retire.pages.html.shown import visible, visible_markup
from retire.pages.phrases import CONDITIONS, DOORS, evidence_words, stop_words
from retire.pages.text import many, plain, shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def escaping(package: str, show: Callable[[str], str]) -> Environment:
    """Return an environment in which somebody else's words can be nothing but text.

    Args:
        package: Where the templates lie.
        show: Makes what is invisible in a text visible, wherever a value stands.
    """

    def finalize(value: object) -> object:
        return show(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        say=verdict,
        stop_words=stop_words,
        evidence_words=evidence_words,
        scale_of=scale_of,
        CONDITIONS=CONDITIONS,
        DOORS=DOORS,
    )
    return made


@cache
def _environment() -> Environment:
    made = escaping("retire.pages.html", visible)
    made.filters.update(
        many=lambda count, noun: many(int(count), noun),
        shown=visible_markup,
        plain=lambda text: plain(str(text)),
        shortened=lambda text, limit: shortened(str(text), limit),
        words=lambda text: str(text).replace("_", " "),
        digest=_short_digest,
        sentence=_sentence,
    )
    made.globals.update(at=addresses, standing=standing, MEANINGS=MEANINGS)
    return made


def _sentence(text: object) -> str:
    words = str(text)
    return words[:1].upper() + words[1:]


def _short_digest(value: str) -> str:
    kind, _, digits = str(value).partition(":")
    return f"{kind}:{digits[:12]}…" if len(digits) > 12 else str(value)


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return a page, or a part of one, as HTML text.

    Args:
        template: The template's name without ``.html``.
        context: What the template shows, usually one view model called ``page``.
    """
    return _environment().get_template(f"{template}.html").render(context)
