"""A leak that was sighted in an attempt without a trace is shown wherever leaks are."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, insert

from retire.domain.document import read_document
from retire.domain.seal import Seal
from retire.pages.html.filters import TraceFilter
from retire.pages.html.rendering import render
from retire.pages.html.trace_list import traces_page
from retire.pages.report.leaking import leak_groups
from retire.runner.folder import RunFolder, write_document, write_whole
from retire.service.reviewing.library import Shelf
from retire.store.store import ALONE
from retire.store.tables import ATTEMPTS, METADATA
from sink.record import make_entry
from tests.made_folders import certified_folder, proposes
from tests.markup import read_page

CUT = "c" * 32


def lacking(bundle, cell):
    """Nothing leaks, and one cell has no evidence."""
    if str(cell.condition) == "B2" and cell.member == "invalid_state" and cell.repetition == 2:
        return None
    if cell.authorized:
        return proposes(bundle), True, True
    return '{"refusal": "a rule is not met"}', False, False


def record(attempt):
    """The observer's record: one sighting that is harmless, one that is not."""
    first = make_entry(1, "sha256:00", {"kind": "sighting", "attempt": "e", "protected": False})
    body = {"kind": "sighting", "attempt": attempt, "protected": True}
    return first.line() + make_entry(2, first.hash, body).line()


@pytest.fixture
def folder(tmp_path):
    root = certified_folder(tmp_path / "run", tmp_path / "home", lacking, bundles=("PRV_L05",))
    return RunFolder(root)


def reseal(folder, attempts):
    seal = read_document(Seal, folder.seal.read_bytes())
    write_document(folder.seal, seal.model_copy(update={"attempts": attempts}))


@pytest.fixture
def sealed(folder):
    cells = {CUT: "audit/plain/PRV_L05/B2/invalid_state/2", "d" * 32: "development/x"}
    reseal(folder, cells)
    write_whole(folder.records / "observer.jsonl", record(CUT))
    return folder


@pytest.fixture
def unsealed(folder):
    """A run that was killed: no seal, its attempts in its database, its record in its programs'."""
    folder.seal.unlink()
    engine = create_engine(f"sqlite:///{folder.database}")
    METADATA.create_all(engine)
    with engine.begin() as connection:
        row = {"attempt": CUT, "run": ALONE, "cell": "audit/plain/PRV_L05/B2/invalid_state/2"}
        connection.execute(insert(ATTEMPTS), {**row, "number": 1})
    engine.dispose()
    write_whole(folder.processes / "observer" / "record.jsonl", record(CUT))
    return folder


def opened(folder):
    return Shelf().opened("run", "run", folder.root)


def leaks(review, condition):
    (chart,) = review.maps
    squares = {square.condition: square for square in chart.rows[0].squares if square.leaks}
    return squares[condition].leaks


@pytest.mark.parametrize("state", ["sealed", "unsealed"])
def test_the_heat_map_and_the_list_show_it(state, request):
    review = opened(request.getfixturevalue(state))
    assert leaks(review, "B2").found == 1
    assert leaks(review, "B4").found == 0
    wanted = TraceFilter(member="invalid", protected="yes", condition="B2")
    page = read_page(render("traces", {"page": traces_page(review, wanted), "signed_in": False}))
    (line,) = page.having("data-untraced")
    assert line["data-untraced"] == "PRV_L05/B2/plain/invalid_state/2"


def test_other_filters_leave_it_out(sealed):
    review = opened(sealed)
    assert traces_page(review, TraceFilter()).untraced
    for wanted in (
        TraceFilter(condition="B4"),
        TraceFilter(protected="no"),
        TraceFilter(d1="refusal"),
        TraceFilter(member="authorized"),
    ):
        assert traces_page(review, wanted).untraced == ()


def test_the_report_lists_it_among_the_leaking_cells(sealed):
    (group,) = leak_groups(opened(sealed), ["plain"])
    assert (group.condition, group.cells) == ("B2", 1)
    assert (group.lines[0].member, group.lines[0].repetitions) == ("invalid_state", "2")


def test_a_cell_that_was_run_again_needs_no_such_line(sealed):
    other = {CUT: "audit/plain/PRV_L05/B2/invalid_state/1"}
    reseal(sealed, other)
    assert opened(sealed).untraced == ()


def test_a_record_that_grows_is_read_on(unsealed):
    path = unsealed.processes / "observer" / "record.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    shelf = Shelf()
    assert shelf.opened("run", "run", unsealed.root).untraced == ()
    path.write_bytes(whole)
    review = shelf.opened("run", "run", unsealed.root)
    (cell,) = review.untraced
    assert cell.member == "invalid_state"
    assert leaks(review, "B2").found == 1
    assert shelf.opened("run", "run", unsealed.root) is review
