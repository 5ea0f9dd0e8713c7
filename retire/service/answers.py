"""What the calls answer, as models: they shape the answers and document them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from retire.service.port import BundleRow, RunRow
    from retire.service.settings import DeploymentCard


class Answer(BaseModel):
    """Base of the answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Links(Answer):
    """Where the parts of a run are found."""

    self: str
    events: str
    traces: str
    cancel: str
    certificate: str | None = Field(description="Null until there is a certificate.")


class RunAnswer(Answer):
    """A run."""

    id: str
    owner: str = Field(description="Id of the token that started it.")
    state: str = Field(description="queued, running, complete, incomplete, failed or cancelled.")
    plan_digest: str = Field(
        description="Digest of the declared protocol and its inputs, fixed before the first cell."
    )
    bundle: str
    deployment: str
    placement: str
    cells_planned: int
    cells_done: int
    stages: dict[str, int] = Field(description="Cells by stage outcome, such as d2_deny.")
    created_at: str
    ended_at: str | None
    verdict: str | None = Field(description="pass, fail or incomplete, once there is one.")
    certificate: str | None = Field(description="Id of the certificate, once there is one.")
    error: str | None = Field(description="Why it could not run, and how to mend it.")
    links: Links


class RunPage(Answer):
    """Runs, newest first."""

    runs: list[RunAnswer]
    next: str | None = Field(description="Where the next page is; null at the end.")


class TracePage(Answer):
    """Traces in the order of their chain."""

    traces: list[dict[str, Any]]
    next: str | None = Field(description="Where the next page is; null at the end.")


class BundleAnswer(Answer):
    """A registered bundle."""

    id: str
    title: str
    family: str
    clauses: int
    digests: dict[str, str]


class RegisteredAnswer(BundleAnswer):
    """A bundle that was just registered."""

    warnings: list[dict[str, Any]] = Field(description="What lint noticed that is no error.")


class BundleList(Answer):
    """The registered bundles."""

    bundles: list[BundleAnswer]


class DeploymentAnswer(Answer):
    """A configured deployment; never its endpoint or credential."""

    name: str
    evidence: str = Field(description="simulated, replayed or live_model.")
    identity_digest: str = Field(description="Digest of everything that fixes the configuration.")


class DeploymentList(Answer):
    """The configured deployments."""

    deployments: list[DeploymentAnswer]


class HealthAnswer(Answer):
    """The process answers."""

    status: str


class ReadyAnswer(Answer):
    """Every part works."""

    status: str
    checks: dict[str, bool]


def run_answer(run: RunRow) -> RunAnswer:
    """Return a run as it is answered."""
    at = f"/runs/{run.id}"
    certificate = f"/certificates/{run.certificate}" if run.certificate else None
    return RunAnswer(
        id=run.id,
        owner=run.owner,
        state=str(run.state),
        plan_digest=run.plan_digest,
        bundle=run.bundle,
        deployment=run.deployment,
        placement=run.placement,
        cells_planned=run.cells_planned,
        cells_done=run.cells_done,
        stages=dict(run.stages),
        created_at=run.created_at,
        ended_at=run.ended_at,
        verdict=run.verdict,
        certificate=run.certificate,
        error=run.error,
        links=Links(
            self=at,
            events=f"{at}/events",
            traces=f"{at}/traces",
            cancel=f"{at}/cancel",
            certificate=certificate,
        ),
    )


def bundle_answer(row: BundleRow) -> BundleAnswer:
    """Return a registered bundle as it is answered."""
    return BundleAnswer(
        id=row.id,
        title=row.title,
        family=row.family,
        clauses=row.clauses,
        digests=dict(row.digests),
    )


def deployment_answer(card: DeploymentCard) -> DeploymentAnswer:
    """Return a configured deployment as it is answered."""
    return DeploymentAnswer(
        name=card.name, evidence=card.evidence, identity_digest=card.identity_digest
    )
