"""From a protocol and folders to a fixed plan: everything is loaded, nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retire.bundle import load_bundle
from retire.certify.stability import stated_of
from retire.deployments import EMBEDDED, Catalog
from retire.deployments.openai_endpoint import OpenAIDeployment
from retire.domain.digests import digest_of, sha256
from retire.domain.errors import InputError, NotAReduction
from retire.matrix import HOME_ASSISTANT_WORLD, STUB_WORLD, Plan, fix_plan
from retire.runner.folder import RunFolder
from retire.skill import align, parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from retire.bundle import Bundle
    from retire.certify.stability import Stability
    from retire.deployments import Deployment
    from retire.deployments.budget import Budget
    from retire.matrix import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """What to run.

    Attributes:
        protocol: The declared plan.
        folders: Bundle folder by bundle id.
        out: The run's folder.
        concurrency: Attempts under way at once.
        candidates: Candidate ``SKILL.md`` bytes by bundle; without them the run reduces.
        candidate_names: What messages call each candidate, usually its path.
        catalog: Where the protocol's deployments are looked up.
        stability: Measurements that the certificates state.
        budget: What the run may spend, over all its passes.
        home_assistant: Instance file of the house to run in; the stub world without one.
        launcher: Socket of a launcher that starts the programs; without one the run does.
    """

    protocol: Protocol
    folders: Mapping[str, Path]
    out: Path
    concurrency: int = 16
    candidates: Mapping[str, bytes] = field(default_factory=dict)
    candidate_names: Mapping[str, str] = field(default_factory=dict)
    catalog: Catalog = EMBEDDED
    stability: tuple[Stability, ...] = ()
    budget: Budget | None = None
    home_assistant: Path | None = None
    launcher: Path | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fixed plan with everything loaded, before anything runs."""

    request: Request
    plan: Plan
    bundles: Mapping[str, Bundle]
    deployments: Mapping[str, Deployment]
    given_deletions: Mapping[str, tuple[str, ...]]
    folder: RunFolder


def prepare(request: Request) -> Prepared:
    """Load everything and fix the plan; writes nothing.

    Raises:
        InputError: A bundle, a candidate or a deployment cannot be used.
    """
    if request.launcher is not None and request.home_assistant is not None:
        raise InputError(
            "a launcher starts stub worlds only, no house",
            where="--launcher",
            mend="Leave out --launcher or --world",
        )
    bundles = {key: load_bundle(request.folders[key]) for key in request.protocol.bundles}
    _check_templates(bundles, request.folders)
    deployments = {name: request.catalog.named(name) for name in request.protocol.deployments}
    deletions = {
        key: _deletions_of(
            bundles[key], data, request.candidate_names.get(key, f"candidate for {key}")
        )
        for key, data in request.candidates.items()
    }
    _check_tools(deployments, bundles)
    plan = fix_plan(
        request.protocol,
        {key: [member.name for member in bundle.members] for key, bundle in bundles.items()},
        {key: bundle.digests for key, bundle in bundles.items()},
        {name: digest_of(item.identity) for name, item in deployments.items()},
        {key: sha256(data) for key, data in request.candidates.items()},
        STUB_WORLD if request.home_assistant is None else HOME_ASSISTANT_WORLD,
    )
    stated_of(request.stability, plan.statement.deployments, plan.statement.skills)
    return Prepared(request, plan, bundles, deployments, deletions, RunFolder(request.out))


def _check_templates(bundles: Mapping[str, Bundle], folders: Mapping[str, Path]) -> None:
    """Refuse two bundles with one template: the world could not tell whose contract governs it."""
    known: dict[str, str] = {}
    for key, bundle in bundles.items():
        other = known.setdefault(bundle.digests.template, key)
        if other != key:
            raise InputError(
                f"world.yaml and tasks.yaml are byte for byte those of {other}, so the world could "
                "not tell the two bundles apart",
                where=str(folders[key]),
                mend="Give each bundle its own world and tasks (a comment suffices), or run them "
                "apart",
            )


def _check_tools(deployments: Mapping[str, Deployment], bundles: Mapping[str, Bundle]) -> None:
    for deployment in deployments.values():
        if isinstance(deployment, OpenAIDeployment):
            for bundle in bundles.values():
                deployment.check_tools(bundle.tools)


def _deletions_of(bundle: Bundle, candidate: bytes, name: str) -> tuple[str, ...]:
    try:
        return align(bundle.skill, parse(candidate, name)).deleted
    except NotAReduction as error:
        place = error.where.replace("candidate", name, 1)
        raise NotAReduction(error.what, where=place, mend=error.mend) from error


def load_by_path(path: Path) -> str:
    """Return the id of the bundle in a folder; raises InputError where there is none."""
    return load_bundle(path).id
