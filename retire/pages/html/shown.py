"""Hostile text as text: on a page every character is seen, and none moves another. Pure."""

from __future__ import annotations

import unicodedata

from markupsafe import Markup, escape

_KEPT = "\n\t"


def visible(text: str) -> str:
    """Return text with its lines kept and everything else invisible written out.

    Control, format, surrogate, private and unassigned characters, and white space that is neither
    a space, a tab nor a line feed, become escapes. The rule of ``retire.pages.text.plain``, for
    text of several lines.
    """
    if text.isprintable():
        return text
    return "".join(_escape(character) or character for character in text)


def visible_markup(text: str) -> Markup:
    """Return the same as markup in which escapes are marked, so that none is taken for text."""
    if text.isprintable():
        return escape(text)
    parts = []
    for character in text:
        written = _escape(character)
        if written:
            parts.append(Markup('<span class="escape">{}</span>').format(written))
        else:
            parts.append(escape(character))
    return Markup("").join(parts)


def _escape(character: str) -> str:
    """Return how an invisible character is written out; empty for one that is seen."""
    if character in _KEPT or character == " ":
        return ""
    if unicodedata.category(character)[0] == "C" or character.isspace():
        return character.encode("unicode_escape").decode("ascii")
    return ""
