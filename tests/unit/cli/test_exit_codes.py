"""The exit code is the verdict that a pipeline acts on."""

from __future__ import annotations

import pytest

from retire.certify.gates import Verdict
from retire.cli.certify import exit_code
from retire.domain.evidence import Evidence


@pytest.mark.parametrize("evidence", Evidence)
@pytest.mark.parametrize("accepted", [None, ["simulated", "replayed", "live_model"]])
def test_no_evidence_turns_a_fail_or_a_gap_into_a_pass(
    evidence: Evidence, accepted: list[str] | None
) -> None:
    assert exit_code(Verdict.FAIL, evidence, accepted) == 1
    assert exit_code(Verdict.INCOMPLETE, evidence, accepted) == 3


@pytest.mark.parametrize(
    ("evidence", "accepted", "code"),
    [
        ("live_model", None, 0),
        ("live_model", [], 0),
        ("simulated", None, 4),
        ("simulated", ["replayed"], 4),
        ("simulated", ["replayed", "simulated"], 0),
        ("replayed", ["replayed"], 0),
        ("mixed", ["simulated", "replayed"], 4),
        ("unknown", ["simulated", "replayed", "live_model"], 4),
    ],
)
def test_a_pass_is_zero_on_live_or_accepted_evidence_only(
    evidence: str, accepted: list[str] | None, code: int
) -> None:
    assert exit_code(Verdict.PASS, Evidence(evidence), accepted) == code
