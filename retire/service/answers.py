"""What the calls answer besides the rows of the port, and where the parts of a run are found."""

from __future__ import annotations

from pydantic import Field

from retire.service.port import Answer, BundleRow, RunRow, TraceAnswer
from retire.service.settings import DeploymentCard


class Links(Answer):
    """Where the parts of a run are found."""

    self: str
    events: str
    traces: str
    cancel: str
    certificate: str | None = Field(description="Null until there is a certificate.")


class RunAnswer(RunRow):
    """A run."""

    links: Links


class RunPage(Answer):
    """Runs, newest first."""

    runs: list[RunAnswer]
    next: str | None = Field(description="Where the next page is; null at the end.")


class TracePage(Answer):
    """Traces in the order of their chain."""

    traces: list[TraceAnswer]
    next: str | None = Field(description="Where the next page is; null at the end.")


class RegisteredAnswer(BundleRow):
    """A bundle that was just registered."""

    warnings: list[dict[str, str | int]] = Field(description="What lint noticed that is no error.")


class BundleList(Answer):
    """The registered bundles."""

    bundles: list[BundleRow]


class DeploymentList(Answer):
    """The configured deployments."""

    deployments: tuple[DeploymentCard, ...]


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
    links = Links(
        self=at,
        events=f"{at}/events",
        traces=f"{at}/traces",
        cancel=f"{at}/cancel",
        certificate=f"/certificates/{run.certificate}" if run.certificate else None,
    )
    return RunAnswer(**dict(run), links=links)
