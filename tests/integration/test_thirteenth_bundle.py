"""A device, words and predicates that are in no panel go all the way without a change of code."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from retire.bundle import load_bundle
from retire.deployments.simulated.profiles import Profile
from retire.deployments.simulated.reader import propose
from retire.domain.cell import Condition
from retire.prompts import build_prompt
from retire.runner.job import placed_text
from retire.skill import parse
from tests.integration.commands import PANEL, Done, retire, side_by_side
from tests.integration.poolcover import SKILL, fill_in

if TYPE_CHECKING:
    from pathlib import Path

    from retire.bundle import Bundle

pytestmark = pytest.mark.integration

BUNDLES = sorted(path.name for path in PANEL.iterdir())
LITERAL = Profile("literal", 1000, 0, 0, 0, 0, 0, 0, 1000, 0)
"""Heeds every rule it reads, and nothing else: its refusals are the text's doing."""

PROTOCOL = """\
schema: retire.protocol/v1
name: pool
seed: 11
bundles: [POOL_X1]
deployments: [plain, heedful]
conditions: [B1, B2, B3, B4, B5, B6]
repetitions: 2
"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A new bundle as `retire new` leaves it."""
    place = tmp_path_factory.mktemp("pool")
    (place / "SKILL.md").write_text(SKILL)
    done = retire("new", place / "POOL_X1", "--from", place / "SKILL.md")
    shutil.copytree(place / "POOL_X1", place / "untouched")
    return place, done


@pytest.fixture(scope="module")
def pool(started: tuple[Path, Done]) -> Path:
    """The bundle after a person has filled it in."""
    bundle = started[0] / "POOL_X1"
    fill_in(bundle)
    return bundle


@pytest.fixture(scope="module")
def reduced(pool: Path) -> tuple[Path, Done]:
    """What the reducer leaves of it."""
    out = pool.parent / "reduced"
    done = retire("reduce", pool, "--deployment", "plain", "--out", out)
    return out / "reductions" / "plain" / "POOL_X1" / "SKILL.md", done


@pytest.fixture(scope="module")
def certified(pool: Path, reduced: tuple[Path, Done]) -> dict[str, Done]:
    """The reduction under two placements."""

    def certify(placement: str) -> Done:
        return retire(
            "certify",
            pool,
            "--candidate",
            reduced[0],
            "--deployment",
            "plain",
            "--placement",
            placement,
            "--out",
            pool.parent / placement,
        )

    return side_by_side({name: (lambda name=name: certify(name)) for name in ("B2", "B4")})


@pytest.fixture(scope="module")
def matrix(pool: Path) -> tuple[Path, Done]:
    """The bundle alone, all conditions."""
    (pool.parent / "pool.yaml").write_text(PROTOCOL)
    return run_matrix(pool, pool.parent / "pool.yaml", pool.parent / "matrix")


def run_matrix(bundle: Path, protocol: Path, out: Path, *more: str) -> tuple[Path, Done]:
    more = ("--no-figures", *more)
    return out, retire("matrix", "--protocol", protocol, "--bundles", bundle, "--out", out, *more)


def test_a_new_bundle_is_refused_until_a_person_has_audited_it(
    started: tuple[Path, Done],
) -> None:
    place, done = started
    assert done.code == 0
    clauses = len(parse(SKILL.encode()).clauses)
    assert 10 <= clauses <= 14
    assert f"{clauses} clauses" in done.said
    linted = retire("lint", place / "untouched")
    assert linted.code == 2
    assert linted.said.count("has not been audited") == clauses


def test_the_filled_in_bundle_has_no_fault(pool: Path) -> None:
    done = retire("lint", pool)
    assert done.code == 0
    assert "1 bundle, 0 errors, 0 warnings" in done.said


def test_reduction_deletes_every_condition(reduced: tuple[Path, Done], pool: Path) -> None:
    path, done = reduced
    assert done.code == 0
    left = {clause.text for clause in parse(path.read_bytes()).clauses}
    bundle = load_bundle(pool)
    assert all(bundle.skill.clause(item).text not in left for item in bundle.predicate_of_clause)


def test_the_reduction_as_it_is_leaks(certified: dict[str, Done]) -> None:
    assert certified["B2"].code == 1
    assert "authority shut" in certified["B2"].said


def test_behind_the_sink_nothing_leaks(certified: dict[str, Done]) -> None:
    done = certified["B4"]
    assert done.code in {1, 4}
    assert "authority open" in done.said
    assert "0 of 12 invalid cells" in done.said


def test_matrix_and_verify_take_it_like_any_other(matrix: tuple[Path, Done], pool: Path) -> None:
    out, done = matrix
    assert done.code == 0, done
    verified = retire("verify", out, "--against", pool)
    assert "BROKEN" not in verified.said
    assert verified.said.count("intact") == 10


def test_a_changed_bundle_makes_its_certificates_stale(
    matrix: tuple[Path, Done], pool: Path, tmp_path: Path
) -> None:
    now = tmp_path / "POOL_X1"
    shutil.copytree(pool, now)
    path = now / "contract.yaml"
    path.write_text(path.read_text().replace("How fast the drum turns", "Pace of the drum"))
    done = retire("verify", matrix[0] / "certificates" / "plain-B4.json", "--against", now)
    assert done.code == 1
    assert "stale: POOL_X1: the contract has changed since" in done.said


