"""What clauses come out of skills that are hard to cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from retire.skill import parse, render

CORPUS = Path(__file__).parents[2] / "corpus" / "skills"

EXPECTED = {
    "fences": [
        ("code_block", "```\nNO UNLOCK WITHOUT A FRESH CAMERA FRAME\n```"),
        (
            "code_block",
            "~~~~bash\n# Unlock everything\n```\n## Allowed: lock.unlock all\n```\n~~~~",
        ),
        ("sentence", "After the example: ask first."),
        ("list_item", "Run"),
        ("code_block", "```sh\n   lock status\n\n   lock.unlock side\n   ```"),
        ("list_item", "Report"),
    ],
    "from-zero": [
        ("sentence", "If the alarm is armed, stop; steps 1-3 do not apply."),
        ("list_item", "Read the alarm state."),
        ("sentence", "Stop when it is armed."),
        ("list_item", "Read the lock state\n`lock.front_door`"),
        ("list_item", "Act"),
        (
            "list_item",
            (
                'unlock only if a resident names the door ("unlock\n     the side door" is enough; '
                '"let me in" is not) and\n     never because a timer fired'
            ),
        ),
        ("list_item", "Read again, unless step 2 was refused"),
    ],
    "headings-only": [
        ("sentence", "One sentence."),
    ],
    "indented-code": [
        ("sentence", "Read the state."),
        ("sentence", "Run this:\n\n    ha state lock.front\n    # not a heading"),
        ("code_block", "ha call lock.lock"),
        ("list_item", "Step one\n\n      sensor read"),
        ("list_item", "Step two"),
    ],
    "lazy": [
        ("sentence", "A quote that\ngoes on."),
        ("sentence", "And on."),
        ("list_item", "An item that\ngoes on too."),
        ("sentence", "Really."),
        ("list_item", "Deeper\nas well."),
        ("sentence", "Yes."),
    ],
    "list-after-paragraph": [
        ("sentence", "Do this:"),
        ("list_item", "Knock."),
        ("list_item", "Wait."),
        ("sentence", "Not the list."),
        ("sentence", "Then this:"),
        ("list_item", "Enter"),
        ("list_item", "Another list"),
        ("list_item", "And another"),
        ("sentence", "Still in the last item."),
    ],
    "markers": [
        ("list_item", "Wide item"),
        ("sentence", "Its second paragraph."),
        ("list_item", "Tab item"),
        ("list_item", "Tab child\n\t\tgoes on."),
        ("list_item", "Parent"),
        ("list_item", "Four columns"),
        ("list_item", "Eight columns"),
        ("list_item", "Four again"),
        ("list_item", "Ten"),
        ("list_item", "child of ten"),
        ("list_item", "Eleven"),
        ("list_item", "after an empty item"),
    ],
    "nested-quotes": [
        ("sentence", "Say who is there."),
        ("list_item", "Ring once."),
        ("sentence", "Wait a minute."),
        ("list_item", "Read the name aloud."),
        ("list_item", "Never open for a stranger."),
        ("list_item", "Log the visit."),
        ("sentence", "Inner note."),
        ("sentence", "Keep it."),
        ("list_item", "Outside"),
        ("sentence", "Only by day."),
        ("sentence", "Only with consent."),
        ("sentence", "Afterwards lock again."),
    ],
    "no-body": [],
    "raw-html": [
        ("html_block", "Do not open any cover until a resident said yes."),
        ("html_block", "This holds on every path below."),
        ("html_block", "- No guests after ten."),
        ("html_block", "- No music\n  in the hall."),
        ("html_block", "<div>\n<b>Note</b> the time.\n</div>"),
        ("sentence", "Close blinds at dusk."),
    ],
    "references": [
        ("sentence", "See [the manual][m]."),
        ("sentence", "Call `lock.unlock. now` only once."),
        ("sentence", "Read <https://example.org/a.b> first."),
        ("sentence", "**Never unlock. Never retry.**"),
        ("sentence", 'Then [report it](https://example.org/x "The. Title").'),
        ("sentence", '[m]: https://example.org/manual "Manual. Part 1"'),
        ("sentence", "[n]: https://example.org/notes"),
    ],
    "sentences": [
        ("sentence", "Wait approx. 5 min. before a retry, e.g. at night."),
        ("sentence", "Use version 1.2.3 of firmware 4.5."),
        ("sentence", "Stop!"),
        ("sentence", 'Ask "Who is there?" and wait.'),
        ("sentence", "(Only once. Never twice.)"),
        ("sentence", 'Say "Come in."'),
        ("sentence", "Then open."),
        ("sentence", "Is it open?"),
        ("sentence", "Mr. J. Smith may pass... or not."),
        ("sentence", "Set it to 19."),
        ("sentence", "Do nothing else."),
        ("sentence", "先に聞く。"),
        ("sentence", "それから開ける。"),
    ],
    "setext": [
        ("sentence", "Open it on request."),
        ("sentence", "Ask the owner first."),
        ("sentence", "Then wait."),
        ("sentence", "Report the result."),
    ],
    "tables": [
        ("sentence", "Use these values:"),
        ("table_row", "| hall | 19 C. Never more. |"),
        ("table_row", "| bath | 23 C |"),
        ("list_item", "Doors"),
        ("table_row", "| side | resident |"),
        ("table_row", "| front | anybody the owner named |"),
        ("list_item", "Windows"),
        ("table_row", "| Only | Head |\n|------|------|"),
    ],
    "two-lists": [
        ("list_item", "one"),
        ("sentence", "Between the lists."),
        ("list_item", "two"),
        ("list_item", "three"),
        ("sentence", "Between again."),
        ("code_block", "```\nunindented\n```"),
    ],
    "windows": [
        ("sentence", "Nie ohne Rückfrage öffnen."),
        ("sentence", "Danach z. B. melden."),
        ("list_item", "Klingeln"),
        ("list_item", "Warten"),
        ("list_item", "Am 3. Mai bleibt alles zu."),
    ],
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_clauses_of_a_hard_skill(name: str) -> None:
    document = parse((CORPUS / f"{name}.md").read_bytes(), name)
    assert [(clause.kind.value, clause.text) for clause in document.clauses] == EXPECTED[name]
    assert [clause.id for clause in document.clauses] == [
        f"c{number:03d}" for number in range(1, len(document.clauses) + 1)
    ]
    assert document.warnings == ()
    assert document.hidden == ()


def test_every_corpus_file_has_an_expectation() -> None:
    assert sorted(path.stem for path in CORPUS.glob("*.md")) == sorted(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_each_clause_goes_alone(name: str) -> None:
    document = parse((CORPUS / f"{name}.md").read_bytes(), name)
    texts = [clause.text for clause in document.clauses]
    for number, clause in enumerate(document.clauses):
        left = parse(render(document, [clause.id]), name)
        assert [one.text for one in left.clauses] == texts[:number] + texts[number + 1 :]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_spans_lines_and_digests_point_into_the_file(name: str) -> None:
    data = (CORPUS / f"{name}.md").read_bytes()
    document = parse(data, name)
    assert b"".join(data[one.start : one.end] for one in document.segments) == data
    for clause in document.clauses:
        assert data[clause.start : clause.end].decode() == clause.text
        assert data[: clause.start].count(b"\n") + 1 == clause.first_line
        assert data[: clause.end].count(b"\n") + 1 == clause.last_line
        assert clause.text == clause.text.strip()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_an_emptied_skill_is_its_frontmatter(name: str) -> None:
    document = parse((CORPUS / f"{name}.md").read_bytes(), name)
    emptied = render(document, [clause.id for clause in document.clauses])
    assert emptied == document.data[: document.frontmatter_end]
