"""Every page over a run in which everything that others write is hostile."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace

import pytest

from retire.certify.gates import Verdict
from retire.domain.evidence import Evidence
from retire.domain.trace import RefusalStage
from retire.pages.html.cell_page import cell_page
from retire.pages.html.certificate_page import certificate_page
from retire.pages.html.compare_page import Side, compare_page
from retire.pages.html.diff_page import diff_page
from retire.pages.html.filters import TraceFilter
from retire.pages.html.rendering import render
from retire.pages.html.run_page import run_page
from retire.pages.html.runs_page import ListedRun, runs_page
from retire.pages.html.trace_list import traces_page
from retire.verify.check import Verification
from retire.verify.run import SignedCertificate
from tests.markup import read_page
from tests.unit.pages_html.conftest import review_of, trace_of

HOSTILE = "\"'><script>x</script><a href=javascript:x onclick=x>&amp;{{ 7*7 }}\u202e\u200b\x00" + (
    "w" * 3000
)


@pytest.fixture
def hostile(build, obedient):
    def says(cell):
        if cell.member == "invalid_state":
            return RefusalStage(outcome="refusal", rule="", text=HOSTILE), *obedient(cell)[1:]
        return obedient(cell)

    def change(bundle):
        clauses = tuple(replace(it, text=HOSTILE) for it in bundle.skill.clauses)
        skill = replace(bundle.skill, clauses=clauses, description=HOSTILE)
        card = bundle.card.model_copy(update={"title": HOSTILE})
        return replace(bundle, card=card, skill=skill)

    broken = SignedCertificate("eager-B4", b"", fault=HOSTILE)
    review = review_of(build(says, change=change))
    kept = tuple(it for it in review.certificates if it.name != "eager-B4")
    return replace(review, title=HOSTILE, id=HOSTILE, certificates=(*kept, broken))


def pages(review):
    listed = ListedRun(HOSTILE, HOSTILE, HOSTILE, HOSTILE, going_on=True, note=HOSTILE)
    yield "runs", {"page": runs_page([listed], HOSTILE, HOSTILE)}
    yield "run", {"page": run_page(review, "plain", "B2"), "tests": None}
    yield "traces", {"page": traces_page(review, TraceFilter(member=HOSTILE))}
    yield "traces", {"page": traces_page(review, TraceFilter())}
    yield "diff", {"page": diff_page(review, "plain", "ACC_L01", "B2")}
    row = next(it for it in review.index if it.cell.member == "invalid_state")
    trace = trace_of(review, row, HOSTILE)
    wanted = TraceFilter(reason=HOSTILE)
    yield "cell", {"page": cell_page(review, row, trace, wanted)}
    sides = Side(review, "plain"), Side(review, "eager")
    yield "compare", {"page": compare_page(*sides, differing=False), "runs": [listed]}
    said = (HOSTILE,)
    result = Verification(Verdict.FAIL, Evidence.MIXED, said, said, said, said)
    for name in ("plain-B2", "eager-B4"):
        yield "certificate", {"page": certificate_page(review, name), "result": result}
    yield "sign_in", {"back": HOSTILE, "fault": HOSTILE}


def test_no_page_lets_others_write_its_markup(hostile):
    for template, context in pages(hostile):
        text = render(template, {**context, "signed_in": True})
        text.encode("utf-8")
        assert not set(text) & {"\u202e", "\u200b", "\x00"}, template
        page = read_page(text)
        sources = [script["src"] for script in page.all("script")]
        assert sources == ["/ui/static/htmx.min.js", "/ui/static/keys.js"], template
        for element in page.walk():
            assert not [name for name in element.attributes if name.startswith("on")], template
            for name in ("href", "action", "hx-get"):
                address = element.attributes.get(name, "/ui")
                assert address.startswith(("/ui", "#")), (template, address)
                assert address.isascii()
        assert "49" not in page.one("h1").text


def test_what_was_written_is_there_to_be_read(hostile):
    shown = {template: read_page(render(template, {**context, "signed_in": False}))
             for template, context in pages(hostile)}  # fmt: skip
    raw = shown["cell"].one("pre", id="raw").text
    assert raw.startswith(HOSTILE[:60])
    assert raw.endswith("w" * 3000)
    assert "\\u202e" in raw
    assert "<script>x</script>" in shown["diff"].one("tr", data_clause="c001").text


def test_no_template_trusts_text_or_holds_script_or_style(repository):
    for path in (repository / "retire" / "pages" / "html" / "templates").glob("*.html"):
        text = path.read_text("utf-8")
        assert "|safe" not in text, path.name
        assert "autoescape" not in text, path.name
        assert "style=" not in text, path.name
        assert not re.search(r"\son[a-z]+=", text), path.name


def test_the_library_is_the_one_that_was_taken(repository):
    static = repository / "retire" / "pages" / "html" / "static"
    stated = json.loads((static / "htmx.json").read_bytes())
    data = (static / stated["file"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == stated["sha256"]
    assert (static / stated["license_file"]).is_file()
