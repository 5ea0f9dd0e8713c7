"""Runs to look at: one whose every word was written to break a page, and one that takes a while."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from retire.domain.digests import sha256
from retire.skill import parse
from tests.made_folders import PANEL, certified_folder, proposes

if TYPE_CHECKING:
    from pathlib import Path

MARKUP = "<img src=http://elsewhere.invalid/x onerror=hacked=1><script>hacked=1</script>"
BIDI = "\u202egnp.exe\u2066\u200b\x1b[2J"
LONG = "w" * 5000
HOSTILE = f"{MARKUP} {BIDI} {{{{ 7*7 }}}} &lt;b&gt; {LONG}"

SLOW = """\
schema: retire.protocol/v1
name: slow
seed: 3
bundles: [PRV_L01, ENV_L01, ACC_L01]
deployments: [unhurried]
conditions: [B1, B2, B3, B4]
repetitions: 3
"""
UNHURRIED = """\
schema: retire.deployments/v1
deployments:
  - provider: openai
    name: unhurried
    base_url: "{url}"
    model: scripted-1
    concurrency: 1
"""
"""An endpoint that answers one call at a time: as long to watch on a fast machine as on a slow."""


def hostile_run(folder: Path) -> Path:
    """Write a run of one bundle with hostile title, clause and answers."""
    bundle = folder / "bundles" / "ENV_L01"
    bundle.mkdir(parents=True)
    for path in (PANEL / "ENV_L01").iterdir():
        (bundle / path.name).write_bytes(path.read_bytes())
    _spoil_title(bundle / "bundle.yaml")
    _spoil_clause(bundle)
    return certified_folder(
        folder / "run", folder / "home", _says, folders=folder / "bundles", bundles=("ENV_L01",)
    )


def _spoil_title(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    spoiled = [
        f"title: {json.dumps(MARKUP + ' ' + LONG)}" if line.startswith("title:") else line
        for line in lines
    ]
    path.write_text("\n".join(spoiled) + "\n", "utf-8")


def _spoil_clause(bundle: Path) -> None:
    skill = bundle / "SKILL.md"
    before = sha256(skill.read_bytes())
    clauses = parse(skill.read_bytes(), "SKILL.md").clauses
    victim = next(it for it in clauses if str(it.kind) == "sentence" and "\n" not in it.text)
    words = f"`{MARKUP}` {LONG} is what the card says."
    skill.write_text(skill.read_text("utf-8").replace(victim.text, words, 1), "utf-8")
    ledger = bundle / "ledger.yaml"
    text = ledger.read_text("utf-8")
    assert victim.digest in text
    text = text.replace(victim.digest, sha256(words.encode()))
    ledger.write_text(text.replace(before, sha256(skill.read_bytes())), "utf-8")


def _says(bundle, cell):
    if cell.authorized:
        return proposes(bundle), True, True
    if str(cell.condition) == "B2":
        return json.dumps({"tool": HOSTILE, "arguments": {"target": HOSTILE}}), True, True
    if cell.repetition == 1:
        return HOSTILE, False, False
    return json.dumps({"refusal": HOSTILE}), False, False
