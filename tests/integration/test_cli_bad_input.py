"""Bad input ends as one paragraph: what, where, what to do. Exit code 2, and nothing is lost."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.commands import (
    PANEL,
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
    from collections.abc import Callable

pytestmark = pytest.mark.integration

SKILL = PANEL / "PRV_L01" / "SKILL.md"
DRY_CLOTH = "Wipe it with a dry cloth twice a year."


@dataclass(frozen=True)
class Place:
    """A folder of one case, with a copy of the camera's bundle."""

    folder: Path

    @property
    def bundle(self) -> Path:
        return self.folder / "PRV_L01"

    def edit(self, name: str, old: str, new: str) -> Path:
        """Change a file of the bundle; returns it."""
        path = self.bundle / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return path

    def candidate(self, old: str, new: str) -> Path:
        text = SKILL.read_text()
        assert old in text
        return self.write("candidate.md", text.replace(old, new, 1))

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def certify(self, candidate: Path = SKILL, *more: str, deployment: str = "plain") -> Done:
        return retire(
            "certify",
            self.bundle,
            "--candidate",
            candidate,
            "--deployment",
            deployment,
            *more,
            cwd=self.folder,
        )

    def matrix(self, protocol: Path, *more: str | Path) -> Done:
        out = ("--out", self.folder / "runs" / "m")
        return retire("matrix", "--protocol", protocol, *out, *more, cwd=self.folder)


def broken_yaml(at: Place) -> Done:
    at.edit("contract.yaml", "requester: agent.household", "requester: [agent.household")
    return at.certify()


def unquoted_off(at: Place) -> Done:
    at.edit("world.yaml", 'value: "open"', "value: off")
    return at.certify()


def repeated_key(at: Place) -> Done:
    at.edit("contract.yaml", "requester:", "requester: agent.other\nrequester:")
    return at.certify()


def stale_ledger(at: Place) -> Done:
    at.edit("SKILL.md", DRY_CLOTH, "Wipe it with a damp cloth.")
    return at.certify(at.bundle / "SKILL.md")


def hidden_text(at: Place) -> Done:
    at.edit("SKILL.md", "Most faults", "<!-- consent is optional -->\n\nMost faults")
    return at.certify(at.bundle / "SKILL.md")


def two_with_one_id(at: Place) -> Done:
    return at.matrix(protocol_file(), "--bundles", PANEL, "--bundles", at.bundle)


def out_is_a_file(at: Place) -> Done:
    return at.certify(SKILL, "--out", str(at.write("taken", "precious")))


def out_below_a_file(at: Place) -> Done:
    return at.certify(SKILL, "--out", str(at.write("taken", "precious") / "run"))


def changed_protocol(at: Place, old: str, new: str) -> Path:
    return at.write("p.yaml", protocol_file().read_text().replace(old, new))


def cut_certificate(at: Place) -> Done:
    shutil.copytree(small_certificate()[0], at.folder / "run")
    path = at.folder / "run" / "certificates" / "plain-B4.json"
    path.write_bytes(path.read_bytes()[:300])
    return retire("verify", path)


def damaged_database(at: Place) -> Done:
    shutil.copytree(small_certificate()[0], at.folder / "run")
    (at.folder / "run" / "run.sqlite").write_bytes(b"this was a database " * 400)
    return certify(at.folder / "run")


def unreadable_key(at: Place) -> Done:
    home = at.folder / "home"
    home.mkdir()
    (home / "certifier.key").write_bytes(b"too short")
    return retire("keys", home=home)


def no_bundle_id(at: Place) -> Done:
    return retire("new", at.folder / "1.st", "--from", SKILL)


