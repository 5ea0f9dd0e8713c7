"""What a page shows of text that wants to be more than text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retire.pages.html.rendering import render
from retire.pages.html.shown import visible, visible_markup
from tests.markup import read_page

pytestmark = pytest.mark.property

CHARACTERS = st.characters(exclude_categories=())


@given(st.text(CHARACTERS))
def test_nothing_invisible_is_left(text):
    for character in visible(text):
        assert character in "\n\t" or not unicodedata.category(character).startswith("C")


@given(st.text(CHARACTERS))
def test_lines_stay_lines_and_what_is_seen_stays_as_it_is(text):
    shown = visible(text)
    assert shown.count("\n") == text.count("\n")
    assert [c for c in text if c.isprintable()] == [
        c for c in text if c.isprintable() and c in shown
    ]


@given(st.text(CHARACTERS))
def test_marked_text_reads_the_same_and_holds_no_element_but_marks(text):
    page = read_page(str(visible_markup(text)))
    assert page.text == visible(text)
    assert {element.tag for element in page.walk()} <= {"", "span"}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("abc\u202egnp.exe", "\\u202e"),
        ("zero\u200bwidth", "\\u200b"),
        ("a\x00b", "\\x00"),
        ("a\rb", "\\r"),
        ("a\u2028b", "\\u2028"),
        ("a\xa0b", "\\xa0"),
        ("\ud800", "\\ud800"),
    ],
)
def test_characters_that_move_or_hide_others_are_written_out(text, written):
    assert written in visible(text)
    assert read_page(str(visible_markup(text))).one("span", class_="escape").text == written


@given(st.text(CHARACTERS, max_size=40))
def test_a_page_shows_any_text_as_text(text):
    page = render(
        "problem", {"title": text, "detail": text, "where": text, "mend": text, "signed_in": False}
    )
    page.encode("utf-8")
    read = read_page(page)
    assert not [name for element in read.walk() for name in element.attributes if name[:2] == "on"]
    assert {element["src"] for element in read.all("script")} == {
        "/ui/static/htmx.min.js",
        "/ui/static/keys.js",
    }
    assert visible(text) in read.one("h1").text
