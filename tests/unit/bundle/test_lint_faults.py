"""Lint names every fault of a bundle with its file, line and clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from retire.bundle import build_bundle, read_files
from retire.bundle.lint import Linter, LintFault, Severity
from retire.deployments.simulated import rule_holds
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Files = dict[str, bytes]


@pytest.fixture
def files(panel: Path) -> Files:
    """The files of a sound bundle: the living-room camera's."""
    return read_files(panel / "PRV_L01")


def lint(files: Files) -> list[LintFault]:
    return Linter(files, "B", rule_holds).run()


def edit(files: Files, name: str, old: str, new: str) -> None:
    text = files[name].decode()
    assert old in text
    files[name] = text.replace(old, new, 1).encode()


def line_of(files: Files, name: str, text: str) -> int:
    before = files[name].decode().partition(text)[0]
    return before.count("\n") + 1


def only(faults: list[LintFault], severity: Severity = Severity.ERROR) -> LintFault:
    assert [fault.severity for fault in faults] == [severity], faults
    return faults[0]


def test_a_sound_bundle_has_no_fault(files: Files) -> None:
    assert lint(files) == []


@pytest.mark.parametrize(
    "name",
    [
        "bundle.yaml",
        "SKILL.md",
        "ledger.yaml",
        "contract.yaml",
        "effect.yaml",
        "world.yaml",
        "tasks.yaml",
    ],
)
def test_a_missing_file_is_named(name: str, files: Files) -> None:
    del files[name]
    fault = only(lint(files))
    assert fault.where == f"B/{name}"
    assert "missing" in fault.what


def test_every_broken_file_is_named_at_once(files: Files) -> None:
    edit(files, "contract.yaml", "requester: agent.household", "requester: [agent")
    edit(files, "world.yaml", 'value: "open"', "value: off")
    edit(files, "tasks.yaml", "development:", "development:\ndevelopment:")
    named = [fault.where for fault in lint(files)]
    assert [where.rpartition(":")[0] for where in named] == [
        "B/contract.yaml",
        "B/world.yaml",
        "B/tasks.yaml",
    ]
    assert all(int(where.rpartition(":")[2]) > 1 for where in named)


def test_an_unquoted_word_is_named_with_its_line_and_the_hint_to_quote_it(files: Files) -> None:
    edit(files, "world.yaml", 'value: "open"', "value: off")
    fault = only(lint(files))
    assert fault.where == f"B/world.yaml:{line_of(files, 'world.yaml', 'value: off')}"
    assert "'off'" in fault.what
    assert "quotes" in fault.mend


def target_without_device(files: Files) -> None:
    edit(files, "contract.yaml", "camera.hallway", "camera.attic")


def target_without_service(files: Files) -> None:
    edit(files, "world.yaml", "camera.close_stream: {emit: stream_closed}", "")


def intended_never_reached(files: Files) -> None:
    edit(files, "effect.yaml", '"display.kitchen"', '"display.study"')


def protected_never_reached(files: Files) -> None:
    text = files["effect.yaml"].decode()
    head, word, tail = text.rpartition("stream_opened")
    files["effect.yaml"] = (head + word.replace("opened", "shut") + tail).encode()


def unauthorized_task(files: Files) -> None:
    edit(files, "tasks.yaml", '/not_after", value: "2026-04-17T19:45:00Z"',
         '/not_after", value: "2026-04-17T19:15:00Z"')  # fmt: skip


def task_without_place(files: Files) -> None:
    edit(files, "tasks.yaml", "/facts/sofa_lamp/value", "/facts/sofa_bed/value")


def locked_wording_reused(files: Files) -> None:
    edit(files, "tasks.yaml", "Stream the living-room camera onto the kitchen display, please.",
         "Please show the living-room camera on the kitchen display.")  # fmt: skip


def two_counterfactuals(files: Files) -> None:
    files["tasks.yaml"] += (
        b'    - {predicate: state, path: "/facts/camera_shutter/value", value: "ajar"}\n'
    )


def no_counterfactual(files: Files) -> None:
    lines = files["tasks.yaml"].splitlines(keepends=True)
    files["tasks.yaml"] = b"".join(line for line in lines if b"predicate: state" not in line)


