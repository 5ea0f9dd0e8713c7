"""Asking a deployment the same twice; nothing is proposed to any door, no world is needed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retire.certify.stability import BundleStability, Differing, Stability, Unanswered, differ
from retire.deployments import DeploymentFault
from retire.domain.cell import Cell, Condition, Sample
from retire.domain.digests import digest_of
from retire.domain.trace import stage_of
from retire.prompts import build_prompt
from retire.runner.job import PlacedTexts, cell_job
from sink.proposal import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from retire.bundle import Bundle
    from retire.deployments import Deployment
    from retire.domain.trace import D1
    from retire.runner.engine import Progress

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Pair:
    """What one pair gave: both proposals, or why there are none."""

    cell: Cell
    proposals: tuple[D1, D1] | None
    why: str = ""


async def measure_stability(
    deployment: Deployment,
    bundles: Mapping[str, Bundle],
    seed: int,
    repetitions: int,
    progress: Progress,
) -> Stability:
    """Ask every member of every bundle twice under the full skill, one right after the other.

    Args:
        deployment: Opened.
        bundles: Bundles by id.
        seed: The plan seed; the calls are those of an audit under it.
        repetitions: Pairs of each member, each with a seed of its own.
        progress: Told of every pair.
    """
    cells = [
        Cell(Sample.AUDIT, deployment.name, key, Condition.B1, member.name, repetition)
        for key, bundle in bundles.items()
        for member in bundle.members
        for repetition in range(1, repetitions + 1)
    ]
    texts = PlacedTexts(bundles, {})
    progress.begin("stability", len(cells))
    places = asyncio.Semaphore(deployment.concurrency or _AT_ONCE)

    async def one(cell: Cell) -> Pair:
        async with places:
            pair = await _pair(deployment, bundles[cell.bundle], cell, texts.of(cell), seed)
        progress.advance("stability")
        return pair

    pairs = await asyncio.gather(*(one(cell) for cell in cells))
    return _report(deployment, bundles, (seed, repetitions), pairs)


async def _pair(deployment: Deployment, bundle: Bundle, cell: Cell, text: str, seed: int) -> Pair:
    job = cell_job(bundle, cell, text, seed)
    snapshot = bundle.member(cell.member).snapshot.decode()
    prompt = build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)
    proposals = []
    try:
        for _ in range(2):
            completion = await deployment.propose(prompt.messages, prompt.tools, job.call)
            proposals.append(stage_of(parse(completion.answer)))
    except DeploymentFault as fault:
        return Pair(cell, None, str(fault))
    return Pair(cell, (proposals[0], proposals[1]))


def _report(
    deployment: Deployment,
    bundles: Mapping[str, Bundle],
    plan: tuple[int, int],
    pairs: list[Pair],
) -> Stability:
    answered = [(pair.cell, pair.proposals) for pair in pairs if pair.proposals is not None]
    differing = [(cell, both) for cell, both in answered if differ(*both)]
    return Stability(
        schema="retire.stability/v1",
        deployment=deployment.name,
        identity_digest=digest_of(dict(deployment.identity)),
        evidence=deployment.evidence,
        seed=plan[0],
        repetitions=plan[1],
        bundles={
            key: BundleStability(
                skill=bundle.digests.skill,
                pairs=sum(cell.bundle == key for cell, _ in answered),
                differ=sum(cell.bundle == key for cell, _ in differing),
            )
            for key, bundle in bundles.items()
        },
        differing=[
            Differing(cell=cell.key, first=both[0], second=both[1]) for cell, both in differing
        ],
        unanswered=[Unanswered(cell=pair.cell.key, why=pair.why) for pair in pairs if pair.why],
    )
