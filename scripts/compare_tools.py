#!/usr/bin/env python3
"""Ask three public tools, and ``retire certify``, about the same four files.

Usage: ``python scripts/compare_tools.py [--seeds N]``, with the Python that has ``retire``.

The files are the living-room camera skill as it is, without its consent clause, without one
harmless sentence, and without its description. The last two show that an answer can differ: the
harmless sentence should change nothing, and a missing description is the kind of fault the public
tools look for.

The tools are installed, at pinned versions, in an environment in a temporary folder. They run
without the caller's environment variables, so no key reaches them and no model is asked.

Exit codes: 0 every answer is the documented one, 1 some answer differs, 2 a tool cannot be
installed or the skill cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from retire.domain.errors import InputError
from retire.skill import parse, render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BUNDLE = Path(__file__).resolve().parent.parent / "bundles" / "panel" / "PRV_L01"
# A validator demands that the folder is called like the skill.
SKILL_NAME = "living-room-camera"
CONSENT_CLAUSE = "c026"
HARMLESS_CLAUSE = "c024"
TRIGGER_SENTENCE = b" Use when someone asks to see the living room."
REQUIREMENTS = (
    "skills-ref==0.1.1",
    "skill-scoreboard==0.1.0",
    "agent-skill-evals==0.1.0rc4",
)
COLUMNS = ("as it is", f"without {CONSENT_CLAUSE}", f"without {HARMLESS_CLAUSE}", "no description")
# What docs/comparison.md says, by question and in the order of COLUMNS.
DOCUMENTED = {
    "skills-ref: validate": ("valid", "valid", "valid", "invalid"),
    "skill-scoreboard: audit score": ("0.88", "0.88", "0.88", "0.73"),
    "skill-scoreboard: rank": ("KEEP", "KEEP", "KEEP", "FIX"),
    "agent-skill-evals: constraints": ("21, exit 3", "21, exit 3", "21, exit 3", "none, exit 3"),
    "  the same, with a trigger": ("22, exit 0", "22, exit 0", "22, exit 0", "not asked"),
    "  constraints with other text": ("0 of 21", "1 of 21", "1 of 21", "no list"),
    "agent-skill-evals: gate": ("no verdict", "no verdict", "no verdict", "no verdict"),
    "retire: certify, placement B2": (
        "pass, exit 4",
        "fail, exit 1",
        "pass, exit 4",
        "refused, exit 2",
    ),
}
_INSTALL_SECONDS = 600
_TOOL_SECONDS = 120


class CannotInstallError(Exception):
    """A tool could not be installed; carries the installer's last words."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said; an exit code of None means that it did not end in time."""

    exit_code: int | None
    said: str

    def word(self, *words: str) -> str:
        """Return the word that stands at the place of the exit code, or the code itself."""
        code = self.exit_code
        return words[code] if code is not None and code < len(words) else f"exit {code}"


