"""From a ``POST /certify`` to a submission: JSON or multipart, unpacked, linted, cleaned up."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING

from retire.service.archives import unpack
from retire.service.bodies import JSON, MULTIPART, read_json, read_parts, require_media_type
from retire.service.debris import under_way
from retire.service.linting import lint_upload
from retire.service.port import Submission
from retire.service.problems import field_problem
from retire.service.requests import (
    CANDIDATE_LIMIT,
    read_certify_request,
    read_upload_request,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from fastapi import Request

    from retire.service.access import Services
    from retire.service.problems import Fault
    from retire.service.requests import Terms

ARCHIVE = "archive"
CANDIDATE = "candidate"


@asynccontextmanager
async def submission_of(request: Request, services: Services) -> AsyncIterator[Submission]:
    """Give the submission of a request; an unpacked upload lives as long as the context.

    Raises:
        ProblemError: The body cannot be used: 400, 408, 413, 415 or 422.
        InputError: The archive cannot be used.
    """
    settings = services.settings
    if require_media_type(request, JSON, MULTIPART) == JSON:
        asked = read_certify_request(await read_json(request, settings.body_time))
        text = asked.candidate
        candidate = text.encode("utf-8") if text is not None else None
        yield _submission(asked, asked.bundle, None, candidate)
        return
    parts = await read_parts(request, settings.body_time, frozenset({ARCHIVE, CANDIDATE}))
    terms = read_upload_request(parts.texts, parts.files)
    candidate = parts.files.get(CANDIDATE)
    if candidate is not None and not 0 < len(candidate) <= CANDIDATE_LIMIT:
        raise field_problem(CANDIDATE, f"it must have 1 to {CANDIDATE_LIMIT} bytes")
    archive = parts.files.get(ARCHIVE)
    if archive is None:
        yield _submission(terms, terms.bundle, None, candidate)
        return
    async with uploaded(archive, services) as (folder, _):
        yield _submission(terms, None, folder, candidate)


@asynccontextmanager
async def uploaded(archive: bytes, services: Services) -> AsyncIterator[tuple[Path, list[Fault]]]:
    """Unpack and lint an uploaded bundle; give its folder and lint's warnings, then remove it.

    Raises:
        InputError: The archive cannot be used.
        ProblemError: Lint finds errors.
    """
    settings = services.settings
    with under_way(settings.uploads) if settings.uploads else nullcontext():
        place = await asyncio.to_thread(settings.upload_folder)
        folder = place / "bundle"
        try:
            await asyncio.to_thread(unpack, archive, folder)
            async with services.lint_turns:
                warnings = await lint_upload(folder, settings)
            yield folder, warnings
        finally:
            # Not awaited, so that a cancelled call leaves nothing behind either.
            shutil.rmtree(place, ignore_errors=True)


def _submission(
    terms: Terms, bundle: str | None, folder: Path | None, candidate: bytes | None
) -> Submission:
    return Submission(
        bundle=bundle,
        folder=folder,
        candidate=candidate,
        deployment=terms.deployment,
        placement=terms.placement,
        margin_points=terms.margin,
        repetitions=terms.repetitions,
        seed=terms.seed,
    )
