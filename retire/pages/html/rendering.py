"""From a view model to HTML: one environment, everything escaped and visible."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from retire.pages.html import addresses
from retire.pages.html.shown import visible, visible_markup
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

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )


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
    made.globals.update(at=addresses)
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