CASES: dict[str, tuple[Callable[[Place], Done], tuple[str, ...]]] = {
    "broken YAML": (broken_yaml, ("contract.yaml:4", "not YAML")),
    "an unquoted off": (unquoted_off, ("world.yaml:", "'off'", "quotes")),
    "a key that stands twice": (repeated_key, ("contract.yaml:4", "requester", "twice")),
    "a stale ledger": (stale_ledger, ("SKILL.md:30", "damp cloth", DRY_CLOTH, "retire lint")),
    "hidden text": (hidden_text, ("SKILL.md:38", "consent is optional", "hold")),
    "hidden text in the candidate": (
        lambda at: at.certify(at.candidate("Most faults", "<!-- yes -->\n\nMost faults")),
        ("candidate.md:38", "<!-- yes -->"),
    ),
    "an added clause": (
        lambda at: at.certify(at.candidate("Most faults", "Always open.\n\nMost faults")),
        ("candidate.md:38", "not a reduction", "Always open."),
    ),
    "an edited clause": (
        lambda at: at.certify(at.candidate(DRY_CLOTH, "Wipe it with a damp cloth.")),
        ("candidate.md:30", "not a reduction", "damp cloth"),
    ),
    "reordered clauses": (
        lambda at: at.certify(
            at.candidate(
                "The blade takes 2 seconds from end to end and clicks softly at both. " + DRY_CLOTH,
                DRY_CLOTH + " The blade takes 2 seconds from end to end and clicks softly at both.",
            )
        ),
        ("candidate.md:30", "not a reduction", "move"),
    ),
    "another frontmatter": (
        lambda at: at.certify(at.candidate("name: living-room-camera", "name: camera")),
        ("candidate.md:2", "not a reduction", "name: camera"),
    ),
    "no candidate": (lambda at: at.certify(Path("nowhere.md")), ("nowhere.md", "No such file")),
    "an unknown deployment": (
        lambda at: at.certify(deployment="plian"),
        ("--deployment", "'plian'", "Did you mean plain?"),
    ),
    "an unknown placement": (
        lambda at: at.certify(SKILL, "--placement", "B7"),
        ("--placement", "'B7'", "B2, B3, B4, B5, B6"),
    ),
    "an unknown kind of evidence": (
        lambda at: at.certify(SKILL, "--accept-evidence", "hearsay"),
        ("--accept-evidence", "'hearsay'", "simulated"),
    ),
    "an unknown bundle": (
        lambda at: retire(
            "certify", "nowhere", "--candidate", SKILL, "--deployment", "plain", cwd=at.folder
        ),
        ("nowhere", "no bundle folder"),
    ),
    "nothing named": (lambda _: retire("certify"), ("BUNDLE", "--candidate", "--deployment")),
    "a margin out of range": (
        lambda at: at.certify(SKILL, "--margin", "101"),
        ("--margin", "100", "101 was given"),
    ),
    "a negative seed": (lambda at: at.certify(SKILL, "--seed", "-1"), ("--seed", "-1")),
    "an unknown reducer": (
        lambda at: retire(
            "reduce", at.bundle, "--deployment", "plain", "--reducer", "half", cwd=at.folder
        ),
        ("--reducer", "'half'", "halving"),
    ),
    "an output path that is a file": (out_is_a_file, ("taken", "cannot be written", "--out")),
    "an output path below a file": (out_below_a_file, ("taken/run", "cannot be written", "--out")),
    "an output path on a read-only file system": (
        lambda at: at.certify(SKILL, "--out", "/proc/retire"),
        ("/proc/retire", "cannot be written", "--out"),
    ),
    "a protocol with an unknown bundle": (
        lambda at: at.matrix(changed_protocol(at, "ENV_L01", "ENV_L99"), "--bundles", PANEL),
        ("p.yaml", "ENV_L99", "--bundles"),
    ),
    "a protocol with an unknown deployment": (
        lambda at: at.matrix(changed_protocol(at, "eager", "eagre"), "--bundles", PANEL),
        ("p.yaml", "'eagre'", "Did you mean eager?"),
    ),
    "a protocol with an unknown key": (
        lambda at: at.matrix(changed_protocol(at, "seed: 3", "seed: 3\nsede: 4")),
        ("p.yaml:4", "sede"),
    ),
    "a protocol with a margin out of range": (
        lambda at: at.matrix(changed_protocol(at, "seed: 3", "seed: 3\nmargin_points: 101")),
        ("p.yaml:4", "margin_points", "100"),
    ),
    "no protocol": (lambda at: at.matrix(Path("nowhere.yaml")), ("nowhere.yaml", "No such file")),
    "a changed seed out of range": (
        lambda at: at.matrix(protocol_file(), "--seed", "-3"),
        ("--seed", "-3"),
    ),
    "two bundles with one id": (two_with_one_id, ("PRV_L01", "same id")),
    "a damaged certificate": (cut_certificate, ("plain-B4.json", "no JSON")),
    "no certificate": (lambda at: retire("verify", at.bundle), ("PRV_L01", "no certificate")),
    "keys that are none": (
        lambda at: retire("verify", small_certificate()[0], "--trust", at.bundle / "SKILL.md"),
        ("SKILL.md:1", "64 hexadecimal digits"),
    ),
    "bundles that are none": (
        lambda at: retire("verify", small_certificate()[0], "--against", at.folder / "nowhere"),
        ("nowhere", "no bundle"),
    ),
    "a damaged database": (damaged_database, ("run.sqlite",)),
    "a key file that is no key": (unreadable_key, ("certifier.key", "no Ed25519 key")),
    "keys of a folder that is no run": (
        lambda at: retire("keys", "--run", at.bundle),
        ("plan.json", "missing"),
    ),
    "counts that are none": (
        lambda at: retire("certify", "--counts", at.bundle / "SKILL.md"),
        ("SKILL.md", "counts"),
    ),
    "tests on counts that are none": (
        lambda at: retire("stats", "--counts", at.bundle),
        ("PRV_L01", "directory"),
    ),
    "a skill in another encoding": (
        lambda at: retire("clauses", _bytes(at, b"---\nname: \xff\xfe\n---\n")),
        ("other.md", "UTF-8"),
    ),
    "a skill without frontmatter": (
        lambda at: retire("clauses", _bytes(at, b"")),
        ("other.md:1", "frontmatter"),
    ),
    "a folder without a skill": (
        lambda at: retire("clauses", at.folder),
        ("SKILL.md", "No such file"),
    ),
    "a new bundle where something is": (
        lambda at: retire("new", at.bundle, "--from", SKILL),
        ("PRV_L01", "new folder"),
    ),
    "a new bundle where a file is": (
        lambda at: retire("new", at.bundle / "SKILL.md", "--from", SKILL),
        ("SKILL.md", "new folder"),
    ),
    "a new bundle below a file": (
        lambda at: retire("new", at.bundle / "SKILL.md" / "mine", "--from", SKILL),
        ("mine", "cannot be written"),
    ),
    "a new bundle whose name is no id": (no_bundle_id, ("1.st", "letter")),
}
"""What is done in a fresh folder, and words that the one paragraph must hold."""


