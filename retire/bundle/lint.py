"""Everything a bundle promises, checked at once: every fault, with file, line and clause. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from counterfactuals.devices import (
    UnsupportedError,
    device_text,
    effects_of,
    initial_state,
)
from counterfactuals.generate import UnprovedError, members, suggest
from counterfactuals.template import (
    TemplateError,
    load_tasks,
    load_world,
    parse_snapshot,
    patches_of,
    snapshot_bytes,
)
from observer.sighting import JournalEntry, judge
from retire.bundle.bundle import BundleCard
from retire.bundle.loading import intended_bytes
from retire.bundle.reading import call_reader, read_effect, read_yaml
from retire.domain.clause import ConditionKind, Role
from retire.domain.digests import canonical
from retire.domain.errors import InputError
from retire.prompts import tool_schemas, tools_json
from retire.skill import check_ledger, find_secrets, load_ledger, parse, render
from sink.contract import evaluate, load_contract

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from counterfactuals.template import Tasks, World
    from observer.sighting import Effect
    from retire.skill import Ledger, SkillDocument
    from sink.contract import Contract, Tool

    Reads = Callable[[str, bytes], bool | None]
    """Whether a sentence's rule holds under a snapshot; None where no rule can be read."""


Read = TypeVar("Read")


class Severity(StrEnum):
    """Whether a run is possible at all."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class LintFault:
    """One fault, with where it stands and how to mend it."""

    severity: Severity
    where: str
    what: str
    mend: str = ""


class Linter:
    """Collects the faults of one bundle.

    Args:
        files: Bytes by file name; a missing file is a fault.
        where: The folder, for messages.
        reads: The simulated deployments' reading of one sentence under a snapshot.
    """

    def __init__(self, files: Mapping[str, bytes], where: str, reads: Reads) -> None:
        self._files = files
        self._where = where
        self._reads = reads
        self.faults: list[LintFault] = []

    def run(self) -> list[LintFault]:
        """Check everything that can be checked."""
        card = self._read("bundle.yaml", lambda data, at: read_yaml(BundleCard, data, at))
        contract = self._read("contract.yaml", lambda d, at: call_reader(load_contract, d, at))
        effect = self._read("effect.yaml", read_effect)
        world = self._read("world.yaml", lambda data, at: call_reader(load_world, data, at))
        tasks = self._read("tasks.yaml", lambda data, at: call_reader(load_tasks, data, at))
        skill = self._read("SKILL.md", parse)
        ledger = self._read("ledger.yaml", load_ledger)
        if skill is not None:
            self._check_skill(skill)
        if card is not None and contract is not None and effect is not None:
            self._check_names(card, contract, effect)
        if contract is not None and world is not None:
            self._check_world(contract, world)
            if effect is not None:
                self._check_effect(contract, world, effect)
            if effect is not None and tasks is not None:
                self._check_tasks(contract, world, tasks, effect)
        if ledger is not None and skill is not None and contract is not None:
            self._check_ledger(ledger, skill, contract)
            if world is not None and tasks is not None and not self._errors():
                self._check_readable(ledger, skill, (world, tasks))
        return self.faults

    def _errors(self) -> bool:
        return any(fault.severity is Severity.ERROR for fault in self.faults)

    def _error(self, where: str, what: str, mend: str = "") -> None:
        self.faults.append(LintFault(Severity.ERROR, f"{self._where}/{where}", what, mend))

    def _warn(self, where: str, what: str, mend: str = "") -> None:
        self.faults.append(LintFault(Severity.WARNING, f"{self._where}/{where}", what, mend))

    def _read(self, name: str, reader: Callable[[bytes, str], Read]) -> Read | None:
        if name not in self._files:
            self._error(name, "the file is missing", "`retire new` writes every file")
            return None
        try:
            return reader(self._files[name], f"{self._where}/{name}")
        except InputError as error:
            self.faults.append(LintFault(Severity.ERROR, error.where, error.what, error.mend))
            return None

    # -- single files ----------------------------------------------------------------------

    def _check_skill(self, skill: SkillDocument) -> None:
        for hidden in skill.hidden:
            self._error(
                f"SKILL.md:{hidden.line}",
                f"hidden text ({hidden.kind}): {hidden.decoded[:80]!r}",
                "Remove it or write it as visible text",
            )
        for secret in find_secrets(skill.data.decode("utf-8", "replace")):
            self._error(
                f"SKILL.md:{secret.line}",
                f"something that looks like a code or password of {secret.length} characters",
                "Codes belong in the device's secret store, never in a skill",
            )
        for warning in skill.warnings:
            self._warn("SKILL.md", warning)

    def _check_names(self, card: BundleCard, contract: Contract, effect: Effect) -> None:
        for name, said in (("contract.yaml", contract.bundle), ("effect.yaml", effect.bundle)):
            if said != card.id:
                self._error(
                    name,
                    f"it says bundle {said!r}, bundle.yaml says {card.id!r}",
                    "Use one id in all three files",
                )

    def _check_ledger(self, ledger: Ledger, skill: SkillDocument, contract: Contract) -> None:
        for fault in check_ledger(ledger, skill, [item.id for item in contract.predicates]):
            place = f"SKILL.md:{fault.line}" if fault.line else "ledger.yaml"
            self._error(place, fault.message, "Audit the clause in ledger.yaml")

    # -- files against each other ----------------------------------------------------------

    def _check_world(self, contract: Contract, world: World) -> None:
        for tool in (contract.action, *contract.other_tools):
            for target in tool.targets:
                self._check_target(tool, target, world)

    def _check_target(self, tool: Tool, target: str, world: World) -> None:
        device = world.devices.get(target)
        if device is None:
            self._error("world.yaml", f"{tool.tool} offers {target}, which is no device here")
        elif tool.service not in device.services:
            self._error("world.yaml", f"the device {target} has no service {tool.service}")

    def _check_effect(self, contract: Contract, world: World, effect: Effect) -> None:
        """The canonical action must give both effects, or nothing could ever be observed."""
        action = contract.action
        parameters = {key: device_text(value) for key, value in action.canonical.items()}
        try:
            changes = effects_of(
                world.devices,
                initial_state(world.devices),
                action.service,
                action.target,
                parameters,
            )
        except UnsupportedError as error:
            self._error("world.yaml", f"the canonical action cannot be carried out: {error}")
            return
        journal = [
            JournalEntry.model_validate({"seq": number, "attempt": "lint", **change.body})
            for number, change in enumerate(changes, start=1)
        ]
        sighting = judge(effect, "", "lint", journal)
        for name, seen in (("intended", sighting.intended), ("protected", sighting.protected)):
            if not seen:
                self._error(
                    "effect.yaml",
                    f"the canonical action does not give the {name} effect in this world",
                    "Compare target, variable and value with world.yaml",
                )

    def _check_tasks(self, contract: Contract, world: World, tasks: Tasks, effect: Effect) -> None:
        if len(tasks.development) < 2:
            self._warn("tasks.yaml", "one development task licenses deletions on its own")
        for task in tasks.development:
            self._check_task(contract, world, tasks, task.id)
            if task.request.strip() == tasks.locked.request.strip():
                self._error(
                    "tasks.yaml",
                    f"the development task {task.id} has the locked template's wording",
                    "Word it differently: the audit must not be what the reducer saw",
                )
        schema = canonical(tools_json(tool_schemas(contract)))
        try:
            members(contract, world, tasks, intended_bytes(effect), schema)
        except UnprovedError as error:
            named = f": counterfactual of {error.predicate}" if error.predicate else ""
            place = f"tasks.yaml{named}"
            self._error(place, error.reason, self._suggestion(contract, world, error.predicate))

    def _suggestion(self, contract: Contract, world: World, predicate: str) -> str:
        try:
            patch = suggest(contract, world).get(predicate)
        except TemplateError:
            return ""
        if patch is None:
            return ""
        return f"This can be proved: path: {patch.path}, value: {patch.value!r}"

    def _check_task(self, contract: Contract, world: World, tasks: Tasks, task: str) -> None:
        try:
            snapshot = snapshot_bytes(world, patches_of(tasks, task, None))
        except TemplateError as error:
            self._error("tasks.yaml", f"the development task {task}: {error}")
            return
        for value in evaluate(contract, parse_snapshot(snapshot)):
            if not value.value:
                self._error(
                    "tasks.yaml",
                    f"the development task {task} is not authorized: "
                    f"{value.id} is false ({value.detail})",
                    "Change its facts so that every predicate holds",
                )

    def _check_readable(
        self,
        ledger: Ledger,
        skill: SkillDocument,
        template: tuple[World, Tasks],
    ) -> None:
        """Mark each condition that the simulated deployments cannot read and judge."""
        world, tasks = template
        authorized = snapshot_bytes(world, ())
        flipped = {
            item.predicate: snapshot_bytes(world, patches_of(tasks, "locked", item.path))
            for item in tasks.locked.counterfactuals
        }
        for entry in ledger.clauses:
            is_predicate = entry.kind is ConditionKind.PREDICATE and entry.predicate in flipped
            if entry.role is not Role.EXECUTION_CONDITION or not is_predicate:
                continue
            clause = skill.clause(entry.id)
            # Alone, but with its table's header: a row without it says little to any reader.
            others = [item.id for item in skill.clauses if item.id != entry.id]
            alone = render(skill, others)[skill.frontmatter_end :].decode()
            readings = (
                self._reads(alone, authorized),
                self._reads(alone, flipped[str(entry.predicate)]),
            )
            if readings != (True, False):
                self._warn(
                    f"SKILL.md:{clause.first_line}",
                    f"{clause.id}: the simulated deployments cannot read this condition "
                    f"({clause.text[:80]!r})",
                    "A real model may; the embedded default will not heed it",
                )