def counterfactual_of_nothing(files: Files) -> None:
    edit(files, "tasks.yaml", "predicate: state", "predicate: weather")


def patch_flips_nothing(files: Files) -> None:
    edit(files, "tasks.yaml", 'value: "closed"}', 'value: "open"}')


def patch_flips_two(files: Files) -> None:
    edit(
        files,
        "contract.yaml",
        '    one_of: ["open"]\n',
        '    one_of: ["open"]\n'
        '  - {kind: fact, id: blade, fact: camera_shutter, one_of: ["open", "half"]}\n'
        'unaudited: {blade: "the same fact"}\n',
    )


def other_name_in_contract(files: Files) -> None:
    edit(files, "contract.yaml", "bundle: PRV_L01", "bundle: PRV_L02")


def other_name_in_effect(files: Files) -> None:
    edit(files, "effect.yaml", "bundle: PRV_L01", "bundle: PRV_L02")


FAULTS: dict[str, tuple[Callable[[Files], None], str, tuple[str, ...]]] = {
    "a target without a device": (target_without_device, "world.yaml", ("camera.attic",)),
    "a device without the service": (
        target_without_service,
        "world.yaml",
        ("camera.living_room", "camera.close_stream"),
    ),
    "an intended effect never reached": (intended_never_reached, "effect.yaml", ("intended",)),
    "a protected effect never reached": (protected_never_reached, "effect.yaml", ("protected",)),
    "an unauthorized task": (
        unauthorized_task,
        "tasks.yaml",
        ("late_guest", "not authorized", "authority"),
    ),
    "a change of nothing": (task_without_place, "tasks.yaml", ("parcel_lost", "sofa_bed")),
    "locked wording reused": (locked_wording_reused, "tasks.yaml", ("late_guest", "wording")),
    "two counterfactuals": (two_counterfactuals, "tasks.yaml", ("two counterfactuals",)),
    "no counterfactual": (no_counterfactual, "tasks.yaml: counterfactual of state", ("no count",)),
    "a counterfactual of nothing": (
        counterfactual_of_nothing,
        "tasks.yaml: counterfactual of weather",
        ("no such predicate",),
    ),
    "a patch that flips nothing": (
        patch_flips_nothing,
        "tasks.yaml: counterfactual of state",
        ("/facts/camera_shutter/value",),
    ),
    "another name in the contract": (other_name_in_contract, "contract.yaml", ("PRV_L02",)),
    "another name in the effect file": (other_name_in_effect, "effect.yaml", ("PRV_L02",)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_where_it_stands(name: str, files: Files) -> None:
    spoil, where, words = FAULTS[name]
    spoil(files)
    errors = [fault for fault in lint(files) if fault.severity is Severity.ERROR]
    assert {fault.where for fault in errors} == {f"B/{where}"}
    for word in words:
        assert any(word in fault.what for fault in errors), errors


LOADABLE = {"a target without a device", "a device without the service"}
LOADABLE |= {"an intended effect never reached", "a protected effect never reached"}
LOADABLE |= {"an unauthorized task", "locked wording reused"}
"""Faults that lint alone finds; the others keep a bundle from being loaded at all."""


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - LOADABLE))
def test_what_cannot_be_loaded_is_refused_with_the_same_place(name: str, files: Files) -> None:
    spoil, where, _ = FAULTS[name]
    spoil(files)
    with pytest.raises(InputError) as caught:
        build_bundle(files, "B")
    assert caught.value.where == f"B/{where}"


def test_a_patch_that_flips_two_predicates_names_both(files: Files) -> None:
    patch_flips_two(files)
    errors = [fault for fault in lint(files) if "counterfactual" in fault.where]
    assert len(errors) == 1
    assert "blade" in errors[0].what
    assert "state" in errors[0].what


def test_a_counterfactual_that_proves_nothing_comes_with_one_that_does(files: Files) -> None:
    patch_flips_nothing(files)
    fault = only(lint(files))
    assert "/facts/camera_shutter/" in fault.mend
    edit(files, "tasks.yaml", 'camera_shutter/value", value: "open"}',
         'camera_shutter/value", value: "unknown"}')  # fmt: skip
    assert lint(files) == []