# -- behaviour follows text ----------------------------------------------------------------------


def answers(bundle: Bundle, deleted: tuple[str, ...], seed: int) -> dict[str, bool]:
    """By member, whether a literal reader proposes the action."""
    text = placed_text(bundle, Condition.B2, deleted)
    proposes = {}
    for member in bundle.members:
        prompt = build_prompt(
            text, bundle.tools, bundle.tasks.locked.request, member.snapshot.decode(), None
        )
        said = json.loads(propose(prompt.messages, bundle.tools, seed, LITERAL))
        proposes[member.name] = said.get("tool") == bundle.contract.action.tool
    return proposes


@pytest.mark.parametrize("name", [*BUNDLES, "POOL_X1"])
def test_deleting_a_rule_changes_its_own_member_and_no_other(name: str, pool: Path) -> None:
    bundle = load_bundle(pool if name == "POOL_X1" else PANEL / name)
    full = answers(bundle, (), 5)
    assert full == {member.name: not member.predicate for member in bundle.members}
    for predicate in bundle.audited_predicates:
        deleted = tuple(
            clause for clause, said in bundle.predicate_of_clause.items() if said == predicate
        )
        changed = {
            member for member, done in answers(bundle, deleted, 5).items() if done != full[member]
        }
        assert changed == {f"invalid_{predicate}"}


@pytest.mark.parametrize("name", [*BUNDLES, "POOL_X1"])
def test_deleting_guidance_never_opens_an_invalid_member(name: str, pool: Path) -> None:
    bundle = load_bundle(pool if name == "POOL_X1" else PANEL / name)
    guidance = tuple(
        clause.id for clause in bundle.skill.clauses if clause.id not in bundle.predicate_of_clause
    )
    left = answers(bundle, guidance, 5)
    assert not any(done for member, done in left.items() if member != "authorized")


# -- names carry nothing -------------------------------------------------------------------------

RENAMED = {
    "POOL_X1": "zz-7",
    "cover.pool": "cover.k4",
    "cover.whirlpool": "cover.k9",
    "board.courtyard": "board.k1",
    "agent.courtyard": "agent.q",
    "person.h1": "person.z3",
    "person.h2": "person.a8",
    "person.h3": "person.m5",
    "swim_season": "g_b",
    "uncovered_pool": "c_a",
    "wind_at_pool": "f_y",
    "water_clarity": "f_x",
    "drum_controller": "v_q",
}


def rename(bundle: Path, target: Path) -> None:
    """Copy a bundle with every id changed in all its files, and its ledger's digests made anew."""
    target.mkdir()
    for path in bundle.iterdir():
        text = path.read_text()
        for old, new in RENAMED.items():
            text = text.replace(old, new)
        (target / path.name).write_text(text)
    skill = parse((target / "SKILL.md").read_bytes())
    ledger: dict[str, Any] = yaml.safe_load((target / "ledger.yaml").read_text())
    ledger["skill"] = skill.digest
    for entry in ledger["clauses"]:
        entry["digest"] = skill.clause(entry["id"]).digest
    (target / "ledger.yaml").write_text(json.dumps(ledger))


def stages(run: Path) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """What became of each cell, without any name."""
    found = {}
    for line in (run / "traces.jsonl").read_text().splitlines():
        body = json.loads(line)["body"]
        cell = body["cell"]
        key = tuple(str(cell[part]) for part in sorted(cell.keys() - {"bundle"}))
        d1, d2, d3 = body["d1"], body["d2"], body["d3"]
        found[key] = (
            (d1["outcome"], d1["rule"]),
            (d2["outcome"], d2["basis"], d2["reason"], d2["parameter"]),
            (d3["complete"], d3["intended"], d3["protected"], d3["evidence_class"]),
        )
    return found


def test_other_names_change_no_outcome(matrix: tuple[Path, Done], pool: Path) -> None:
    target = pool.parent / "renamed" / "zz-7"
    target.parent.mkdir()
    rename(pool, target)
    protocol = pool.parent / "renamed.yaml"
    protocol.write_text(PROTOCOL.replace("POOL_X1", "zz-7"))
    out, done = run_matrix(target, protocol, pool.parent / "matrix-renamed")
    assert done.code == 0, done
    assert stages(out) == stages(matrix[0])


# -- the same plan gives the same outcomes -------------------------------------------------------


def outcome_root(run: Path) -> str:
    return str(json.loads((run / "summary.json").read_text())["outcome_root"])


def test_a_seed_gives_one_outcome_root_whatever_runs_at_once(
    matrix: tuple[Path, Done], pool: Path
) -> None:
    protocol = pool.parent / "pool.yaml"
    runs = {
        "again": ("--concurrency", "16"),
        "one by one": ("--concurrency", "1"),
        "another seed": ("--seed", "12"),
    }
    done = side_by_side(
        {
            name: (
                lambda name=name, more=more: run_matrix(
                    pool, protocol, pool.parent / f"matrix {name}", *more
                )[1]
            )
            for name, more in runs.items()
        }
    )
    assert [item.code for item in done.values()] == [0, 0, 0]
    expected = outcome_root(matrix[0])
    assert outcome_root(pool.parent / "matrix again") == expected
    assert outcome_root(pool.parent / "matrix one by one") == expected
    assert outcome_root(pool.parent / "matrix another seed") != expected
