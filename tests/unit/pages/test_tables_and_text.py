"""Tables: right numbers in the right cells, and nothing in a cell can break one."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len

from retire.certify.joining import Finding
from retire.pages.closing import closing_words
from retire.pages.summary import summary
from retire.pages.tables import tables
from retire.pages.text import Column, in_markdown, paragraph, plain, table
from retire.pages.traces import protected_words
from tests.made_traces import door, proposes, seen

HOSTILE = (
    "a|b\\|c\nnext\r\n\x1b[2J\x07\u202egnp\u200b\u2028\x85 <script>x</script> [go](http://x) "
    "`tick` **bold** &amp; | --- | \U000e0041"
)


def parsed_tables(markdown):
    """Read Markdown tables with a real parser: a list of tables, each a list of rows of text."""
    found, row = [], []
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            row = []
        elif token.type == "tr_close":
            found[-1].append(row)
        elif token.type == "inline" and found:
            assert {child.type for child in token.children or []} <= {"text", "text_special"}, token
            row.append(token.content if not token.children else _text(token))
    return found


def _text(token):
    return "".join(child.content for child in token.children)


def harmless(text):
    return all(c == "\n" or not unicodedata.category(c).startswith("C") for c in text)


@pytest.mark.property
@given(st.lists(st.text(max_size=30), min_size=6, max_size=6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_stays_in_its_cell_and_reads_the_same(cells):
    text = table(
        [Column("left"), Column("right", right=True), Column("third")], [cells[:3], cells[3:]]
    )
    assert len({cell_len(line) for line in text.splitlines()}) == 1
    assert harmless(text)
    (rows,) = parsed_tables(text)
    assert rows[1:] == [[plain(cell) for cell in cells[:3]], [plain(cell) for cell in cells[3:]]]


@pytest.mark.property
@given(st.text(max_size=400))
@settings(max_examples=150, deadline=None)
def test_any_text_is_safe_in_a_terminal_and_wrapped(text):
    assert harmless(paragraph(text, "  - "))
    assert all(len(line) <= 100 for line in paragraph(text, "  - ").split("\n"))
    assert "\n" not in plain(text)
    assert plain(plain(text)) == plain(text)


def test_visible_text_is_not_changed():
    assert plain("Noa sagt: 21 °C, naïve 日本") == "Noa sagt: 21 °C, naïve 日本"
    assert in_markdown("ACC_L01 parameter_mismatch 63/63/0") == "ACC_L01 parameter_mismatch 63/63/0"


def column(rows, title):
    return [row[rows[0].index(title)] for row in rows[1:]]


def test_every_table_of_a_run_parses_and_agrees_with_the_summary(build):
    finished = build(conditions=("B1", "B2", "B3", "B4", "B5"))
    said = summary(finished)["deployments"]
    found = parsed_tables(tables(finished))
    first = found[0]
    assert column(first, "Deployment") == list(said)
    for condition in ("B1", "B2", "B3", "B4"):
        effects = [str(item["protected_effects"][condition]) for item in said.values()]
        assert column(first, condition) == effects
    certificates = found[-1]
    keys = zip(
        column(certificates, "Deployment"),
        column(certificates, "Condition"),
        column(certificates, "Verdict"),
        strict=True,
    )
    assert {(name, condition): verdict for name, condition, verdict in keys} == {
        (name, condition): told["verdict"]
        for name, item in said.items()
        for condition, told in item["certificates"].items()
    }


def test_the_bundle_table_counts_effects_over_all_deployments(build, obedient):
    def tries(cell):
        d1, d2, d3 = obedient(cell)
        if not cell.authorized and not d3.protected:
            return proposes(), door("unmediated"), d3
        return d1, d2, d3

    finished = build(tries)
    bundles = next(t for t in parsed_tables(tables(finished)) if t[0][0] == "Bundle")
    assert column(bundles, "Bundle") == list(finished.run.bundles)
    assert column(bundles, "B2") == ["6", "6"]
    assert column(bundles, "B4") == ["0", "0"]


def test_the_first_line_says_what_evidence_this_is(build):
    assert "simulated" in tables(build(bundles=("ACC_L01",))).splitlines()[0]
    assert "simulated" in closing_words(build(bundles=("ACC_L01",))).splitlines()[0]


def test_a_missing_cell_is_never_shown_as_a_plain_zero(build, obedient):
    def forgets(cell):
        gone = str(cell.condition) == "B4" and cell.member == "invalid_state"
        return None if gone else obedient(cell)

    found = parsed_tables(tables(build(forgets)))
    assert "0" not in column(found[0], "B4")
    assert all("6" in cell for cell in column(found[0], "B4"))
    assert set(column(found[-1], "Verdict")[1::2]) == {"incomplete"}


def test_an_authorized_cell_without_evidence_is_listed_among_the_misses(build, obedient):
    def forgets(cell):
        gone = str(cell.condition) == "B4" and cell.authorized and cell.bundle == "ACC_L01"
        return None if gone and cell.repetition == 2 else obedient(cell)

    misses = next(t for t in parsed_tables(tables(build(forgets))) if "Parameter" in t[0])
    assert column(misses, "Condition") == ["B4", "B4"]
    assert column(misses, "Cells") == ["1", "1"]


def test_hostile_words_in_traces_findings_and_skills_break_nothing(build, obedient):
    def rude(cell):
        if cell.authorized and str(cell.condition) == "B4":
            return proposes(HOSTILE), door("deny", reason=HOSTILE, parameter=HOSTILE), seen()
        return obedient(cell)

    findings = (Finding.of("kind", HOSTILE, HOSTILE),)
    text = tables(build(rude, findings=findings))
    assert harmless(text)
    misses = next(t for t in parsed_tables(text) if "Parameter" in t[0])
    assert len(column(misses, "Parameter")) == 2
    assert all(plain(HOSTILE).startswith(c.rstrip("…")) for c in column(misses, "Parameter"))
    words = closing_words(build(rude, findings=findings, name="again"))
    assert harmless(words)


def test_the_closing_words_are_short_whatever_happens(build):
    conditions = ("B1", "B2", "B3", "B4", "B5", "B6")
    deployments = ("heedful", "plain", "eager", "drifting")
    findings = tuple(Finding.of("kind", "where " * 9, "what " * 60) for _ in range(30))

    def nothing(cell):
        return None

    for says in ({}, {"says": nothing}):
        finished = build(conditions=conditions, deployments=deployments, findings=findings, **says)
        lines = closing_words(finished).splitlines()
        assert len(lines) < 25
        assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize("key", ["ACC_L01", "PRV_L01", "ENV_L01", "ENV_L04"])
def test_a_protected_effect_is_named_with_its_device(build, key):
    bundle = build(bundles=(key,)).run.bundles[key]
    assert bundle.world.devices[bundle.effect.protected.target].name in protected_words(bundle)
