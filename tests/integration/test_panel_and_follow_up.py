"""The whole panel with its follow-up: every count that the embedded default promises."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from retire.bundle import find_bundles
from retire.certify.accounting import leaking_members
from retire.certify.gates import Verdict
from retire.domain.cell import Condition, Sample
from retire.domain.outcome import D1Outcome, D2Outcome
from retire.matrix import Protocol, load_protocol
from retire.wiring import Finished, Request, execute, prepare
from tests.silent import Silent

if TYPE_CHECKING:
    from pathlib import Path

    from retire.certify.certificate import Certificate
    from retire.domain.outcome import Outcome

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def finished(repository: Path, panel: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    path = repository / "bundles" / "protocols" / "panel.yaml"
    values = load_protocol(path.read_bytes(), str(path)).model_dump(by_alias=True)
    values["conditions"] = (*values["conditions"], "B5", "B6")
    folders = {folder.name: folder for folder in find_bundles([panel])}
    out = tmp_path_factory.mktemp("panel") / "run"
    request = Request(Protocol.model_validate(values), folders, out)
    return asyncio.run(execute(prepare(request), Silent()))


def of(finished: Finished, condition: Condition) -> list[Outcome]:
    return [o for o in finished.run.outcomes if o.cell.condition is condition]


def certificate(finished: Finished, deployment: str, condition: str) -> Certificate:
    found = finished.certificate_of(deployment, Condition(condition))
    assert found is not None, (deployment, condition)
    return found


def test_every_declared_cell_is_there_once_and_fits_its_records(finished: Finished) -> None:
    samples = Counter(o.cell.sample for o in finished.run.outcomes)
    primary = [o for o in finished.run.outcomes if str(o.cell.condition) not in {"B5", "B6"}]
    assert samples == {Sample.TASK_VALUE: 288, Sample.AUDIT: 2304 + 1152}
    assert len(primary) == 2592
    assert all(o.complete for o in finished.run.outcomes)
    assert finished.run.findings == ()
    assert finished.incomplete == {}


def test_no_protected_effect_passes_a_boundary(finished: Finished) -> None:
    for condition in (Condition.B4, Condition.B5, Condition.B6):
        assert leaking_members(of(finished, condition)) == ()


def test_every_bundle_leaks_under_the_reduction(finished: Finished) -> None:
    leaking = {leak.bundle for leak in leaking_members(of(finished, Condition.B2))}
    assert leaking == set(finished.run.bundles)
    assert len(leaking) == 12


def test_the_four_profiles_exercise_every_verdict(finished: Finished) -> None:
    leaks = certificate(finished, "eager", "B2")
    assert leaks.verdict is Verdict.FAIL
    assert leaks.predicate.failed_gates == ("authority",)

    refuses = certificate(finished, "heedful", "B4")
    assert refuses.verdict is Verdict.FAIL
    assert refuses.predicate.failed_gates == ("utility",)
    missed = [
        o
        for o in of(finished, Condition.B4)
        if o.cell.deployment == "heedful" and o.cell.authorized and not o.intended
    ]
    assert {o.d1 for o in missed} == {D1Outcome.REFUSAL}

    assert certificate(finished, "plain", "B4").verdict is Verdict.PASS
    tight = certificate(finished, "plain", "B5")
    assert (tight.verdict, tight.gates.utility.headroom) == (Verdict.PASS, 0)


def test_exact_binding_fails_where_a_model_adds_an_optional_parameter(finished: Finished) -> None:
    canonical = certificate(finished, "eager", "B5")
    exact = certificate(finished, "eager", "B6")
    assert canonical.verdict is Verdict.PASS
    assert exact.verdict is Verdict.FAIL
    assert exact.gates.authority.passes
    denied = {
        (o.cell.bundle, o.reason, o.parameter)
        for o in of(finished, Condition.B6)
        if o.cell.deployment == "eager" and o.cell.authorized and o.d2 is D2Outcome.DENY
    }
    assert ("PRV_L05", "parameter_mismatch", "range_days") in denied


def test_an_act_in_the_free_band_is_allowed_on_an_invalid_member_and_is_no_harm(
    finished: Finished,
) -> None:
    banded = [
        o
        for o in of(finished, Condition.B4)
        if not o.cell.authorized and o.d2 is D2Outcome.ALLOW and o.basis == "free_band"
    ]
    assert banded
    assert not any(o.protected for o in banded)


def test_invalid_outputs_stay_in_the_denominator(finished: Finished) -> None:
    invalid = [o for o in finished.run.outcomes if o.d1 is D1Outcome.INVALID]
    assert invalid
    assert {o.d2 for o in invalid} == {D2Outcome.NOT_REACHED}
    assert all(o.d1_rule for o in invalid)
