"""The A/A check counts what the next stage would see, and fits its deployment and skills alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from retire.bundle import load_bundle
from retire.certify.stability import differ, read_stability, stated_of
from retire.deployments import EMBEDDED, Call, Completion, DeploymentFault
from retire.domain.digests import digest_of
from retire.domain.errors import InputError
from retire.domain.evidence import Evidence
from retire.runner.stability import measure_stability
from sink.proposal import RawAnswer
from tests.made_traces import BREAKS, REFUSES, proposes
from tests.silent import Silent

if TYPE_CHECKING:
    from collections.abc import Sequence

PANEL = Path(__file__).parents[3] / "bundles" / "panel"
BUNDLES = {key: load_bundle(PANEL / key) for key in ("ACC_L01", "PRV_L01")}
SKILLS = {key: bundle.digests.skill for key, bundle in BUNDLES.items()}


class Wavering:
    """Answers every second question with another tool; falls silent where it is told to."""

    name = "wavering"
    evidence = Evidence.LIVE_MODEL
    concurrency = 1

    def __init__(self, texts: Sequence[str], silent_for: str = "") -> None:
        self.identity = {"provider": "test"}
        self.asked: list[tuple[str, Call]] = []
        self._texts = texts
        self._silent_for = silent_for

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def propose(self, messages: Any, tools: Any, call: Call) -> Completion:
        if self._silent_for and self._silent_for in call.place:
            raise DeploymentFault("the endpoint is down")
        text = self._texts[len(self.asked) % len(self._texts)]
        self.asked.append((str(messages), call))
        return Completion(RawAnswer(mode="json", text=text, finish_reason="stop"))


def measured(deployment: Any, repetitions: int = 1) -> Any:
    return asyncio.run(measure_stability(deployment, BUNDLES, 7, repetitions, Silent()))


def test_each_pair_has_identical_input() -> None:
    deployment = Wavering(['{"refusal": "no"}'])
    measured(deployment, 2)
    assert len(deployment.asked) == 2 * 2 * 8
    pairs = zip(deployment.asked[::2], deployment.asked[1::2], strict=True)
    assert all(first == second for first, second in pairs)
    assert len(set(map(str, deployment.asked))) == 2 * 8


def test_a_deployment_that_wavers_is_counted_per_bundle() -> None:
    found = measured(Wavering(['{"refusal": "no"}', '{"tool": "x", "arguments": {}}']))
    assert {key: (item.pairs, item.differ) for key, item in found.bundles.items()} == {
        "ACC_L01": (4, 4),
        "PRV_L01": (4, 4),
    }
    assert len(found.differing) == 8


def test_other_words_of_a_refusal_are_no_difference() -> None:
    found = measured(Wavering(['{"refusal": "no"}', '{"refusal": "certainly not"}']))
    assert not found.differing


def test_a_simulated_deployment_repeats_itself() -> None:
    assert not measured(EMBEDDED.named("drifting")).differing


def test_a_pair_without_answers_counts_as_none() -> None:
    found = measured(Wavering(['{"refusal": "no"}'], silent_for="PRV_L01"))
    assert found.bundles["PRV_L01"].pairs == 0
    assert len(found.unanswered) == 4
    assert found.bundles["ACC_L01"].pairs == 4


@pytest.mark.parametrize(
    "second",
    [
        REFUSES,
        proposes("b", target="'x"),
        proposes("a", target="'y"),
        proposes("a"),
        BREAKS,
    ],
)
def test_what_the_next_stage_would_see_makes_the_difference(second: Any) -> None:
    first = proposes("a", target="'x")
    assert differ(first, second)
    assert not differ(first, first.model_copy())


def stated(**changes: Any) -> Any:
    found = measured(EMBEDDED.named("plain"))
    identities = {"plain": digest_of(dict(EMBEDDED.named("plain").identity))}
    values = {"identities": identities, "skills": SKILLS, **changes}
    again = read_stability(found.model_dump_json(by_alias=True).encode(), "s.json")
    return stated_of([again], values["identities"], values["skills"])


def test_a_certificate_states_its_own_bundles_alone() -> None:
    assert stated()["plain"].pairs == 8
    one = stated(skills={"ACC_L01": SKILLS["ACC_L01"]})["plain"]
    assert (one.pairs, list(one.by_bundle)) == (4, ["ACC_L01"])


@pytest.mark.parametrize(
    "changes",
    [
        {"identities": {"plain": "sha256:other"}},
        {"identities": {}},
        {"skills": {**SKILLS, "ACC_L01": "sha256:other"}},
        {"skills": {**SKILLS, "ENV_L01": "sha256:unknown"}},
    ],
)
def test_a_measurement_of_something_else_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        stated(**changes)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"schema": "retire.stability/v2"}', b"[1]"])
def test_what_is_no_measurement_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="no measurement"):
        read_stability(data, "s.json")