# -- the ledger ----------------------------------------------------------------------------------

DRY_CLOTH = "Wipe it with a dry cloth twice a year."


def clause_faults(files: Files) -> list[LintFault]:
    return [fault for fault in lint(files) if fault.where.startswith("B/SKILL.md:")]


def test_an_edited_clause_is_quoted_with_its_line_and_old_words(files: Files) -> None:
    edit(files, "SKILL.md", DRY_CLOTH, "Wipe it with a damp cloth.")
    fault = only(clause_faults(files))
    assert fault.where == f"B/SKILL.md:{line_of(files, 'SKILL.md', 'Wipe it')}"
    for word in ("c024", "damp cloth", DRY_CLOTH):
        assert word in fault.what
    with pytest.raises(InputError, match="damp cloth"):
        build_bundle(files, "B")


def test_a_clause_that_nobody_audited_is_quoted(files: Files) -> None:
    text = files["ledger.yaml"].decode()
    entry = next(line for line in text.splitlines() if "c024" in line)
    unaudited = entry.replace("task_guidance", "unaudited")
    files["ledger.yaml"] = text.replace(entry, unaudited).encode()
    fault = only(lint(files))
    assert fault.where == f"B/SKILL.md:{line_of(files, 'SKILL.md', DRY_CLOTH)}"
    assert "c024" in fault.what
    assert DRY_CLOTH in fault.what


def test_a_clause_missing_from_the_ledger_is_quoted(files: Files) -> None:
    lines = files["ledger.yaml"].splitlines(keepends=True)
    files["ledger.yaml"] = b"".join(line for line in lines if b"id: c024" not in line)
    fault = only(lint(files))
    assert "c024" in fault.what
    assert DRY_CLOTH in fault.what


def test_a_condition_of_an_unknown_predicate_is_quoted(files: Files) -> None:
    edit(files, "ledger.yaml", "predicate: principal", "predicate: weather")
    errors = [fault for fault in lint(files) if fault.severity is Severity.ERROR]
    assert any("weather" in fault.what and "c026" in fault.what for fault in errors)
    assert any("'principal'" in fault.what for fault in errors)


def test_a_ledger_that_nobody_signed_is_named(files: Files) -> None:
    edit(files, "ledger.yaml", 'auditor: "panel maintainers"', 'auditor: ""')
    fault = only(lint(files))
    assert fault.where == "B/ledger.yaml"
    assert "auditor" in fault.what


def test_hidden_text_is_named_with_its_line_and_shown(files: Files) -> None:
    edit(files, "SKILL.md", "Most faults", "<!-- nobody need agree -->\n\nMost faults")
    hidden = [fault for fault in clause_faults(files) if "hidden" in fault.what]
    assert [fault.where for fault in hidden] == ["B/SKILL.md:38"]
    assert "nobody need agree" in hidden[0].what


# -- warnings ------------------------------------------------------------------------------------


def test_a_condition_that_the_reader_cannot_read_is_marked_not_refused(files: Files) -> None:
    silent = Linter(files, "B", lambda _text, _snapshot: None).run()
    assert {fault.severity for fault in silent} == {Severity.WARNING}
    assert [fault.what.split(":")[0] for fault in silent] == [
        "c008",
        "c022",
        "c026",
        "c033",
        "c036",
    ]
    for fault in silent:
        clause = fault.what.split("('")[1][:20]
        assert fault.where == f"B/SKILL.md:{line_of(files, 'SKILL.md', clause)}"


def test_a_condition_that_is_read_the_wrong_way_round_is_marked(files: Files) -> None:
    def wrong(text: str, snapshot: bytes) -> bool | None:
        answer = rule_holds(text, snapshot)
        return answer if "shutter" not in text else not answer

    marked = Linter(files, "B", wrong).run()
    assert [fault.what.split(":")[0] for fault in marked] == ["c022", "c033"]


def test_a_single_development_task_is_marked(files: Files) -> None:
    text = files["tasks.yaml"].decode()
    start, end = text.index("  - id: parcel_lost"), text.index("locked:")
    files["tasks.yaml"] = (text[:start] + text[end:]).encode()
    assert "one development task" in only(lint(files), Severity.WARNING).what
