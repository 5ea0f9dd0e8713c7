"""A job: everything needed to run one cell, worked out before it starts. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.certifying import removed_clauses
from retire.deployments.port import Call
from retire.domain.cell import Cell, Condition, Mediation, call_seed_of, episode_of
from retire.prompts import model_text
from retire.prompts.prompt import Envelope
from retire.runner.reducing import DEVELOPMENT
from retire.skill import render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from retire.bundle import Bundle
    from retire.prompts import ToolSchema


@dataclass(frozen=True, slots=True)
class Job:
    """One episode to run: a cell of the plan, or a development task of a reducer's trial."""

    key: str
    cell: Cell | None
    model_facing: str
    tools: Sequence[ToolSchema]
    request: str
    task: str
    patch: str | None
    template: str
    contract: str
    effect: str
    snapshot: str
    """The digest that the world's frozen snapshot must have."""
    episode: str
    seed: int
    mediation: Mediation
    envelope: Envelope | None = None

    @property
    def call(self) -> Call:
        """What a deployment is told of the call; none of it reaches the model but the seed."""
        if self.cell is None:
            return Call(self.seed, DEVELOPMENT, 1, self.key)
        return Call(self.seed, self.cell.sample, self.cell.repetition, self.key)


def placed_text(bundle: Bundle, condition: Condition, deleted: Sequence[str]) -> str:
    """Return the model-facing text of a condition, given what the reduction deleted.

    B2 renders what was kept, B3 adds every condition clause back in its place, B4 takes every
    condition clause out (paper, section 3).
    """
    removed = removed_clauses(bundle, condition, deleted)
    return model_text(condition, render(bundle.skill, removed).decode())


class PlacedTexts:
    """The model-facing texts of a run; each is rendered once, for its many cells.

    Args:
        bundles: Bundles by id.
        deleted: Deleted clause ids by (deployment, bundle).
    """

    def __init__(
        self,
        bundles: Mapping[str, Bundle],
        deleted: Mapping[tuple[str, str], Sequence[str]],
    ) -> None:
        self._bundles = bundles
        self._deleted = deleted
        self._texts: dict[tuple[str, str, Condition], str] = {}

    def of(self, cell: Cell) -> str:
        """Return the text that a cell's model reads."""
        place = (cell.deployment, cell.bundle, cell.condition)
        if place not in self._texts:
            deleted = self._deleted.get((cell.deployment, cell.bundle), ())
            self._texts[place] = placed_text(self._bundles[cell.bundle], cell.condition, deleted)
        return self._texts[place]


def cell_job(bundle: Bundle, cell: Cell, model_facing: str, plan_seed: int) -> Job:
    """Return the job of a cell of the plan."""
    member = bundle.member(cell.member)
    request = bundle.tasks.locked.request
    episode = episode_of(plan_seed, request, cell.sample, cell.repetition)
    envelope = None
    if cell.condition is Condition.B6:
        version = bundle.digests.contract.removeprefix("sha256:")[:12]
        envelope = Envelope(episode, bundle.contract.requester, version)
    return Job(
        key=cell.key,
        cell=cell,
        model_facing=model_facing,
        tools=bundle.tools,
        request=request,
        task="locked",
        patch=member.path,
        template=bundle.digests.template,
        contract=bundle.digests.contract,
        effect=bundle.digests.effect,
        snapshot=member.snapshot_digest,
        episode=episode,
        seed=call_seed_of(episode),
        mediation=cell.condition.mediation,
        envelope=envelope,
    )
