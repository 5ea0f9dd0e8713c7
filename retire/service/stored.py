"""What was submitted, as it lies in a run's folder until the run is carried."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from retire.bundle import load_bundle, read_files
from retire.domain.digests import digest_of, sha256
from retire.domain.errors import IncompleteError, InputError
from retire.matrix import Protocol
from retire.runner.folder import RunFolder, write_whole
from retire.wiring import Request, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from retire.deployments import Catalog
    from retire.service.port import Submission
    from retire.wiring import Prepared

log = logging.getLogger("retire.service")


def submission_digest(submission: Submission, source: Path) -> str:
    """Return the digest of everything that was asked for.

    Raises:
        InputError: The bundle cannot be read.
    """
    files = {name: sha256(data) for name, data in read_files(source).items()}
    candidate = submission.candidate
    return digest_of(
        {
            "files": files,
            "candidate": "" if candidate is None else sha256(candidate),
            "deployment": submission.deployment,
            "placement": submission.placement,
            "margin": submission.margin_points,
            "repetitions": submission.repetitions,
            "seed": submission.seed,
        }
    )


class StoredRequest(BaseModel):
    """What a later server needs to go on, beside the files; ``candidate`` says there is one."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    protocol: Protocol
    candidate: bool


def keep_submitted(submission: Submission, source: Path, place: Path) -> StoredRequest:
    """Keep what was submitted in the run's folder; returns what a later server needs to go on.

    Raises:
        InputError: The bundle has a fault.
        IncompleteError: The folder cannot be written.
    """
    bundle = load_bundle(source)
    files = read_files(source)
    with _keeping():
        RunFolder(place).prepare()
        for name, data in files.items():
            write_whole(place / "submitted" / name, data)
        if submission.candidate is not None:
            write_whole(place / "candidate.md", submission.candidate)
    try:
        protocol = Protocol.model_validate(
            {
                "schema": "retire.protocol/v1",
                "name": "certify",
                "seed": submission.seed,
                "bundles": (bundle.id,),
                "deployments": (submission.deployment,),
                "conditions": ("B1", submission.placement),
                "task_value": False,
                "repetitions": submission.repetitions,
                "margin_points": submission.margin_points,
            }
        )
    except ValueError as error:
        raise InputError(f"these values make no protocol: {error}") from error
    return StoredRequest(protocol=protocol, candidate=submission.candidate is not None)


def prepare_stored(
    request: StoredRequest,
    place: Path,
    concurrency: int,
    catalog: Catalog,
    launcher: Path | None = None,
) -> Prepared:
    """Load a stored request and fix its plan.

    Raises:
        InputError: As ``retire.wiring.prepare``; or the candidate is gone.
    """
    bundle = request.protocol.bundles[0]
    candidates = {}
    if request.candidate:
        candidates[bundle] = _candidate(place / "candidate.md")
    folders = {bundle: place / "submitted"}
    return prepare(
        Request(
            request.protocol,
            folders,
            place,
            concurrency,
            candidates,
            catalog=catalog,
            launcher=launcher,
        )
    )


def _candidate(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"the submitted candidate is gone: {error.strerror}",
            where=str(path),
            mend="Submit it again",
        ) from error


@contextmanager
def _keeping() -> Iterator[None]:
    """Turn a fault of the service's own folder into one that is not the caller's."""
    try:
        yield
    except InputError as error:
        log.error("a submission cannot be kept: %s", error)  # noqa: TRY400  # no fault of the code
        raise IncompleteError(
            "the service cannot keep the submission", mend="Try again later; its log says why"
        ) from error
