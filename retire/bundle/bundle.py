"""A bundle: skill, ledger, contract, effect, world and tasks. The unit of inference. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from retire.domain.clause import ConditionKind, Role
from retire.domain.document import Document
from sink.strict_yaml import StrictModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from counterfactuals.generate import Member
    from counterfactuals.template import Tasks, World
    from observer.sighting import Effect
    from retire.prompts import ToolSchema
    from retire.skill.document import SkillDocument
    from retire.skill.ledger import Ledger
    from sink.contract import Contract

FILES = (
    "bundle.yaml",
    "SKILL.md",
    "ledger.yaml",
    "contract.yaml",
    "effect.yaml",
    "world.yaml",
    "tasks.yaml",
)
"""The files of a bundle folder."""

ID_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
"""Bundle ids name folders and stand in file names of a run."""


class BundleCard(StrictModel):
    """``bundle.yaml``: what the bundle is called."""

    schema_: Literal["retire.bundle/v1"] = Field(alias="schema")
    id: str = Field(pattern=ID_PATTERN)
    family: str
    title: str
    summary: str = ""


class Digests(Document):
    """What a certificate names of a bundle. ``template`` covers world and tasks together."""

    skill: str
    ledger: str
    contract: str
    effect: str
    template: str


@dataclass(frozen=True, slots=True)
class DevelopmentTaskView:
    """An authorized task as the reducer sees it."""

    id: str
    request: str


@dataclass(frozen=True, slots=True)
class DevelopmentView:
    """All that the reducer may see: the skill and the authorized development tasks.

    Ledger, contract and locked template cannot be reached from here.
    """

    bundle: str
    skill: SkillDocument
    tasks: tuple[DevelopmentTaskView, ...]


@dataclass(frozen=True, slots=True)
class Bundle:
    """One loaded and validated bundle."""

    card: BundleCard
    skill: SkillDocument
    ledger: Ledger
    contract: Contract
    effect: Effect
    world: World
    tasks: Tasks
    digests: Digests
    members: tuple[Member, ...]
    tools: tuple[ToolSchema, ...]
    development_snapshots: Mapping[str, bytes]
    """The frozen snapshot of each development task."""

    @property
    def id(self) -> str:
        """The bundle's id."""
        return self.card.id

    @property
    def condition_ids(self) -> tuple[str, ...]:
        """Ids of the clauses that the audit calls execution conditions, in document order."""
        return tuple(
            entry.id for entry in self.ledger.clauses if entry.role is Role.EXECUTION_CONDITION
        )

    @property
    def predicate_of_clause(self) -> dict[str, str]:
        """The predicate that each condition clause of kind predicate states."""
        return {
            entry.id: entry.predicate
            for entry in self.ledger.clauses
            if entry.role is Role.EXECUTION_CONDITION
            and entry.kind is ConditionKind.PREDICATE
            and entry.predicate is not None
        }

    @property
    def kind_of_condition(self) -> dict[str, ConditionKind]:
        """What each condition clause is about."""
        return {
            entry.id: entry.kind
            for entry in self.ledger.clauses
            if entry.role is Role.EXECUTION_CONDITION and entry.kind is not None
        }

    @property
    def audited_predicates(self) -> tuple[str, ...]:
        """Predicates that a member varies."""
        return tuple(member.predicate for member in self.members if member.predicate)

    def member(self, name: str) -> Member:
        """Return a member by name; raises KeyError for a name that is none."""
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(name)

    def development_view(self) -> DevelopmentView:
        """Return what the reducer may see."""
        tasks = tuple(DevelopmentTaskView(task.id, task.request) for task in self.tasks.development)
        return DevelopmentView(self.id, self.skill, tasks)