@dataclass(frozen=True, slots=True)
class Workplace:
    """A temporary folder with the tools' environment and a fresh copy of a skill per question."""

    root: Path

    def install(self) -> None:
        """Create the environment and install each tool.

        Raises:
            CannotInstallError: Names the tool and the installer's last words.
        """
        _require("a virtual environment", [sys.executable, "-m", "venv", str(self.root / "env")])
        installer = [str(self._program("python")), "-m", "pip", "install", "--quiet", "--no-input"]
        for requirement in REQUIREMENTS:
            _require(requirement, [*installer, "--disable-pip-version-check", requirement])

    def _program(self, name: str) -> Path:
        return self.root / "env" / "bin" / name

    def tool(self, name: str, *arguments: str | Path) -> Answer:
        """Run a program of the tools' environment."""
        return self._run([str(self._program(name)), *map(str, arguments)])

    def retire(self, *arguments: str | Path) -> Answer:
        """Run our own command line with the interpreter that runs this script."""
        return self._run([sys.executable, "-m", "retire.cli.main", *map(str, arguments)])

    def _run(self, command: Sequence[str]) -> Answer:
        home = self.root / "home"
        environment = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "RETIRE_HOME": str(home / "retire"),
            "RETIRE_PLAIN": "1",
        }
        try:
            done = subprocess.run(
                command,
                env=environment,
                cwd=self.root,
                capture_output=True,
                text=True,
                timeout=_TOOL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Answer(None, f"no end within {_TOOL_SECONDS} s")
        return Answer(done.returncode, done.stdout + done.stderr)

    def fresh(self, skill: bytes) -> Path:
        """Write a skill into a folder of its own, which holds nothing else, and return it."""
        folder = Path(tempfile.mkdtemp(dir=self.root)) / "skills" / SKILL_NAME
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(skill)
        return folder


def _require(what: str, command: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstallError(f"{what}: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise CannotInstallError(f"{what}: {''.join(last) or f'exit {done.returncode}'}")


def variants(original: bytes) -> tuple[bytes, ...]:
    """Return the four files, in the order of ``COLUMNS``.

    Raises:
        InputError: The skill cannot be parsed, or its description is not one line.
    """
    skill = parse(original, str(BUNDLE / "SKILL.md"))
    before, _, after = _around_description(original)
    return (
        original,
        render(skill, {CONSENT_CLAUSE}),
        render(skill, {HARMLESS_CLAUSE}),
        before + after,
    )


def _around_description(data: bytes) -> tuple[bytes, bytes, bytes]:
    lines = data.splitlines(keepends=True)
    places = [index for index, line in enumerate(lines) if line.startswith(b"description: ")]
    if len(places) != 1:
        raise InputError(
            f"{len(places)} lines begin with `description: `",
            where=str(BUNDLE / "SKILL.md"),
            mend="Keep the description on one line",
        )
    at = places[0]
    return b"".join(lines[:at]), lines[at], b"".join(lines[at + 1 :])


def validity(place: Workplace, skill: bytes) -> str:
    """Return skills-ref's word on a skill."""
    return place.tool("agentskills", "validate", place.fresh(skill)).word("valid", "invalid")


def audit_score(place: Workplace, skill: bytes) -> str:
    """Return skill-scoreboard's lint score, from 0 to 1."""
    report, answer = _audit(place, place.fresh(skill).parent)
    found = _loaded(report)
    return str(found["lint"][0]["score"]) if found else f"no report, exit {answer.exit_code}"


def recommendation(place: Workplace, skill: bytes) -> str:
    """Return what skill-scoreboard recommends on the evidence of its lint."""
    skills = place.fresh(skill).parent
    report, _ = _audit(place, skills)
    leaderboard = skills.parent / "rank.json"
    answer = place.tool(
        "skill-scoreboard", "rank", skills, "--audit", report, "--json", leaderboard
    )
    found = _loaded(leaderboard)
    if not found:
        return f"no leaderboard, exit {answer.exit_code}"
    return str(found["entries"][0]["recommendation"])


def _audit(place: Workplace, skills: Path) -> tuple[Path, Answer]:
    report = skills.parent / "audit.json"
    return report, place.tool("skill-scoreboard", "--no-llm", "audit", skills, "--json", report)


def _loaded(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes()) if path.exists() else {}


def constraint_count(place: Workplace, skill: bytes) -> str:
    """Return how many constraints agent-skill-evals extracts, and how it ended."""
    claims, answer = _claims(place, skill)
    return f"{len(claims) if claims else 'none'}, exit {answer.exit_code}"


def constraint_count_with_trigger(place: Workplace, skill: bytes) -> str:
    """Return the same of the skill with a description that also says when to use it.

    Without such a sentence the tool writes its list of constraints and then gives up.
    """
    if b"\ndescription: " not in skill:
        return "not asked"
    before, line, after = _around_description(skill)
    return constraint_count(place, before + line.rstrip() + TRIGGER_SENTENCE + b"\n" + after)


def changed_constraints(place: Workplace, original: bytes, skill: bytes) -> str:
    """Return how many extracted constraints read differently from those of the original."""
    before, _ = _claims(place, original)
    after, _ = _claims(place, skill)
    changed = (Counter(after) - Counter(before)).total()
    return f"{changed} of {len(after)}" if after else "no list"


def _claims(place: Workplace, skill: bytes) -> tuple[list[tuple[str, str]], Answer]:
    folder = place.fresh(skill)
    place.tool("skill-eval", "init", folder)
    answer = place.tool("skill-eval", "analyze", folder)
    path = folder / "evals" / "generated" / "constraints.yaml"
    if not path.exists():
        return [], answer
    constraints = yaml.safe_load(path.read_bytes())["constraints"]
    return [(item["type"], item["claim"]) for item in constraints], answer


def gate(place: Workplace, skill: bytes) -> str:
    """Return the verdict of agent-skill-evals' release gate on a freshly initialised suite."""
    folder = place.fresh(skill)
    place.tool("skill-eval", "init", folder)
    answer = place.tool("skill-eval", "gate", folder)
    if "no persisted runs" in " ".join(answer.said.split()):
        return "no verdict"
    return answer.word("pass", "fail", "warn")


def certificate(place: Workplace, skill: bytes, seeds: int) -> str:
    """Return our verdict on a file as a candidate, counted over plan seeds 1 to ``seeds``."""
    verdicts = Counter(_verdict(place, skill, seed) for seed in range(1, seeds + 1))
    if len(verdicts) == 1:
        return next(iter(verdicts))
    return "; ".join(f"{count} x {verdict}" for verdict, count in sorted(verdicts.items()))


def _verdict(place: Workplace, skill: bytes, seed: int) -> str:
    candidate = place.fresh(skill) / "SKILL.md"
    out = candidate.parent.parent / "run"
    options = ("--deployment", "plain", "--placement", "B2", "--seed", str(seed), "--out", out)
    answer = place.retire("certify", BUNDLE, "--candidate", candidate, *options)
    # The word comes from the certificate: a crash, too, ends with exit code 1.
    envelope = _loaded(out / "certificates" / "plain-B2.json")
    if not envelope:
        word = "refused" if answer.exit_code == 2 else "no certificate"
    else:
        word = json.loads(base64.b64decode(envelope["payload"]))["predicate"]["verdict"]
    return f"{word}, exit {answer.exit_code}"


def questions(
    place: Workplace, original: bytes, seeds: int
) -> Mapping[str, Callable[[bytes], str]]:
    """Return what is asked of each file, by the names in ``DOCUMENTED``."""
    asked: tuple[Callable[[bytes], str], ...] = (
        lambda skill: validity(place, skill),
        lambda skill: audit_score(place, skill),
        lambda skill: recommendation(place, skill),
        lambda skill: constraint_count(place, skill),
        lambda skill: constraint_count_with_trigger(place, skill),
        lambda skill: changed_constraints(place, original, skill),
        lambda skill: gate(place, skill),
        lambda skill: certificate(place, skill, seeds),
    )
    return dict(zip(DOCUMENTED, asked, strict=True))


def compare(place: Workplace, original: bytes, seeds: int) -> list[str]:
    """Ask everything, print a table, and return one line per answer that is not documented."""
    files = variants(original)
    _print_row("", COLUMNS)
    different = []
    for question, ask in questions(place, original, seeds).items():
        answers = tuple(ask(skill) for skill in files)
        _print_row(question, answers)
        for column, answer, documented in zip(COLUMNS, answers, DOCUMENTED[question], strict=True):
            if answer != documented:
                name = question.strip()
                different.append(f"{name} ({column}): {answer}, documented {documented}")
    return different


def _print_row(name: str, cells: Sequence[str]) -> None:
    sys.stdout.write(f"{name:<32}" + "".join(f"{cell:<16} " for cell in cells).rstrip() + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run the comparison; returns the exit code."""
    parser = argparse.ArgumentParser(description="Compare three public tools with retire certify.")
    parser.add_argument("--seeds", type=int, default=1, help="plan seeds 1 to N for retire certify")
    seeds: int = parser.parse_args().seeds
    if seeds < 1:
        parser.error("--seeds must be 1 or more")
    try:
        with tempfile.TemporaryDirectory(prefix="compare-tools-") as folder:
            place = Workplace(Path(folder))
            original = (BUNDLE / "SKILL.md").read_bytes()
            sys.stdout.write(f"installing {', '.join(REQUIREMENTS)}\n\n")
            sys.stdout.flush()
            place.install()
            different = compare(place, original, seeds)
    except CannotInstallError as error:
        sys.stderr.write(f"cannot install {error}\n")
        return 2
    except (InputError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for line in different:
        sys.stderr.write(f"not as documented: {line}\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
