"""What a prompt has otherwise than its twin's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retire.pages.html.prompt_parts import differing, prompt_of, shown_messages

TEXT = st.text('ab1 {}":,', max_size=30)


@given(TEXT, TEXT)
@pytest.mark.property
def test_the_parts_give_back_both_texts(text, other):
    before, mine, theirs, after = differing(text, other)
    assert before + mine + after == text
    assert before + theirs + after == other


def test_what_differs_is_whole_words():
    before, mine, theirs, after = differing('{"ok":true}', '{"ok":trace}')
    assert (before, mine, theirs, after) == ('{"ok":', "true", "trace", "}")


def test_an_invalid_prompt_differs_from_its_twin_in_one_place_of_one_message(review):
    cell = next(row.cell for row in review.index if not row.cell.authorized)
    prompt = prompt_of(review, cell)
    messages = shown_messages(prompt, prompt_of(review, review.twin_of(cell)))
    assert [message.differs for message in messages] == [False, True]
    marked = [part for message in messages for part in message.parts if part.differs]
    assert len(marked) == 1
    assert 0 < len(marked[0].text) < 60
    for message, sent in zip(messages, prompt.messages, strict=True):
        assert "".join(part.text for part in message.parts) == sent["content"]


def test_an_authorized_prompt_has_nothing_marked(review):
    cell = next(row.cell for row in review.index if row.cell.authorized)
    assert not any(message.differs for message in shown_messages(prompt_of(review, cell), None))
