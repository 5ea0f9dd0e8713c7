"""Traces: the proposal, decision and effect of every cell."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic.json_schema import SkipJsonSchema

from retire.domain.cell import Condition
from retire.domain.outcome import D1Outcome, D2Outcome
from retire.service.access import CallerHere, ServicesHere, allowed
from retire.service.answers import TracePage
from retire.service.documenting import RUN, TRACE_EXAMPLE, answers, header
from retire.service.paging import cut, found, link_header, next_page
from retire.service.port import TraceAnswer, TraceFilter
from retire.service.problems import Kind
from retire.service.requests import LARGEST_INTEGER, NAME, TRACE_ID
from retire.service.routes.runs import RunId
from retire.service.tokens import Scope

router = APIRouter(tags=["traces"])

Absent = SkipJsonSchema[None]
"""A parameter that is not sent: never the text ``null``."""

FILTERS = ("bundle", "condition", "member", "d1", "d2", "reason", "protected")

TraceId = Annotated[
    str, Path(pattern=TRACE_ID, description="Id of a trace.", examples=[f"{RUN}.7"])
]
Name = Annotated[str | Absent, Query(pattern=NAME)]

_PAGE = TracePage(traces=[TRACE_EXAMPLE], next=f"/runs/{RUN}/traces?after=7&limit=100")


@router.get(
    "/runs/{run}/traces",
    dependencies=allowed(Scope.READ, *FILTERS, "after", "limit"),
    summary="List traces",
    responses=answers(
        {200: ("A page of traces", _PAGE)},
        Kind.NOT_FOUND,
        headers={"Link": header("The next page, where there is one (RFC 8288).")},
    ),
)
async def list_traces(  # noqa: PLR0913  # one argument for each query parameter
    run: RunId,
    response: Response,
    caller: CallerHere,
    services: ServicesHere,
    *,
    bundle: Name = None,
    condition: Condition | Absent = None,
    member: Name = None,
    d1: D1Outcome | Absent = None,
    d2: D2Outcome | Absent = None,
    reason: Annotated[str | Absent, Query(pattern="^[a-z_]{1,64}$")] = None,
    protected: Literal["true", "false"] | Absent = None,
    after: Annotated[int, Query(ge=0, le=LARGEST_INTEGER, description="Only traces behind.")] = 0,
    limit: Annotated[int, Query(ge=1, le=500, description="Rows of a page.")] = 100,
) -> TracePage:
    """List the traces of a run in the order of their chain, filtered by stage.

    Scope `read`.
    """
    limit = min(limit, services.settings.page_limit)
    wanted = TraceFilter(
        bundle=bundle,
        condition=condition,
        member=member,
        d1=d1,
        d2=d2,
        reason=reason,
        protected=None if protected is None else protected == "true",
    )
    rows = await found(services.keeper.traces(run, caller.sees, wanted, after, limit + 1), "run")
    page, more = cut(rows, limit)
    following = None
    if more:
        filters = {name: getattr(wanted, name) for name in FILTERS}
        place = {**filters, "after": page[-1].seq, "limit": limit}
        following = next_page(f"/runs/{run}/traces", place)
        response.headers.update(link_header(following))
    return TracePage(traces=page, next=following)


@router.get(
    "/traces/{trace}",
    dependencies=allowed(Scope.READ),
    summary="Read a trace",
    responses=answers({200: ("The trace", TRACE_EXAMPLE)}, Kind.NOT_FOUND),
)
async def read_trace(trace: TraceId, caller: CallerHere, services: ServicesHere) -> TraceAnswer:
    """Give one trace whole: proposal, decision with every predicate, effect as observed.

    Scope `read`.
    """
    return await found(services.keeper.trace(trace, caller.sees), "trace")
