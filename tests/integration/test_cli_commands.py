"""Every command as the README tells it, with its exit codes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.commands import (
    PANEL,
    PUBLISHED,
    REPOSITORY,
    SCRIPT,
    Done,
    certify,
    emptied_candidate,
    files_below,
    protocol_file,
    retire,
    side_by_side,
    small_certificate,
    small_matrix,
    workshop,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

CAMERA = PANEL / "PRV_L01"


# -- skills and bundles --------------------------------------------------------------------------


def test_clauses_shows_how_a_skill_is_cut() -> None:
    done, listed = side_by_side(
        {
            "text": lambda: retire("clauses", CAMERA / "SKILL.md"),
            "json": lambda: retire("clauses", CAMERA, "--json"),
        }
    ).values()
    assert (done.code, listed.code) == (0, 0)
    clauses = json.loads(listed.out)
    data = (CAMERA / "SKILL.md").read_bytes()
    assert [line.split()[0] for line in done.out.splitlines()] == [item["id"] for item in clauses]
    assert all(item["text"].encode() in data for item in clauses)


def test_control_characters_in_a_skill_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "SKILL.md"
    path.write_text("---\nname: x\ndescription: y\n---\n\nA \x1b[31mred\x1b[0m \u202eword here.\n")
    done = retire("clauses", path)
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_the_panel_has_no_fault() -> None:
    done = retire("lint", PANEL)
    assert done.code == 0
    assert "12 bundles, 0 errors, 0 warnings" in done.said


@pytest.fixture(scope="module")
def reductions() -> dict[str, Done]:
    return side_by_side(
        {
            name: (
                lambda name=name: retire(
                    "reduce",
                    CAMERA,
                    "--deployment",
                    "plain",
                    "--reducer",
                    name,
                    "--out",
                    workshop() / f"reduced-{name}",
                )
            )
            for name in ("halving", "one-at-a-time")
        }
    )


@pytest.mark.parametrize("reducer", ["halving", "one-at-a-time"])
def test_reduce_writes_what_it_kept_and_a_ledger_of_its_trials(
    reducer: str, reductions: dict[str, Done]
) -> None:
    done = reductions[reducer]
    assert done.code == 0
    folder = workshop() / f"reduced-{reducer}" / "reductions" / "plain" / "PRV_L01"
    described = json.loads((folder / "reduction.json").read_text())
    assert f"deleted {len(described['deleted'])} of 36 clauses" in done.said
    trials = (folder / "trials.jsonl").read_text().splitlines()
    assert len(trials) == described["trials"]
    assert str(folder / "SKILL.md") in done.said.replace(" ", "")
    # What the reducer made is a candidate that certify takes.
    assert retire("verify", workshop() / f"reduced-{reducer}").code == 2


# -- certify -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def placements() -> dict[str, Done]:
    return side_by_side(
        {
            name: (lambda name=name: certify(workshop() / f"placed-{name}", placement=name))
            for name in ("B2", "B3", "B5", "B6")
        }
    )


def test_a_reduction_without_its_conditions_fails(placements: dict[str, Done]) -> None:
    done = placements["B2"]
    assert done.code == 1
    assert "FAIL" in done.said
    assert "authority shut" in done.said


@pytest.mark.parametrize("placement", ["B3", "B5", "B6"])
def test_a_pass_on_simulated_evidence_is_no_permission(
    placement: str, placements: dict[str, Done]
) -> None:
    done = placements[placement]
    assert done.code == 4
    assert "authority open" in done.said
    assert "not permission to ship" in done.said


def test_accepted_evidence_makes_a_pass_zero() -> None:
    out, done = small_certificate()
    assert done.code == 4
    accept = ("--accept-evidence", "simulated")
    # One folder is one run at a time: the other kind is asked for before the rest begins.
    other = certify(out, "--accept-evidence", "replayed")
    again, verified, failed = side_by_side(
        {
            "again": lambda: certify(out, *accept),
            "verified": lambda: retire("verify", out, *accept),
            "failed": lambda: certify(workshop() / "fails", *accept, placement="B2"),
        }
    ).values()
    assert (again.code, other.code, verified.code, failed.code) == (0, 4, 0, 1)


def test_the_certificate_lies_where_the_command_says() -> None:
    out, done = small_certificate()
    path = out / "certificates" / "plain-B4.json"
    assert str(path) in done.said
    envelope = json.loads(path.read_text())
    assert envelope["payloadType"] == "application/vnd.in-toto+json"


def test_other_options_are_another_plan_with_a_folder_of_its_own(tmp_path: Path) -> None:
    names = ("certify", CAMERA, "--candidate", emptied_candidate(), "--deployment", "plain")
    once = (*names, "--placement", "B4", "--repetitions", "1")
    done = [retire(*once, "--seed", seed, cwd=tmp_path).code for seed in ("1", "2")]
    assert done == [4, 4]
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_published_counts_are_judged_and_tested() -> None:
    gates, tests = side_by_side(
        {
            "gates": lambda: retire("certify", "--counts", PUBLISHED),
            "tests": lambda: retire("stats", "--counts", PUBLISHED),
        }
    ).values()
    assert (gates.code, tests.code) == (0, 0)
    assert "GPT-5.6-sol" in gates.said
    assert "0.015625" in tests.said or "0.0156" in tests.said


# -- matrix, verify, keys ------------------------------------------------------------------------


def test_a_matrix_leaves_tables_figures_reductions_and_certificates() -> None:
    out, done = small_matrix()
    assert done.code == 0
    assert "72 cells" in done.said
    assert "no sign test can reach" in done.said
    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    certificates = {f"certificates/{d}-{c}.json" for d in ("eager", "plain") for c in CANDIDATES}
    assert certificates <= written
    assert {"summary.json", "tables.md", "traces.jsonl", "plan.json", "seal.json"} <= written
    assert any(name.startswith("figures/") for name in written)
    assert len((out / "traces.jsonl").read_text().splitlines()) == 72


CANDIDATES = ("B2", "B3", "B4")


def test_the_same_again_reports_what_is_there() -> None:
    out, first = small_matrix()
    before = dict(files_below(out))
    again = retire(
        "matrix", "--protocol", protocol_file(), "--bundles", PANEL, "--out", out, "--no-figures"
    )
    assert (first.code, again.code) == (0, 0)
    after = dict(files_below(out))
    kept = ("certificates/", "records/", "reductions/", "traces.jsonl")
    assert [(name, data) for name, data in before.items() if name.startswith(kept)] == [
        (name, data) for name, data in after.items() if name.startswith(kept)
    ]


def test_a_follow_up_declares_the_contract_placements_too() -> None:
    out = workshop() / "follow-up"
    done = retire(
        "matrix",
        "--protocol",
        protocol_file(),
        "--bundles",
        PANEL,
        "--out",
        out,
        "--follow-up",
        "--no-figures",
    )
    assert done.code == 0
    assert "104 cells" in done.said
    made = {path.stem.rpartition("-")[2] for path in (out / "certificates").iterdir()}
    assert made == {"B2", "B3", "B4", "B5", "B6"}


def test_verify_says_who_signed_and_whether_it_is_stale(tmp_path: Path) -> None:
    out, _ = small_matrix()
    keys = tmp_path / "keys.txt"
    printed = retire("keys", "--run", out)
    assert printed.code == 0
    keys.write_text(printed.out)
    certifier = tmp_path / "certifier.txt"
    certifier.write_text(retire("keys").out)
    now = tmp_path / "now"
    shutil.copytree(PANEL / "ENV_L01", now / "ENV_L01")
    contract = now / "ENV_L01" / "contract.yaml"
    contract.write_text(contract.read_text() + "\n# touched\n")
    passing = out / "certificates" / "plain-B4.json"
    whole, trusted, partly, fresh, stale = side_by_side(
        {
            "whole": lambda: retire("verify", out),
            "trusted": lambda: retire("verify", passing, "--trust", keys),
            "partly": lambda: retire("verify", passing, "--trust", certifier),
            "fresh": lambda: retire("verify", passing, "--against", PANEL),
            "stale": lambda: retire("verify", passing, "--against", now),
        }
    ).values()
    assert whole.code == 1, "two of the six certificates say fail"
    assert whole.said.count("intact, signers unknown") == 6
    assert (trusted.code, partly.code, fresh.code, stale.code) == (4, 1, 4, 1)
    assert "intact, signers trusted" in trusted.said
    assert "unknown: observer" in partly.said
    assert "stale: ENV_L01: the contract" in stale.said


def test_keys_are_made_once_and_kept_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first, second = retire("keys", home=home), retire("keys", home=home)
    assert first.out == second.out
    assert re.search(r"(?m)^[0-9a-f]{64}$", first.out)
    assert ((home / "certifier.key").stat().st_mode & 0o777) == 0o600


def test_a_reader_that_goes_away_is_no_fault() -> None:
    command = f"{shlex.quote(str(SCRIPT))} clauses {shlex.quote(str(CAMERA))} | head -n 1"
    shown = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)
    assert shown.stderr == ""


# -- what the README says ------------------------------------------------------------------------


def readme_blocks() -> Iterator[str]:
    """The README's indented blocks, as a newcomer would paste them."""
    text = (REPOSITORY / "README.md").read_text()
    for block in re.findall(r"(?:(?<=\n\n)|^)((?: {4}.*\n|\n)+)", text):
        if block.strip():
            yield re.sub(r"(?m)^ {4}", "", block).strip()


