"""Joining traces, records and sightings: whatever does not fit is named for what it is."""

from __future__ import annotations

import copy

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from retire.certify.joining import Records, countersigned, join
from retire.domain.cell import Cell, Condition, Sample
from retire.domain.digests import digest_of
from retire.domain.document import as_document
from retire.domain.trace import NOT_REACHED, TraceRow
from sink.record import GENESIS, make_entry, sign_head
from tests.made_traces import REFUSES, made_trace, proposes, seen

DOORS = ("sink-canonical", "sink-exact", "direct")
KEYS = {
    name: Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    for number, name in enumerate((*DOORS, "observer"), start=1)
}
ANSWER, CONTRACT, EFFECT, SNAPSHOT = (f"sha256:{letter * 64}" for letter in "abcd")


class Run:
    """A small run by hand: rows, four records with real keys, and what a test does to them."""

    def __init__(self):
        self.bodies = {name: [] for name in KEYS}
        self.rows = []
        self.attempts = {}
        self.stray = []
        self.signed = {}
        self.resign = True

    def record(self, name, body):
        prev = GENESIS
        for number, earlier in enumerate(self.bodies[name], start=1):
            prev = make_entry(number, prev, earlier).hash
        self.bodies[name].append(body)
        entry = make_entry(len(self.bodies[name]), prev, body)
        return {"seq": entry.seq, "hash": entry.hash}

    def cell(
        self, condition, member="authorized", *, allow=True, protected=None, outcome="proposal"
    ):
        """One undisturbed cell through its own door."""
        number = len(self.attempts) + 1
        attempt = f"{number:032x}"
        cell = Cell(Sample.AUDIT, "m", "ACC", condition, member, number)
        self.attempts[attempt] = cell.key
        d2 = NOT_REACHED.as_json()
        happened = allow if protected is None else protected
        if outcome == "proposal":
            d2 = self._decide(condition, attempt, d2, allow=allow)
        happened = happened and outcome == "proposal"
        sighting = self.sight(attempt, protected=happened)
        named = {"answer_digest": ANSWER, "snapshot": SNAPSHOT, "contract": CONTRACT}
        d1 = proposes() if outcome == "proposal" else REFUSES
        trace = made_trace(cell, d1, attempt=attempt, effect=EFFECT, **named)
        body = {**trace.as_json(), "d2": d2, "d3": sighting}
        self.rows.append(body)
        return body

    def _decide(self, condition, attempt, d2, *, allow):
        named = {"attempt": attempt, "answer": ANSWER, "contract": CONTRACT}
        if condition in {Condition.B1, Condition.B2, Condition.B3}:
            record = self.record("direct", {"kind": "direct", **named})
            return {**d2, "outcome": "unmediated", "record": record}
        door = "sink-exact" if condition is Condition.B6 else "sink-canonical"
        said = {
            "decision": "allow" if allow else "deny",
            "basis": "authority" if allow else "",
            "reason": "" if allow else "grant_absent",
            "parameter": "",
            "predicates": {"authority": allow},
        }
        record = self.record(
            door, {"kind": "decision", **named, "frozen_snapshot": SNAPSHOT, **said}
        )
        given = {key: value for key, value in said.items() if key != "decision"}
        return {**d2, "outcome": said["decision"], **given, "record": record}

    def sight(self, attempt, *, protected, complete=True):
        happened = {"complete": complete, "intended": protected, "protected": protected}
        body = seen(attempt=attempt, effect=EFFECT, **happened).as_json()
        del body["record"]
        return body | {"record": self.record("observer", {"kind": "sighting", **body})}

    def evidence(self, spoil=lambda records, heads: None):
        records, heads = {}, {}
        for name, key in KEYS.items():
            prev, lines = GENESIS, []
            for number, body in enumerate(self.bodies[name], start=1):
                entry = make_entry(number, prev, body)
                lines.append(entry.line())
                prev = entry.hash
            records[name] = b"".join(lines)
            hashes = {key: head.hash for key, head in heads.items()}
            signed = countersigned(hashes) if name == "observer" else ""
            heads[name] = sign_head(key, name, len(lines), prev, signed)
        rows, prev = [], GENESIS
        for number, body in enumerate(self.rows, start=1):
            row = {"seq": number, "prev": prev, "body": copy.deepcopy(body)}
            prev = digest_of(row)
            rows.append(as_document(TraceRow, {**row, "hash": prev}))
        spoil(records, heads)
        return Records(rows, records, heads, self.stray, self.attempts)

    def found(self, spoil=lambda records, heads: None):
        return [finding.kind for finding in join(self.evidence(spoil))]


