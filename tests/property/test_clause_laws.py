"""The laws of clauses, over generated Markdown and over the hard skills."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from retire.domain.errors import InputError, NotAReduction
from retire.skill import SkillDocument, align, parse, render

pytestmark = pytest.mark.property

HEAD = "---\nname: x\ndescription: d\n---\n"
CORPUS = sorted((Path(__file__).parents[1] / "corpus" / "skills").glob("*.md"))
SENTENCES = st.sampled_from(
    [
        "Ask first.",
        "Never open it!",
        "**Wait. Then go.**",
        "(See there. It helps.)",
        'Say "No." twice.',
        "Use `a. b.` now.",
        "e.g. at 5 p.m. only",
        "without an end",
        "See [x. y](https://example.org/a).",
        "Nie am 3. Mai.",
        "先に聞く。",
        "a | b",
        "*open emphasis.",
        "_",
        "1. inline.",
        "# no heading.",
    ]
)
LINES = st.sampled_from(
    [
        "",
        "",
        "- a",
        "  - b. C.",
        "    - c",
        "\t- tab",
        "-",
        "1. one",
        "2) two",
        "10. ten. More.",
        "-     code",
        "> q. R.",
        "> - x",
        "- > y",
        ">",
        "    code. X",
        "        deep",
        "lazy. Line.",
        "   three. Spaces.",
        "# H",
        "---",
        "===",
        "***",
        "```",
        "~~~",
        "  ```",
        "| a | b |",
        "|---|---|",
        "| 1. X | 2 |",
        "<HOLD-ON>",
        "</HOLD-ON>",
        "<div>",
        "</div>",
        "<!-- c. D.",
        "-->",
        "[r]: https://example.org",
        "``` x. ` Y",
        "--",
        "“ Q. R. ”",
    ]
)


def indented(marker: str, lines: list[str]) -> list[str]:
    """Put lines behind a marker, the further ones indented to match."""
    pad = marker if marker.strip() == ">" else " " * len(marker)
    return [
        marker + lines[0],
        *(pad + line if line or pad != " " * len(pad) else "" for line in lines[1:]),
    ]


PARAGRAPHS = st.lists(SENTENCES, min_size=1, max_size=4).flatmap(
    lambda parts: st.sampled_from([[" ".join(parts)], parts])
)
BLOCKS = st.one_of(
    PARAGRAPHS,
    PARAGRAPHS,
    st.sampled_from([["# One"], ["## Two"], ["Under", "====="], ["***"]]),
    st.sampled_from(
        [["```", "# x. Y.", "", "- z", "```"], ["~~~", "```", "~~~"], ["    code. X", "    y"]]
    ),
    st.sampled_from([["| a | b |", "|---|---|", "| 1. X. | 2 |", "| 3 | 4 |"], ["| a |", "|---|"]]),
    st.sampled_from([["<HOLD-ON>", "Ask. Wait.", "Go.", "</HOLD-ON>"], ["<!-- x. Y. -->"]]),
)
MARKERS = st.sampled_from(["- ", "* ", "-   ", "1. ", "7. ", "10. ", "1)  ", " - ", "   2. ", "> "])


def joined(blocks: list[list[str]], gaps: list[int]) -> list[str]:
    """Put blocks under each other with blank lines between."""
    lines: list[str] = []
    for block, gap in zip(blocks, gaps, strict=False):
        lines += [*block, *[""] * gap]
    return lines or [""]


GAPS = st.lists(st.sampled_from([0, 1, 1, 1, 2]), min_size=5, max_size=5)


def nested(children: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    """Wrap what has been built so far in containers and rows of blocks."""
    return st.one_of(
        st.builds(indented, MARKERS, children),
        st.builds(joined, st.lists(children, min_size=1, max_size=5), GAPS),
    )


STRUCTURED = st.recursive(BLOCKS, nested, max_leaves=9)
SOUP = st.lists(LINES | st.builds(" ".join, st.lists(SENTENCES, max_size=3)), max_size=10)
BODIES = st.one_of(STRUCTURED, STRUCTURED, SOUP, st.builds(lambda a, b: [*a, *b], STRUCTURED, SOUP))
FILES = st.builds(
    lambda lines, end, last: (HEAD + "\n".join(lines) + last).replace("\n", end).encode(),
    BODIES,
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.sampled_from(["", "\n", "\n\n"]),
)
SELECTIONS = st.lists(st.booleans(), min_size=8, max_size=8)


def texts(document: SkillDocument) -> list[str]:
    return [clause.text for clause in document.clauses]


def chosen(document: SkillDocument, pattern: list[bool]) -> list[str]:
    return [
        clause.id
        for number, clause in enumerate(document.clauses)
        if pattern[number % len(pattern)]
    ]


def check_laws(data: bytes, first: list[bool], second: list[bool]) -> None:
    document = parse(data)
    assert b"".join(data[one.start : one.end] for one in document.segments) == data
    assert render(document, []) == data
    gone = chosen(document, first)
    left = parse(render(document, gone))
    assert texts(left) == [one.text for one in document.clauses if one.id not in gone]
    further = chosen(left, second)
    kept = [one.id for one in document.clauses if one.id not in gone]
    also = [kept[number] for number, one in enumerate(left.clauses) if one.id in further]
    twice = parse(render(left, further))
    assert texts(twice) == texts(parse(render(document, [*gone, *also])))


@given(FILES, SELECTIONS, SELECTIONS)
@settings(max_examples=400, deadline=None)
def test_any_clauses_can_go(data: bytes, first: list[bool], second: list[bool]) -> None:
    check_laws(data, first, second)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
@given(SELECTIONS, SELECTIONS)
@settings(max_examples=40, deadline=None)
def test_any_clauses_of_a_hard_skill_can_go(
    path: Path, first: list[bool], second: list[bool]
) -> None:
    check_laws(path.read_bytes(), first, second)


@given(FILES)
@settings(max_examples=150, deadline=None)
def test_an_emptied_skill_leaves_no_debris(data: bytes) -> None:
    document = parse(data)
    assume(document.clauses)
    emptied = render(document, [clause.id for clause in document.clauses])
    assert emptied == data[: document.frontmatter_end]


@given(FILES, SELECTIONS)
@settings(max_examples=150, deadline=None)
def test_a_reduction_aligns_with_its_skill(data: bytes, pattern: list[bool]) -> None:
    document = parse(data)
    gone = chosen(document, pattern)
    candidate = parse(render(document, gone))
    result = align(document, candidate)
    digests = {clause.id: clause.digest for clause in document.clauses}
    assert [digests[one] for one in result.kept] == [one.digest for one in candidate.clauses]
    assert sorted(result.kept + result.deleted) == sorted(digests)
    if candidate.clauses and gone:
        with pytest.raises(NotAReduction):
            align(candidate, document)


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda body: (HEAD + body).encode()))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_whole_or_refused(data: bytes) -> None:
    try:
        document = parse(data)
    except InputError:
        return
    assert b"".join(data[one.start : one.end] for one in document.segments) == data
    check_laws(data, [True, False], [False, True])
