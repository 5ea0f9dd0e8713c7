"""The fonts of a PDF, and text that they can draw: what they lack is written out as escapes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from retire.pages.text import plain

FONT = "DejaVuSans"
BOLD = "DejaVuSans-Bold"
MONO = "DejaVuSansMono"


@cache
def register_fonts() -> frozenset[int]:
    """Make the fonts known to the PDF library; returns the characters that all of them have."""
    import matplotlib as mpl  # noqa: PLC0415

    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    known: set[int] = set()
    for number, name in enumerate((FONT, BOLD, MONO)):
        font = TTFont(name, str(folder / f"{name}.ttf"))
        pdfmetrics.registerFont(font)
        mine = set(font.face.charToGlyph)
        known = known & mine if number else mine
    pdfmetrics.registerFontFamily(FONT, normal=FONT, bold=BOLD, italic=FONT, boldItalic=BOLD)
    return frozenset(known)


def drawn(text: str) -> str:
    """Return somebody's words on one line, safe in a paragraph, every character to be seen."""
    return escape(_in_font(plain(text)))


def _in_font(text: str) -> str:
    known = register_fonts()
    return "".join(
        character if ord(character) in known else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
