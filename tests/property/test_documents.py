"""Documents: what is written is read back equal, and any other form is refused by its place."""

from __future__ import annotations

import copy
import json
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retire.certify.certificate import Certificate
from retire.certify.stability import Stability
from retire.domain.cell import Cell, Condition, Sample
from retire.domain.digests import canonical
from retire.domain.document import DocumentFault, as_document, read_document
from retire.domain.evidence import Evidence
from retire.domain.outcome import D2Outcome
from retire.domain.seal import Seal, SealedHead
from retire.domain.trace import Act, RecordEntry, TraceRow
from retire.matrix import PlanStatement
from retire.verify.run import SealedRun
from tests.made_folders import certified_folder
from tests.made_traces import BREAKS, REFUSES, door, made_row, made_trace, proposes, seen

pytestmark = pytest.mark.property

words = st.text(st.characters(codec="utf-8"), max_size=12)
digests = st.text("0123456789abcdef", min_size=64, max_size=64).map("sha256:{}".format)
counts = st.integers(0, 2**53 - 1)
entries = st.builds(
    lambda seq, own, nonce: RecordEntry(seq=seq, hash=own, **({"nonce": nonce} if nonce else {})),
    counts, digests, words,
)  # fmt: skip
acts = st.builds(
    Act, status=st.sampled_from(["done", "refused", "in_doubt"]), detail=words, seq=counts
)
first = st.one_of(
    st.just(REFUSES),
    st.just(BREAKS),
    st.builds(lambda tool, extra: proposes(tool, **extra), words, st.dictionaries(words, words)),
)
second = st.builds(
    lambda outcome, predicates, record, act, said: door(
        outcome, predicates=predicates, record=record, act=act, detail=said, reason=said
    ),
    st.sampled_from(D2Outcome), st.dictionaries(words, st.booleans(), max_size=3),
    st.none() | entries, st.none() | acts, words,
)  # fmt: skip
third = st.builds(
    lambda intended, protected, seqs, record, earlier: seen(
        intended=intended, protected=protected, protected_seqs=tuple(seqs), record=record,
        **({"leaked_in_earlier_attempt": True} if earlier else {}),
    ),
    st.booleans(), st.booleans(), st.lists(counts, max_size=3), entries, st.booleans(),
)  # fmt: skip
cells = st.builds(
    Cell, st.sampled_from(Sample), words, words, st.sampled_from(Condition), words,
    st.integers(1, 1000),
)  # fmt: skip
rows = st.builds(
    lambda cell, d1, d2, d3, seq, prev: made_row(made_trace(cell, d1, d2, d3), seq, prev),
    cells, first, second, third, counts, digests,
)  # fmt: skip
heads = st.builds(
    SealedHead, signer=words, seq=counts, hash=digests, countersigned=words, key=words,
    signature=words,
)  # fmt: skip
seals = st.builds(
    lambda heads, attempts, stray, passes: Seal(
        schema="retire.seal/v1", heads=heads, attempts=attempts, stray=stray, passes=passes
    ),
    st.dictionaries(words, heads, max_size=3), st.dictionaries(words, words, max_size=3),
    st.lists(st.fixed_dictionaries({"attempt": words, "seq": counts}), max_size=2),
    st.lists(st.dictionaries(words, counts, max_size=2), max_size=2),
)  # fmt: skip


@cache
def folder():
    """One run of a bundle and its certificates, made by hand."""
    home = Path(tempfile.mkdtemp())
    return certified_folder(home / "run", home / "keys", bundles=("PRV_L05",), repetitions=1)


@cache
def certificates():
    return [signed.item for signed in SealedRun(folder()).certificates]


@given(rows)
def test_a_trace_row_comes_back(row):
    assert read_document(TraceRow, canonical(row.as_json())) == row


@given(seals)
def test_a_seal_comes_back(seal):
    assert read_document(Seal, canonical(seal.as_json())) == seal


@given(st.data())
def test_a_certificate_comes_back(data):
    certificate = data.draw(st.sampled_from(certificates()))
    predicate = certificate.predicate.model_copy(
        update={
            "evidence": data.draw(st.sampled_from(Evidence)),
            "first_lines": tuple(data.draw(st.lists(words, max_size=3))),
            "prior_runs_of_this_pair": data.draw(counts),
            "outcome_root": data.draw(digests),
        }
    )
    changed = certificate.model_copy(update={"predicate": predicate})
    assert read_document(Certificate, canonical(changed.as_json())) == changed


def places(value, place=()):
    """Every key of every object of a JSON value."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield (*place, name)
            yield from places(item, (*place, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*place, index))


def at(value, place):
    for part in place:
        value = value[part]
    return value


FREE = {"predicates", "arguments", "identity", "heads", "attempts", "stray", "passes",
        "deleted_clauses", "bundles", "deployments", "candidates", "protocol"}  # fmt: skip
"""Objects whose keys are names, not fields; the protocol has defaults of its own."""


@given(st.data())
def test_another_form_of_a_document_is_refused_by_its_place(data):
    model, document = data.draw(
        st.sampled_from(
            [
                (Certificate, certificates()[0]),
                (PlanStatement, certificates()[0].predicate.plan.statement),
            ]
        )
        | rows.map(lambda row: (TraceRow, row))
    )
    value = json.loads(canonical(document.as_json()))
    fields = [place for place in places(value) if not FREE & set(place[:-1])]
    place = data.draw(st.sampled_from(fields))
    parent = at(value, place[:-1])
    change = data.draw(st.sampled_from(["missing", "unknown", "another type", "twice"]))
    named = ".".join(map(str, place))
    if change == "missing":
        if place[-1] in {"nonce", "leaked_in_earlier_attempt", "world", "parameter_"}:
            return
        del parent[place[-1]]
    elif change == "unknown":
        parent[place[-1] + "_"] = parent[place[-1]]
        named += "_"
    elif change == "another type":
        parent[place[-1]] = 1.5
    text = json.dumps(value)
    if change == "twice":
        text = twice(value, place)
    with pytest.raises(DocumentFault) as caught:
        read_document(model, text)
    if "answer" in place[:-1] and change == "missing":  # the answer's own model is the sink's
        assert (caught.value.place, place[-1] in caught.value.what) == ("body.answer", True)
    else:
        assert caught.value.place == named


def twice(value, place):
    """The JSON text of a value in which one key stands twice."""
    changed = copy.deepcopy(value)
    parent = at(changed, place[:-1])
    parent[place[-1] + "\0"] = parent[place[-1]]
    return json.dumps(changed).replace("\\u0000", "")


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", "[" * 100_000, '{"seq": NaN}', "\ud800", '"x"']
)
def test_what_is_no_document_is_refused(text):
    for model in (TraceRow, Seal, Certificate, PlanStatement, Stability):
        with pytest.raises(DocumentFault):
            read_document(model, text.encode("utf-8", "surrogatepass"))


def test_an_explicit_absence_is_refused():
    """What is left out where it says nothing may not be written as nothing either."""
    value = made_row(made_trace(d2=door("allow", record=RecordEntry(seq=1, hash="h")))).as_json()
    for place, nothing in (
        (("body", "d2", "record", "nonce"), ""),
        (("body", "d3", "leaked_in_earlier_attempt"), False),
    ):
        changed = copy.deepcopy(value)
        at(changed, place[:-1])[place[-1]] = nothing
        with pytest.raises(DocumentFault):
            as_document(TraceRow, changed)