@pytest.fixture
def run():
    run = Run()
    run.cell(Condition.B1)
    run.cell(Condition.B4)
    run.cell(Condition.B4, "invalid_authority", allow=False)
    run.cell(Condition.B2, "invalid_authority")
    run.cell(Condition.B6)
    run.cell(Condition.B4, outcome="refusal")
    return run


def test_an_undisturbed_run_has_no_finding(run):
    assert run.found() == []


def test_a_row_without_a_decision_in_its_record(run):
    run.rows[1]["d2"]["record"] = {"seq": 9, "hash": "sha256:" + "9" * 64}
    assert run.found() == ["decision_missing"]
    run.rows[1]["d2"]["record"] = None
    assert run.found() == ["decision_missing"]


def test_a_decision_without_a_proposal(run):
    run.record("sink-canonical", {"kind": "decision", "attempt": "f" * 32, "decision": "deny"})
    assert run.found() == ["decision_without_proposal"]


def test_a_decision_for_a_row_that_proposed_nothing(run):
    attempt = run.rows[5]["attempt"]
    run.record("sink-canonical", {"kind": "decision", "attempt": attempt, "decision": "deny"})
    assert run.found() == ["decision_without_proposal"]


def test_a_cut_attempts_decision_is_no_finding(run):
    run.attempts["e" * 32] = run.attempts[run.rows[1]["attempt"]]
    run.record("sink-canonical", {"kind": "decision", "attempt": "e" * 32, "decision": "allow"})
    assert run.found() == []


def test_an_effect_without_a_decision(run):
    attempt = run.rows[5]["attempt"]
    run.rows[5]["d3"] = run.sight(attempt, protected=True)
    assert run.found() == ["effect_without_decision"]


def test_an_effect_after_a_deny(run):
    attempt = run.rows[2]["attempt"]
    run.rows[2]["d3"] = run.sight(attempt, protected=True)
    assert run.found() == ["effect_without_decision"]


@pytest.mark.parametrize(
    ("stage", "field", "value"),
    [
        ("d2", "outcome", "deny"),
        ("d2", "basis", "free_band"),
        ("d2", "reason", "state_unmet"),
        ("d2", "parameter", "temperature"),
        ("d2", "predicates", {"authority": False}),
        ("", "answer_digest", "sha256:" + "0" * 64),
        ("", "contract", "sha256:" + "0" * 64),
        ("", "snapshot", "sha256:" + "0" * 64),
    ],
)
def test_a_forged_decision_differs_from_its_record(run, stage, field, value):
    place = run.rows[1][stage] if stage else run.rows[1]
    place[field] = value
    assert run.found() == ["decision_differs"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("protected", False),
        ("intended", False),
        ("complete", False),
        ("effect", "sha256:" + "0" * 64),
        ("evidence_class", "event_read"),
    ],
)
def test_a_forged_sighting_differs_from_its_record(run, field, value):
    run.rows[3]["d3"][field] = value
    assert "sighting_differs" in run.found()


def test_a_row_without_a_sighting(run):
    run.rows[2]["d3"]["record"] = {"seq": 1, "hash": "sha256:" + "9" * 64}
    assert run.found() == ["sighting_missing"]


