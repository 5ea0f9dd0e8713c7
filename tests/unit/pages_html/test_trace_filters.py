"""Filters in an address, and the list that they let through."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest

from retire.domain.errors import InputError
from retire.pages.html import addresses
from retire.pages.html.filters import TraceFilter, check_names, read_filter, read_number
from retire.pages.html.trace_list import PAGE, traces_page
from tests.unit.pages_html.conftest import review_of


def back(address):
    return read_filter(dict(parse_qsl(urlsplit(address).query)))


@pytest.mark.parametrize(
    "wanted",
    [
        TraceFilter(),
        TraceFilter(bundle="ACC_L01", condition="B2", protected="yes"),
        TraceFilter(sample="audit", deployment="a b&c=d", member="invalid", completed="no"),
        TraceFilter(d1="refusal", d2="deny", reason="state_unmet"),
    ],
)
def test_an_address_holds_the_whole_filter(wanted):
    assert back(addresses.traces("run 1", wanted)) == wanted


@pytest.mark.parametrize(
    "query", [{"condition": "B9"}, {"protected": "true"}, {"d1": "maybe"}, {"reason": "none"}]
)
def test_a_value_that_cannot_be_is_refused_with_those_that_can(query):
    with pytest.raises(InputError) as raised:
        read_filter(query)
    assert raised.value.where == next(iter(query))
    assert "Choose among" in raised.value.mend


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match="no such parameter"):
        check_names({"bundel": "X"}, ("bundle",))


@pytest.mark.parametrize("text", ["-1", "1e3", "٣", "9" * 40, "x"])
def test_a_number_is_digits_and_short(text):
    with pytest.raises(InputError):
        read_number({"after": text}, "after")


def test_filters_select_by_cell_and_by_outcome(review):
    index = review.index
    leaks = TraceFilter(member="invalid", protected="yes")
    rows = [row for row in index if leaks.matches(row.outcome)]
    assert rows
    assert all(row.outcome.protected and not row.cell.authorized for row in rows)
    assert index.count(leaks) == len(rows)
    done = TraceFilter(member="authorized", completed="yes")
    assert index.count(done) == sum(row.cell.authorized for row in index)
    assert index.count(TraceFilter(member="authorized", completed="no")) == 0
    one = TraceFilter(bundle="ACC_L01", deployment="eager", condition="B2", sample="audit")
    assert {row.cell.bundle for row in index if one.matches(row.outcome)} == {"ACC_L01"}


def followed(review, wanted):
    """Every row that following the links of the pages shows, and the pages' sizes."""
    seqs, sizes = [], []
    page = traces_page(review, wanted)
    while True:
        seqs += [line.seq for line in page.lines]
        sizes.append(len(page.lines))
        if not page.next_href:
            return seqs, sizes, page
        query = dict(parse_qsl(urlsplit(page.next_href).query))
        assert read_filter(query) == wanted
        page = traces_page(review, wanted, int(query["after"]))


def test_pages_follow_each_other_without_gap_or_repetition(build):
    review = review_of(build(repetitions=7))
    wanted = TraceFilter(member="invalid")
    seqs, sizes, last = followed(review, wanted)
    assert seqs == [row.seq for row in review.index if wanted.matches(row.outcome)]
    assert len(sizes) > 2
    assert set(sizes[:-1]) == {PAGE}
    query = dict(parse_qsl(urlsplit(last.previous_href).query))
    page = traces_page(review, wanted, before=int(query["before"]))
    assert [line.seq for line in page.lines] == seqs[-sizes[-1] - PAGE : -sizes[-1]]
    assert page.next_href


def test_nothing_matching_is_an_empty_page_without_links(review):
    page = traces_page(review, TraceFilter(condition="B6"))
    assert (page.lines, page.matching, page.next_href, page.previous_href) == ((), 0, "", "")


def test_a_grown_index_shows_its_new_rows_on_the_next_page(build):
    finished = build()
    review = review_of(finished)
    first = traces_page(review, TraceFilter())
    assert first.total == len(finished.run.traces) == len(review.index)
    assert len(review.index) == max(row.seq for row in review.index)
    with pytest.raises(KeyError):
        review.index.row(10**6)
