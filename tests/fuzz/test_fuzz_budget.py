"""A short, seeded budget of mutated input; and that the fuzzers would notice a faulty sink.

The long runs are `python -m tests.fuzz.parser`, `.framing` (by coverage where atheris is installed)
and `.million`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

import sink.decision
import sink.monitor
import sink.proposal
from sink.decision import Allow, Basis, Binding
from tests.fuzz import engine, million, targets

pytestmark = pytest.mark.property

REPOSITORY = Path(__file__).resolve().parents[2]


def fuzz(name, count, seed=7):
    target, seeds = targets.TARGETS[name]
    return engine.mutations(target, seeds(), Random(seed), lambda tried: tried >= count)


@pytest.mark.parametrize(("name", "count"), [("parser", 10_000), ("framing", 500)])
def test_mutated_bytes_find_nothing(name, count):
    assert fuzz(name, count) == count


def test_random_proposals_are_decided_as_the_reference_does():
    tally = million.in_process(8_000, seed=7)
    assert tally.faults == 0, tally.told("in process")
    # The mix reaches every decision, or the zero above would mean little.
    assert tally.outcomes["allow authority"] > 50
    assert len(tally.outcomes) >= 10


def test_random_proposals_through_the_real_programs():
    tally = asyncio.run(million.through_programs(400, seed=7))
    assert tally.faults == 0, tally.told("through the programs")
    assert tally.outcomes["allow authority"] > 5


@pytest.mark.parametrize("name", ["parser", "framing"])
def test_the_fuzzer_runs_by_itself(name):
    """By coverage where atheris is installed, by mutation elsewhere."""
    command = [sys.executable, "-m", f"tests.fuzz.{name}", "--seconds", "1"]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


# --- faults planted into the sink are found -----------------------------------------------------


def keys_not_unique(monkeypatch):
    monkeypatch.setattr(sink.proposal, "_unique_keys", dict)


def numbers_not_exact(monkeypatch):
    monkeypatch.setattr(sink.proposal, "MAX_DIGITS", 400)


def finish_reason_ignored(monkeypatch):
    monkeypatch.setattr(sink.proposal, "_check_finished", lambda answer: None)


def predicates_ignored(monkeypatch):
    decide = sink.decision.decide

    def lenient(contract, proposal, snapshot, binding):
        decision = decide(contract, proposal, snapshot, binding)
        if isinstance(decision, Allow) or decision.reason != "grant_absent":
            return decision
        action = contract.action
        sent = sink.decision.Action(action.service, action.target, dict(action.canonical))
        return Allow(Basis.AUTHORITY, sent, decision.predicates, ())

    monkeypatch.setattr(sink.monitor, "decide", lenient)
    monkeypatch.setattr(million, "decide", lenient)


def extra_parameters_ignored(monkeypatch):
    monkeypatch.setattr(sink.decision, "_schema_fault", lambda action, sent: None)
    monkeypatch.setattr(
        sink.decision,
        "with_defaults",
        lambda action, values: {k: v for k, v in values.items() if k in action.canonical},
    )


def nothing_recorded(monkeypatch):
    async def append(self, message, decision, frozen):
        return {"nonce": "n", "seq": 1, "hash": ""}

    monkeypatch.setattr(sink.monitor.Monitor, "_append", append)


def nothing_spent(monkeypatch):
    class Forgetful(set):
        def __contains__(self, item):
            return False

    init = sink.monitor.Monitor.__init__

    def forgetful(self, *arguments):
        init(self, *arguments)
        self._spent = Forgetful()

    monkeypatch.setattr(sink.monitor.Monitor, "__init__", forgetful)


@pytest.mark.parametrize(
    ("plant", "name", "count"),
    [
        (keys_not_unique, "parser", 8_000),
        (numbers_not_exact, "parser", 8_000),
        (finish_reason_ignored, "parser", 8_000),
        (predicates_ignored, "framing", 300),
        (nothing_recorded, "framing", 300),
        (nothing_spent, "framing", 300),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_planted_fault_is_found(monkeypatch, plant, name, count):
    plant(monkeypatch)
    with pytest.raises(targets.FoundError):
        fuzz(name, count)


@pytest.mark.parametrize("plant", [keys_not_unique, predicates_ignored, extra_parameters_ignored])
def test_a_planted_fault_shows_in_the_tally(monkeypatch, plant):
    plant(monkeypatch)
    assert million.in_process(3_000, seed=7).wrongful


def test_a_nameless_parameter_is_a_parameter():
    """Found by the million: an empty key was taken for "no fault"."""
    case = million.household_cases()[0]
    text = '{"tool":"climate_set","arguments":{"target":"climate.den","temperature":26.5,"":1}}'
    answer = json.dumps({"mode": "json", "text": text, "finish_reason": "stop"})
    for binding in Binding:
        got = million.decided(case, answer.encode(), binding)
        assert got == ("deny", "parameter_mismatch")
