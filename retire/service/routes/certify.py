"""``POST /certify``: start a certification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from retire.certify.gates import Verdict
from retire.domain.run_state import RunState
from retire.service.access import CallerHere, ServicesHere, allowed
from retire.service.answers import RunAnswer, run_answer
from retire.service.documenting import WITH_BODY, answers, header, run_example, schema_reference
from retire.service.events import first_of
from retire.service.port import RunRow
from retire.service.preferences import KEY, idempotency_key, preferred_wait
from retire.service.problems import Kind
from retire.service.requests import EXAMPLE, CertifyRequest, UploadRequest
from retire.service.submitting import submission_of
from retire.service.tokens import Scope

if TYPE_CHECKING:
    from retire.service.documenting import Json

router = APIRouter(tags=["runs"])


def _form_schema() -> Json:
    schema = UploadRequest.model_json_schema()
    schema["properties"] |= {
        "archive": {
            "type": "string",
            "format": "binary",
            "description": "tar.gz or zip of one bundle folder, in place of `bundle`.",
        },
        "candidate": {
            "type": "string",
            "format": "binary",
            "description": "The reduced `SKILL.md`, in place of `reduce`.",
        },
    }
    return schema


_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": schema_reference(CertifyRequest),
                "example": EXAMPLE.model_dump(exclude_none=True),
            },
            "multipart/form-data": {
                "schema": _form_schema(),
                "encoding": {
                    "archive": {"contentType": "application/gzip, application/zip"},
                    "candidate": {"contentType": "text/markdown"},
                },
            },
        },
    },
    "parameters": [
        {
            "name": "Prefer",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "example": "wait=30",
            "description": "`wait=N`: answer at the run's end, or after N seconds (RFC 7240).",
        },
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "pattern": KEY},
            "example": "build-4711",
            "description": "The same key and request give the same run.",
        },
    ],
}

_ANSWERS = answers(
    {
        200: (
            "The run has ended",
            run_example(state=RunState.COMPLETE, verdict=Verdict.FAIL, cells_done=24),
        ),
        202: ("The run is accepted", run_example()),
    },
    *WITH_BODY,
    Kind.CONFLICT,
    Kind.UNUSABLE,
    Kind.UNSOUND,
    Kind.UNAVAILABLE,
    headers={
        "Location": header("Where the run is found."),
        "Preference-Applied": header("The wait that was granted, where one was asked for."),
        "Idempotent-Replayed": header("true where the key had started this run before."),
    },
)
_ANSWERS[200]["model"] = RunAnswer


@router.post(
    "/certify",
    name="certify",
    status_code=202,
    dependencies=allowed(Scope.CERTIFY),
    openapi_extra=_BODY,
    summary="Start a certification",
    responses=_ANSWERS,
)
async def certify(
    request: Request, response: Response, caller: CallerHere, services: ServicesHere
) -> RunAnswer:
    """Fix the plan, queue the run, and answer at once, or after the preferred wait.

    Scope `certify`. The plan's digest is fixed before the first cell. An uploaded bundle runs in
    stub worlds only. Status 200 means that the run has ended, 202 that it goes on.
    """
    key = idempotency_key(request.headers)
    wait = preferred_wait(request.headers.getlist("prefer"), services.settings.longest_wait)
    async with submission_of(request, services) as submission:
        run, new = await services.keeper.submit(submission, caller.id, key)
    request.state.subject = run.id
    response.headers["Location"] = f"/runs/{run.id}"
    if new:
        services.metrics.submitted.inc()
    else:
        response.headers["Idempotent-Replayed"] = "true"
    if wait is not None:
        response.headers["Preference-Applied"] = f"wait={wait}"
        run = await _waited(run, wait, services)
    if not run.state.going_on:
        response.status_code = 200
    return run_answer(run)


async def _waited(run: RunRow, seconds: int, services: ServicesHere) -> RunRow:
    if not run.state.going_on:
        return run
    keeper, closing = services.keeper, services.closing
    ended = await first_of(keeper.wait(run.id, seconds), closing)
    return run if ended is None else ended