def test_a_sighting_of_another_attempt_is_not_its_own(run):
    run.rows[3]["d3"]["record"] = run.rows[0]["d3"]["record"]
    assert run.found() == ["sighting_differs"]


def test_a_leak_of_an_earlier_attempt_may_not_be_forgotten(run):
    row = run.rows[2]
    cut = "e" * 32
    run.attempts[cut] = run.attempts[row["attempt"]]
    run.record("sink-canonical", {"kind": "decision", "attempt": cut, "decision": "allow"})
    run.sight(cut, protected=True)
    assert run.found() == ["leak_forgotten"]
    row["d3"] |= {"protected": True, "leaked_in_earlier_attempt": True}
    assert run.found() == []


def test_the_wrong_door_is_named(run):
    run.record("direct", {"kind": "direct", "attempt": run.rows[1]["attempt"]})
    assert run.found() == ["wrong_door"]
    run.rows[1]["d2"]["record"] = run.record(
        "direct",
        {
            "kind": "direct",
            "attempt": run.rows[1]["attempt"],
            "answer": ANSWER,
            "contract": CONTRACT,
        },
    )
    assert "decision_missing" in run.found()


def test_a_protected_effect_outside_every_episode(run):
    run.stray.append({"attempt": "ghost", "seq": 7})
    assert run.found() == ["stray_effect"]


def drop_line(name, place):
    def spoil(records, heads):
        lines = records[name].splitlines(keepends=True)
        del lines[place]
        records[name] = b"".join(lines)

    return spoil


@pytest.mark.parametrize(
    ("place", "kind"), [(0, "gap"), (1, "gap"), (-1, "truncated")], ids=["first", "inner", "last"]
)
@pytest.mark.parametrize("name", ["sink-canonical", "direct", "observer"])
def test_a_missing_entry_is_named(run, name, place, kind):
    run.cell(Condition.B1)
    run.cell(Condition.B4)
    assert kind in run.found(drop_line(name, place))


def test_records_that_are_gone_cut_or_unsigned(run):
    def gone(records, heads):
        records["sink-exact"] = None

    def torn(records, heads):
        records["direct"] = records["direct"][:-9]

    def extended(records, heads):
        records["direct"] += make_entry(3, heads["direct"].hash, {"kind": "x"}).line()

    def unsigned(records, heads):
        del heads["sink-canonical"]

    def forged(records, heads):
        head = heads["sink-canonical"]
        heads["sink-canonical"] = sign_head(KEYS["direct"], "x", head.seq, "sha256:" + "1" * 64)

    assert "missing" in run.found(gone)
    assert "torn" in run.found(torn)
    assert run.found(extended) == ["not_anchored"]
    assert "head" in run.found(unsigned)
    assert {"head", "rewritten"} <= set(run.found(forged))


def test_a_head_with_a_bad_signature_is_named(run):
    def spoil(records, heads):
        head = heads["observer"]
        heads["observer"] = type(head)(
            head.signer, head.seq, head.hash, head.countersigned, head.key, "00" * 64
        )

    assert run.found(spoil) == ["head"]


def test_the_observer_countersigns_the_other_heads(run):
    def spoil(records, heads):
        head = heads["observer"]
        heads["observer"] = sign_head(KEYS["observer"], head.signer, head.seq, head.hash, "")

    assert run.found(spoil) == ["head"]


@pytest.mark.parametrize("field", ["seq", "prev", "hash"])
def test_a_row_that_does_not_chain(run, field):
    evidence = run.evidence()
    other = 7 if field == "seq" else "sha256:" + "0" * 64
    evidence.rows[2] = evidence.rows[2].model_copy(update={field: other})
    assert [finding.kind for finding in join(evidence)] == ["trace_chain"]


def test_a_row_that_was_removed(run):
    evidence = run.evidence()
    del evidence.rows[2]
    assert "trace_chain" in [finding.kind for finding in join(evidence)]
