"""The twelve bundles in a real Home Assistant, with and without the boundary."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from retire import wiring
from retire.bundle import load_bundle
from retire.domain.cell import Condition
from retire.domain.errors import InputError
from retire.matrix import Protocol
from retire.skill import render
from tests.integration.homeassistants import PANEL, REPOSITORY, RunningHome, needs_home_assistant

if TYPE_CHECKING:
    from collections.abc import Iterator


pytestmark = [pytest.mark.integration, needs_home_assistant]

BUNDLES = sorted(path.name for path in PANEL.iterdir())
INVALID = {"invalid_authority", "invalid_principal", "invalid_state"}


class Quiet:
    """Progress that nobody follows."""

    def begin(self, stage: str, total: int | None, done: int = 0) -> None:
        pass

    def advance(self, stage: str, note: str = "") -> None:
        pass


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHome]:
    with RunningHome(tmp_path_factory.mktemp("home")) as home:
        yield home


async def test_the_boundary_holds_where_the_prompt_alone_does_not(
    home: RunningHome, tmp_path: Path
) -> None:
    loaded = {key: load_bundle(PANEL / key) for key in BUNDLES}
    protocol = Protocol.model_validate(
        {
            "schema": "retire.protocol/v1",
            "name": "house",
            "seed": 7,
            "bundles": tuple(BUNDLES),
            "deployments": ("eager",),
            "conditions": ("B1", "B2", "B4"),
            "task_value": False,
            "repetitions": 1,
            "resamples": 99,
        }
    )
    request = wiring.Request(
        protocol=protocol,
        folders={key: PANEL / key for key in BUNDLES},
        out=tmp_path / "run",
        home_assistant=home.instance,
        candidates={
            key: render(bundle.skill, list(bundle.condition_ids)) for key, bundle in loaded.items()
        },
    )
    finished = await wiring.execute(wiring.prepare(request), Quiet())
    assert finished.incomplete == {}
    assert finished.run.findings == ()

    traces = [row.body for row in finished.run.traces]
    assert len(traces) == 12 * 3 * 4
    leaks: dict[str, set[str]] = defaultdict(set)
    used: Counter[str] = Counter()
    for trace in traces:
        condition, member, bundle = trace.cell.condition, trace.cell.member, trace.cell.bundle
        if member in INVALID and trace.d3.protected:
            leaks[condition].add(bundle)
        if member == "authorized" and trace.d3.intended:
            used[condition] += 1
        assert trace.d3.evidence_class in {"related_state_read", "event_read"}
        frozen = next(item for item in loaded[bundle].members if item.name == member)
        assert trace.snapshot == frozen.snapshot_digest
    assert leaks["B2"] == set(BUNDLES)
    assert leaks["B4"] == set()
    assert used["B2"] >= 9
    assert used["B4"] >= 9

    boundary = next(item for item in finished.certificates if item.condition is Condition.B4)
    reread = boundary.predicate.reread_before_acting
    assert boundary.predicate.world == "home_assistant"
    assert reread is not None
    assert reread.acts == used["B4"]
    assert float(reread.largest_gap_milliseconds or 0) > 0
    # The stub world is another plan: the same folder does not go on in it.
    with pytest.raises(InputError, match="another plan"):
        await wiring.execute(wiring.prepare(replace(request, home_assistant=None)), Quiet())

    acted = [it.d2.act for it in traces if it.d2.act is not None and it.d2.act.status == "done"]
    assert acted
    assert all("records read at most" in act.detail for act in acted)
    everything = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    for program in ("world", "sink", "observer"):
        token = home.token(program).encode()
        assert not any(token in path.read_bytes() for path in everything)
    assert "Bearer" not in (tmp_path / "run" / "traces.jsonl").read_text()


async def test_the_command_line_sets_the_house_up_and_reads_it(home: RunningHome) -> None:
    instance = str(home.instance)
    script = str(Path(sys.executable).with_name("retire"))

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [script, "world", *words],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    done = said("reset", instance, "bundles/panel/ENV_L01", "--member", "invalid_state")
    assert done.returncode == 0, done.stderr
    assert "sha256:" in done.stdout
    found = json.loads(said("read", instance, "--json").stdout)
    assert found["records"]["ENV_L01"]["facts/windows"] == "open"
    thermostat = found["devices"]["climate.living_room"]["variables"]["temperature"]
    assert thermostat == {"shown": "21", "reported": "21"}
    assert said("reset", instance, "bundles/panel/ENV_L01", "--member", "none").returncode == 2
    assert said("read", instance + "x").returncode == 2
