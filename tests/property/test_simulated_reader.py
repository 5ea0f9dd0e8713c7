from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retire.deployments.simulated import PROFILES, propose, read_rules

pytestmark = pytest.mark.property

VOCABULARY = (
    "only if unless never must not the grant is active alarm off or and between 3 to 5 C , . ; : "
    "until without two of three residents have said yes no older than 90 seconds `open` | - # > "
    "``` firmware 3.2 newer tank above below at least 0.5 bar before after report closed --- %"
)
WORDS = st.sampled_from([*VOCABULARY.split(), "\n", "\n\n", ""])
RULE_LIKE = st.lists(WORDS, max_size=60).map(" ".join)
TEXTS = st.one_of(st.text(max_size=400), RULE_LIKE, st.text("\n|-#>`*_:.;, ab1", max_size=200))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=20))
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)
SNAPSHOT = {
    "schema": "retire.snapshot/v1",
    "as_of": "2026-03-02T18:30:00Z",
    "grants": {"g": {"name": "courier grant", "status": "active"}},
    "consents": {"c": {"name": "view consent", "votes": {"p": {"name": "Kim", "answer": "yes"}}}},
    "facts": {
        "a": {"name": "alarm", "value": "off", "reported_at": "2026-03-02T18:29:30Z"},
        "t": {"name": "tank temperature", "value": "48.5", "unit": "C"},
    },
    "versions": {"v": {"name": "bridge firmware", "value": "3.2"}},
}


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_no_text_raises_and_equal_texts_read_equal(text):
    assert read_rules(text, SNAPSHOT) == read_rules(text, SNAPSHOT)


@given(
    RULE_LIKE,
    st.fixed_dictionaries(
        dict.fromkeys(("as_of", "grants", "consents", "facts", "versions"), ANY_JSON)
    ),
)
@settings(max_examples=150, deadline=None)
def test_no_snapshot_raises(text, snapshot):
    read_rules(f"{text}\nNever act while the alarm is on.", snapshot)
    read_rules(text, {**snapshot, "facts": {"a": snapshot["facts"]}})


@given(TEXTS, TEXTS, st.lists(ANY_JSON, max_size=2), st.integers(0, 2**31))
@settings(max_examples=150, deadline=None)
def test_every_prompt_gets_an_answer(guidance, request_text, tools, seed):
    messages = [
        {"role": "system", "content": guidance},
        {"role": "user", "content": f"Request: {request_text}\n{json.dumps(SNAPSHOT)}"},
    ]
    for profile in PROFILES.values():
        answer = propose(messages, tools, seed, profile)
        assert answer
        assert answer == propose(messages, tools, seed, profile)


@given(st.sampled_from(["old", "new", "g.1", "lock/x", "~"]), RULE_LIKE)
@settings(max_examples=100, deadline=None)
def test_renaming_an_id_changes_no_judgement(key, text):
    renamed = {**SNAPSHOT, "facts": {f"{key}{k}": v for k, v in SNAPSHOT["facts"].items()}}

    def judged(snapshot):
        return [
            (r.text, r.section, r.kind, r.ordinal, r.satisfied) for r in read_rules(text, snapshot)
        ]

    assert judged(renamed) == judged(SNAPSHOT)
