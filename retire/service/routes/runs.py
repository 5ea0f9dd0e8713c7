"""Runs: list, one, its events, cancel, purge."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic.json_schema import SkipJsonSchema

from retire.certify.gates import Verdict
from retire.domain.run_state import RunState
from retire.service.access import CallerHere, ServicesHere, allowed
from retire.service.answers import RunAnswer, RunPage, run_answer
from retire.service.documenting import RUN, answers, header, run_example
from retire.service.events import EventStream, stream
from retire.service.paging import cut, found, link_header, next_page
from retire.service.preferences import last_event
from retire.service.problems import Kind, ProblemError, field_problem
from retire.service.requests import RUN_ID
from retire.service.tokens import Scope

router = APIRouter(tags=["runs"])

RunId = Annotated[str, Path(pattern=RUN_ID, description="Id of a run.", examples=[RUN])]

_PURGED = run_example(
    state=RunState.COMPLETE,
    cells_done=24,
    ended_at="2026-01-05T09:31:12Z",
    verdict=Verdict.FAIL,
    certificate=RUN,
)
_PAGE = RunPage(runs=[run_example()], next=f"/runs?before={RUN}&limit=50")

_EVENT_SCHEMA = {
    "type": "object",
    "description": "One event; data is JSON.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data", "retry")},
}
_EVENT_EXAMPLE = (
    'retry: 2000\n\nid: 3\nevent: progress\ndata: {"cells_done":9,"cells_planned":24,'
    '"seconds_left":4}\n\n'
)


@router.get(
    "/runs",
    dependencies=allowed(Scope.READ, "before", "limit"),
    summary="List runs",
    responses=answers(
        {200: ("A page of runs", _PAGE)},
        headers={"Link": header("The next page, where there is one (RFC 8288).")},
    ),
)
async def list_runs(
    response: Response,
    caller: CallerHere,
    services: ServicesHere,
    before: Annotated[
        str | SkipJsonSchema[None],
        Query(pattern=RUN_ID, description="Only runs created before this one."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Rows of a page.")] = 50,
) -> RunPage:
    """List the runs that this token started (scope `admin`: all), newest first.

    Scope `read`.
    """
    limit = min(limit, services.settings.page_limit)
    try:
        rows = await services.keeper.runs(caller.sees, before, limit + 1)
    except KeyError as error:
        raise field_problem("before", "there is no such run") from error
    page, more = cut(rows, limit)
    following = next_page("/runs", {"before": page[-1].id, "limit": limit}) if more else None
    if following:
        response.headers.update(link_header(following))
    return RunPage(runs=[run_answer(row) for row in page], next=following)


@router.get(
    "/runs/{run}",
    dependencies=allowed(Scope.READ),
    summary="Read a run",
    responses=answers({200: ("The run", run_example())}, Kind.NOT_FOUND),
)
async def read_run(run: RunId, caller: CallerHere, services: ServicesHere) -> RunAnswer:
    """Say where a run stands.

    Scope `read`.
    """
    return run_answer(await found(services.keeper.run(run, caller.sees), "run"))


@router.get(
    "/runs/{run}/events",
    dependencies=allowed(Scope.READ),
    summary="Follow a run",
    status_code=200,
    response_class=EventStream,
    responses={
        204: {"description": "The run has ended and every event was seen; do not come back"},
        **answers(
            {200: ("Server-sent events until the run ends", None)}, Kind.NOT_FOUND, Kind.STREAMS
        ),
        200: {
            "description": "Server-sent events until the run ends",
            "content": {"text/event-stream": {"schema": _EVENT_SCHEMA, "example": _EVENT_EXAMPLE}},
        },
    },
)
async def follow_run(
    run: RunId,
    request: Request,
    caller: CallerHere,
    services: ServicesHere,
    _last: Annotated[
        str,
        Header(alias="Last-Event-ID", pattern="^[0-9]{0,15}$", description="Events after this."),
    ] = "",
) -> Response:
    """Send events: cells done, time left, counts by stage; the last says how the run ended.

    Scope `read`. A client that comes back with `Last-Event-ID` misses nothing and sees nothing
    twice.
    """
    row = await found(services.keeper.run(run, caller.sees), "run")
    events = services.keeper.events(run, last_event(request.headers))
    first = None
    if not row.state.going_on:
        first = await anext(events, None)
        if first is None:
            return Response(status_code=204)
    if not services.streams.enter(caller.id):
        raise ProblemError(
            Kind.STREAMS,
            "close another event stream of this token first",
            headers={"Retry-After": "5"},
        )
    services.metrics.streams.set(services.streams.total)

    def ended() -> None:
        services.streams.leave(caller.id)
        services.metrics.streams.set(services.streams.total)

    body = stream(first, events, services.closing, services.settings.keep_alive)
    return EventStream(body, ended)


@router.post(
    "/runs/{run}/cancel",
    name="cancel_run",
    dependencies=allowed(Scope.CERTIFY),
    summary="Cancel a run",
    responses=answers(
        {200: ("The run, which stops or has ended", run_example(state=RunState.CANCELLED))},
        Kind.NOT_FOUND,
        Kind.CONFLICT,
    ),
)
async def cancel_run(run: RunId, caller: CallerHere, services: ServicesHere) -> RunAnswer:
    """Ask a run to stop. What it stored stays; a run that has ended is left as it is.

    Scope `certify`.
    """
    return run_answer(await found(services.keeper.cancel(run, caller.sees), "run"))


@router.post(
    "/runs/{run}/purge",
    name="purge_run",
    dependencies=allowed(Scope.ADMIN),
    summary="Remove a run's evidence",
    responses=answers(
        {200: ("The run, of which digests and outcomes are left", _PURGED)},
        Kind.NOT_FOUND,
        Kind.CONFLICT,
    ),
)
async def purge_run(run: RunId, caller: CallerHere, services: ServicesHere) -> RunAnswer:
    """Remove answers, bundle copies and records of a run that has ended; it cannot be undone.

    Scope `admin`. Digests and outcomes stay, but the certificate can no longer be recomputed. A
    run that goes on is a conflict: cancel it first. The same call again changes nothing.
    """
    await found(services.keeper.purge(run, caller.sees), "run")
    return run_answer(await found(services.keeper.run(run, caller.sees), "run"))
