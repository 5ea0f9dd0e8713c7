"""The report: one file that asks for nothing, a PDF that says the same, hostile words as words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from retire.domain.errors import InputError
from retire.pages.phrases import CONDITIONS, evidence_words
from retire.pages.verdict import finding_words, headroom_words, unmet_words

content = pytest.importorskip("retire.pages.report.content")
page = pytest.importorskip("retire.pages.report.page")
document = pytest.importorskip("retire.pages.report.document")
pdfium = pytest.importorskip("pypdfium2")
library = pytest.importorskip("retire.service.reviewing.library")

HOSTILE = (
    "<script>alert(1)</script>\u202e\x1b[2J\x00\u2028 <img src=http://evil.invalid/x onerror=a> "
    "&lt; <b>bold</b> </para> \u4f60\u597d \U0001f600 \ufffe" + "w" * 3000
)
VOID = {"meta", "br", "rect", "line", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Collects tags, attributes and text, and holds that every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self._open = set(), [], [], []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


def made(root, deployment=""):
    return content.report(library.Shelf().opened("a run", "a run", root), deployment)


def read_page(report):
    return Page(page.report_html(report).decode("utf-8"))


def read_pdf(report):
    pages = pdfium.PdfDocument(document.report_pdf(report))
    words = " ".join(part.get_textpage().get_text_range() for part in pages)
    return " ".join(words.split())


def joined(words):
    """Words without any white space: a PDF breaks lines where it likes."""
    return re.sub(r"\s|\ufffe|\u2010|-", "", words)


def leaking(bundle, cell):
    """Only B2 leaks, and only at repetitions 1 and 3."""
    action = bundle.contract.action
    text = json.dumps({"tool": action.tool, "arguments": {"target": action.target}})
    if cell.authorized:
        return text, True, True
    if str(cell.condition) == "B2" and cell.repetition != 2:
        return text, True, True
    return '{"refusal": "no"}', False, False


def test_every_leaking_cell_stands_in_the_report(certified):
    report = made(certified(leaking))
    (group,) = report.leaks
    assert (group.condition, group.cells) == ("B2", 2 * 3 * 2)
    assert {line.repetitions for line in group.lines} == {"1, 3"}
    assert sum(line.cells for line in group.lines) == group.cells


def test_both_files_say_the_same(certified):
    report = made(certified(leaking))
    foot = joined(f"{report.title}: {report.headline}. Evidence: {report.evidence}.page")
    html = joined(read_page(report).words)
    pdf = re.sub(re.escape(foot) + r"\d+", "", joined(read_pdf(report)))
    said = [report.headline, report.sentence, evidence_words(report.evidence), *report.limits]
    said += [value for _, value in report.facts + report.provenance]
    for it in report.judgements:
        said += [CONDITIONS[it.condition], *unmet_words(it)]
        said += [headroom_words(it.gates.utility.headroom)]
        said += map(finding_words, it.predicate.findings)
    for group in report.leaks:
        for line in group.lines:
            said += [line.bundle, line.member, line.flipped, line.proposed, line.decided, line.seen]
    for deletion in report.deletions:
        for it in deletion.conditions:
            said += [it.text, it.rule, it.licensing, *(fate.meaning for fate in it.fates)]
    for group in report.guidance:
        said += [text for _, text in group.texts]
    for test in report.tests:
        said += [test.question, test.p_adjusted]
    for words in said:
        assert joined(words) in html
        assert joined(words) in pdf


def test_the_page_asks_for_nothing_and_runs_nothing(certified):
    parsed = read_page(made(certified(leaking)))
    assert not parsed.tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    for name, value in parsed.attributes:
        assert not name.startswith("on")
        assert name not in {"src", "srcset", "action", "style"}
        assert name != "href" or value.startswith("#")


def test_hostile_words_stay_words(certified):
    def says(bundle, cell):
        if str(cell.condition) != "B2" or cell.authorized:
            return leaking(bundle, cell)
        return json.dumps({"tool": HOSTILE, "arguments": {HOSTILE[:20]: HOSTILE}}), True, True

    report = made(certified(says))
    report = replace(
        report,
        title=HOSTILE,
        sentence=HOSTILE,
        limits=(HOSTILE,),
        deletions=tuple(
            replace(it, conditions=(replace(it.conditions[0], text=HOSTILE, rule=HOSTILE),))
            for it in report.deletions
        ),
    )
    text = page.report_html(report).decode("utf-8")
    parsed = Page(text)
    assert "script" not in parsed.tags
    assert "img" not in parsed.tags
    assert "<script>alert(1)</script>" in parsed.words
    assert not re.search(r"[\u202a-\u202e\u2066-\u2069\u2028\x00\x1b]", text)
    pdf = read_pdf(report)
    assert "<script>alert(1)</script>" in joined(pdf)
    assert "\\u202e" in joined(pdf)
    assert "\\u4f60" in joined(pdf)
    assert "\u202e" not in pdf


def test_equal_runs_give_equal_files(certified):
    root = certified(leaking)
    first, second = made(root), made(root)
    assert page.report_html(first) == page.report_html(second)
    assert document.report_pdf(first) == document.report_pdf(second)


def test_one_deployment_can_be_chosen(certified):
    root = certified(leaking, deployments=("plain", "eager"))
    report = made(root, "eager")
    assert {it.deployment for it in report.judgements} == {"eager"}
    assert {it.deployment for it in report.maps} == {"eager"}
    assert {it.deployment for it in report.leaks} == {"eager"}
    with pytest.raises(InputError) as caught:
        made(root, "hasty")
    assert "plain" in caught.value.mend


def test_an_unfinished_run_has_no_report(certified):
    root = certified(leaking)
    for path in (root / "certificates").iterdir():
        path.unlink()
    with pytest.raises(InputError):
        made(root)


def test_a_certificate_that_was_changed_is_told_and_not_used(certified):
    root = certified(leaking)
    path = root / "certificates" / "plain-B4.json"
    envelope = json.loads(path.read_text())
    envelope["payload"] = envelope["payload"][:-8] + "AAAAAAA="
    path.write_text(json.dumps(envelope))
    report = made(root)
    assert [name for name, _ in report.faults] == ["plain-B4"]
    assert {it.condition for it in report.judgements} == {"B2"}
    assert "plain-B4" in read_page(report).words


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([1], "1"), ([1, 2], "1, 2"), ([1, 2, 3], "1 to 3"), ([1, 3, 4, 5, 9], "1, 3 to 5, 9")],
)
def test_repetitions_are_drawn_together(numbers, words):
    leaking_module = pytest.importorskip("retire.pages.report.leaking")
    assert leaking_module.numbers_words(numbers) == words
