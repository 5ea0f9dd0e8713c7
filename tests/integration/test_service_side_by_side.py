"""Twenty certifications at once, on either database, each with the outcome it has alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.databases import KINDS, fresh_database
from tests.integration.servers import Server, alone, make_token

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

BUNDLES = (
    *("ACC_L01", "ACC_L03", "ACC_L05", "ACC_L06"),
    *("PRV_L01", "PRV_L02", "PRV_L04", "PRV_L05"),
    *("ENV_L01", "ENV_L02", "ENV_L04", "ENV_L05"),
)
PLANS: list[dict[str, Any]] = [
    {
        "bundle": BUNDLES[number % 12],
        "deployment": ("plain", "eager")[number % 2],
        "placement": ("B2", "B3", "B4", "B5", "B6")[number % 5],
        "seed": 1 + number % 3,
    }
    for number in range(20)
]


@pytest.fixture(scope="module")
def by_itself(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each gives without a service; two at a time, each in its own folder and programs."""
    folder = tmp_path_factory.mktemp("alone")
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda n: alone(folder / f"{n}" / "run", **PLANS[n]), range(20)))


@pytest.mark.parametrize("kind", KINDS)
def test_twenty_at_once_give_what_each_gives_alone(
    kind: str, tmp_path: Path, by_itself: list[dict[str, Any]]
) -> None:
    database = fresh_database(kind, tmp_path)
    token = make_token(database)
    with Server(tmp_path / "data", database, token, runs_at_once=20, lease_seconds=10) as server:
        with ThreadPoolExecutor(20) as pool:
            runs = list(pool.map(lambda plan: server.submit(**plan)["id"], PLANS))
        assert len(set(runs)) == 20
        outcomes = [server.outcome(run) for run in runs]
        assert server.client.get("/readyz").json()["status"]
    assert len({outcome["outcome_root"] for outcome in by_itself}) == 20
    assert {outcome["verdict"] for outcome in by_itself} >= {"pass", "fail"}
    for plan, outcome, expected in zip(PLANS, outcomes, by_itself, strict=True):
        assert outcome == expected, plan