def test_the_readme_story_ends_as_the_readme_says(tmp_path: Path) -> None:
    story = next(block for block in readme_blocks() if "candidate.md" in block)
    assert story.splitlines()[0].startswith("make ")
    (tmp_path / "bundles").symlink_to(REPOSITORY / "bundles")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    told = subprocess.run(
        ["/bin/sh", "-ec", "\n".join(story.splitlines()[1:])],
        cwd=tmp_path,
        env={"PATH": f"{SCRIPT.parent}:/usr/bin:/bin", "RETIRE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 1, told.stderr
    assert "1 of 36 clauses" in told.stdout
    assert "FAIL" in told.stdout
    assert "invalid_principal" in told.stdout
    assert re.search(r"utility +open", told.stdout)


def test_every_command_and_option_of_the_readme_exists() -> None:
    text = (REPOSITORY / "README.md").read_text()
    named: dict[str, set[str]] = {}
    for line in re.findall(r"`(?:\.venv/bin/)?(retire [^`]+)`", text):
        words = line.split()
        named.setdefault(words[1], set()).update(word for word in words if word[:2] == "--")
    assert {"new", "lint", "reduce", "certify", "verify", "keys", "clauses", "stats"} <= set(named)
    helps = side_by_side({name: (lambda name=name: retire(name, "--help")) for name in named})
    for name, options in named.items():
        assert helps[name].code == 0, name
        for option in options:
            assert option in helps[name].out, (name, option)


@pytest.mark.parametrize("target", ["matrix", "test"])
def test_make_says_what_it_would_do(target: str) -> None:
    shown = subprocess.run(
        ["/bin/sh", "-c", f"make -n {target}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"matrix": "retire matrix", "test": "pytest"}[target] in shown.stdout
    assert shown.stderr == ""
