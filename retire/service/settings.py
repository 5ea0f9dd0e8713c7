"""What an operator sets for the service: limits, folders, and the deployments that may be named."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from retire.deployments import EMBEDDED, Catalog
from retire.domain.digests import digest_of
from retire.domain.errors import InputError
from retire.domain.evidence import Evidence
from retire.service.debris import UPLOAD
from retire.service.port import Answer

OPENABLE = frozenset({"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"})
"""Paths that an operator may open to callers without a token."""

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE


class DeploymentCard(Answer):
    """A configured deployment as a caller sees it: never its endpoint or credential."""

    name: str
    evidence: Evidence
    identity_digest: str = Field(description="Digest of everything that fixes the configuration.")


def deployment_cards(catalog: Catalog = EMBEDDED) -> tuple[DeploymentCard, ...]:
    """Return the cards of the deployments of a catalog."""
    found = []
    for name in catalog.names:
        deployment = catalog.named(name)
        identity = digest_of(dict(deployment.identity))
        found.append(
            DeploymentCard(name=name, evidence=deployment.evidence, identity_digest=identity)
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Limits and folders of the HTTP layer; sizes in bytes, times in seconds.

    Attributes:
        uploads: Folder below which uploaded archives are unpacked; the system's own if None.
        deployments: What ``GET /deployments`` lists.
        open_paths: Paths that need no token.
        rate_per_second: Calls a token may make in the long run.
        burst: Calls a token may make at once after a pause.
        longest_wait: Cap of ``Prefer: wait=N``.
        body_time: Time within which a request's body must have arrived.
        json_limit: Largest JSON body of ``POST /certify``.
        upload_limit: Largest multipart body.
        envelope_limit: Largest body of ``POST /verify``.
        page_limit: Most rows of one page.
        streams_per_token: Event streams a token may hold open at once.
        keep_alive: Pause after which an idle event stream carries a comment.
        lints_at_once: Uploaded bundles that are checked at the same time.
        lint_time: Processor time that checking one uploaded bundle may take.
        lint_memory: Address space that checking one uploaded bundle may take.

    Raises:
        InputError: ``open_paths`` names a path that must stay closed, or a limit is not positive.
    """

    uploads: Path | None = None
    deployments: tuple[DeploymentCard, ...] = field(default_factory=deployment_cards)
    open_paths: frozenset[str] = frozenset({"/healthz"})
    rate_per_second: float = 20.0
    burst: int = 60
    longest_wait: int = 60
    body_time: float = 30.0
    json_limit: int = 2 * MEBIBYTE
    upload_limit: int = 6 * MEBIBYTE
    envelope_limit: int = 4 * MEBIBYTE
    page_limit: int = 500
    streams_per_token: int = 8
    keep_alive: float = 15.0
    lints_at_once: int = 2
    lint_time: int = 10
    lint_memory: int = 1024 * MEBIBYTE

    def __post_init__(self) -> None:
        closed = sorted(self.open_paths - OPENABLE)
        if closed:
            raise InputError(
                f"{closed[0]} cannot be opened to callers without a token",
                where="open_paths",
                mend=f"Choose among {', '.join(sorted(OPENABLE))}",
            )
        for name in (
            "rate_per_second",
            "burst",
            "body_time",
            "page_limit",
            "keep_alive",
            "lints_at_once",
        ):
            if getattr(self, name) <= 0:
                raise InputError("it must be above zero", where=name)

    def upload_folder(self) -> Path:
        """Return a new empty folder for one upload, readable by this user alone."""
        return Path(tempfile.mkdtemp(prefix=UPLOAD, dir=self.uploads))


@dataclass(frozen=True, slots=True)
class KeeperSettings:
    """What the operator configured.

    Attributes:
        data: Folder for runs and uploaded bundles.
        bundles: Folder of bundles registered by the operator.
        home: Where the certifier's key is kept.
        runs_at_once: Runs carried at the same time by this server.
        concurrency: Attempts under way at once within a run.
        lease_seconds: How long a silent server keeps a run.
        catalog: The deployments that may be named.
        launcher: Socket of a launcher that starts the programs of runs.
    """

    data: Path
    bundles: Path
    home: Path
    runs_at_once: int = 2
    concurrency: int = 16
    lease_seconds: int = 10
    catalog: Catalog = EMBEDDED
    launcher: Path | None = None

    @property
    def uploads(self) -> Path:
        """Where uploads are unpacked unless the operator named another folder."""
        return self.data / "uploads"

    def place(self, run: str) -> Path:
        """Return a run's folder."""
        return self.data / "runs" / run