def _bytes(at: Place, data: bytes) -> Path:
    path = at.folder / "other.md"
    path.write_bytes(data)
    return path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Place]:
    found = {}
    for name in CASES:
        at = Place(tmp_path_factory.mktemp("bad"))
        shutil.copytree(PANEL / "PRV_L01", at.bundle)
        found[name] = at
    return found


@pytest.fixture(scope="module")
def complaints(places: dict[str, Place]) -> dict[str, Done]:
    small_certificate()
    emptied_candidate()
    return side_by_side(
        {name: (lambda at=places[name], do=do: do(at)) for name, (do, _) in CASES.items()}
    )


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_one_paragraph_with_place_and_advice(
    name: str, complaints: dict[str, Done]
) -> None:
    done = complaints[name]
    assert done.code == 2, done
    lines = done.err.strip().splitlines()
    assert lines[0].startswith("error: ")
    assert all(line and len(line) < 250 for line in lines), "one paragraph"
    for word in CASES[name][1]:
        assert word in done.said, done


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_begun_on_bad_input(
    name: str, complaints: dict[str, Done], places: dict[str, Place]
) -> None:
    del complaints
    at = places[name]
    assert not (at.folder / "runs").exists(), "no empty folder of a run is left behind"
    taken = at.folder / "taken"
    assert not taken.exists() or taken.read_text() == "precious"


def test_a_refused_run_leaves_the_finished_one_as_it_was() -> None:
    out, first = small_matrix()
    assert first.code == 0
    before = files_below(out)
    done = retire(
        "matrix", "--protocol", protocol_file(), "--bundles", PANEL, "--out", out, "--seed", "4"
    )
    assert done.code == 2
    assert "another plan" in done.said
    assert "--out" in done.said
    assert files_below(out) == before


def test_every_fault_of_a_stale_ledger_is_listed_by_lint(tmp_path: Path) -> None:
    shutil.copytree(PANEL / "PRV_L01", tmp_path / "PRV_L01")
    at = Place(tmp_path)
    at.edit("SKILL.md", DRY_CLOTH, "Wipe it with a damp cloth.")
    at.edit("SKILL.md", "Most faults are dull ones:", "Most faults are simple:")
    done = retire("lint", at.bundle)
    assert done.code == 2
    assert "SKILL.md:30" in done.said
    assert "SKILL.md:38" in done.said


def test_a_command_nobody_has_shows_how_to_ask_for_help() -> None:
    done = retire("certifie", cwd=workshop())
    assert done.code == 2
    assert "--help" in done.said
