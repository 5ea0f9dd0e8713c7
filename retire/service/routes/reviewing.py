"""The reviewer's pages: runs, one run, its difference, traces, cells, comparison, certificates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from retire import pages
from retire.domain.errors import IncompleteError
from retire.pages.html import addresses, filters
from retire.pages.html.cell_page import cell_page
from retire.pages.html.certificate_page import certificate_page
from retire.pages.html.compare_page import NAMES, Side, compare_page
from retire.pages.html.diff_page import diff_page
from retire.pages.html.review import Review
from retire.pages.html.run_page import progress, run_page, test_lines
from retire.pages.html.runs_page import RunsPage, runs_page
from retire.pages.html.trace_list import traces_page
from retire.service.reviewing.answering import HEADERS, PageRoute, not_found, page, signed_in
from retire.service.reviewing.library import ReviewSource
from retire.service.reviewing.making import made, of_these, waited_for

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_RUNS = 50
"""Runs of one page."""

_STATIC = Path(pages.__file__).parent / "html" / "static"
_KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def _source(request: Request) -> ReviewSource:
    found: ReviewSource = request.app.state.reviews
    return found


def _owner(request: Request) -> str | None:
    owner: str | None = request.state.caller.sees
    return owner


async def _opened(request: Request, run: str) -> Review:
    with of_these("run"):
        return await _source(request).open(run, _owner(request))


def _query(request: Request, *known: str) -> dict[str, str]:
    query = dict(request.query_params)
    filters.check_names(query, known)
    return query


def _shown(request: Request, template: str, **context: Any) -> Response:  # noqa: ANN401
    return page(template, signed_in=signed_in(request), **context)


# -- runs --------------------------------------------------------------------------------------


@router.get("/")
@router.get(addresses.ROOT)
async def begin(request: Request) -> Response:
    """Lead to the list of runs."""
    _query(request)
    return RedirectResponse(addresses.runs(), status_code=303, headers=dict(HEADERS))


@router.get(addresses.runs())
async def show_runs(request: Request) -> Response:
    """Show the list of runs."""
    return _shown(request, "runs", page=await _runs(request))


@router.get(addresses.LIST)
async def show_list(request: Request) -> Response:
    """Give the list alone, as it stands now."""
    return _shown(request, "_runs", page=await _runs(request))


async def _runs(request: Request) -> RunsPage:
    before = _query(request, "before").get("before", "")
    with of_these("run"):
        rows = await _source(request).runs(_owner(request), before, _RUNS + 1)
    following = rows[_RUNS - 1].id if len(rows) > _RUNS else ""
    return runs_page(rows[:_RUNS], before, following)


@router.get("/ui/runs/{run}")
async def show_run(request: Request, run: str) -> Response:
    """Show one run: verdict, gates, heat map, tests beside, support gap."""
    query = _query(request, "deployment", "condition")
    review = await _opened(request, run)

    def make() -> dict[str, Any]:
        shown = run_page(review, query.get("deployment", ""), query.get("condition", ""))
        tests = test_lines(review.tests()) if review.tested else None
        return {"page": shown, "tests": tests}

    return _shown(request, "run", **await made(make, "candidate"))


@router.get("/ui/runs/{run}/progress")
async def show_progress(request: Request, run: str) -> Response:
    """Give progress and heat map alone; tells the page to load itself again at the end."""
    _query(request)
    review = await _opened(request, run)

    def make() -> dict[str, Any]:
        return {"id": review.id, "progress": progress(review), "maps": review.maps}

    shown = await made(make)
    answer = _shown(request, "_live", **shown)
    if shown["progress"].ended:
        answer.headers["HX-Refresh"] = "true"
    return answer


@router.get("/ui/runs/{run}/tests")
async def show_tests(request: Request, run: str) -> Response:
    """Give the hypothesis tests; as a page of its own where no script loads them."""
    _query(request)
    review = await _opened(request, run)
    tests = await waited_for(request, lambda: test_lines(review.tests()), "run")
    part = "HX-Request" in request.headers
    return _shown(request, "_tests" if part else "tests", id=run, tests=tests)


@router.get("/ui/runs/{run}/diff")
async def show_diff(request: Request, run: str) -> Response:
    """Show a candidate beside the full skill."""
    query = _query(request, "deployment", "bundle", "condition")
    review = await _opened(request, run)

    def make() -> Any:  # noqa: ANN401  # a view model
        place = query["deployment"], query["bundle"]
        if place not in review.deleted:
            _no_reduction(*place, sealed=review.sealed)
        return diff_page(review, *place, query["condition"])

    return _shown(request, "diff", page=await made(make, "candidate"))


def _no_reduction(deployment: str, bundle: str, *, sealed: bool) -> None:
    if sealed:
        raise KeyError(bundle)
    raise IncompleteError(
        "the reduction is not finished yet",
        where=f"{bundle} for {deployment}",
        mend="Load the page again in a moment",
    )


# -- traces and cells ----------------------------------------------------------------------------


@router.get("/ui/runs/{run}/traces")
async def show_traces(request: Request, run: str) -> Response:
    """Show a page of traces."""
    query = _query(request, *filters.NAMES, "after", "before")
    wanted = filters.read_filter(query)
    after, before = (filters.read_number(query, name) for name in ("after", "before"))
    review = await _opened(request, run)
    shown = await made(lambda: traces_page(review, wanted, after, before))
    return _shown(request, "traces", page=shown)


@router.get("/ui/runs/{run}/cells/{number}")
async def show_cell(request: Request, run: str, number: str) -> Response:
    """Show one cell as proposal, decision and effect."""
    wanted = filters.read_filter(_query(request, *filters.NAMES))
    review = await _opened(request, run)

    def make() -> Any:  # noqa: ANN401  # a view model
        row = review.index.row(filters.read_number({"cell": number}, "cell"))
        return cell_page(review, row, review.trace(row.seq), wanted)

    return _shown(request, "cell", page=await made(make, "cell"))


@router.get("/ui/compare")
async def compare(request: Request) -> Response:
    """Show two runs, or two deployments of one, cell by cell."""
    query = _query(request, *NAMES)
    after = filters.read_number(query, "after")
    sides = [await _opened(request, query.get(name, "")) for name in ("left", "right")]

    def make() -> Any:  # noqa: ANN401  # a view model
        left, right = (
            _side(side, query.get(f"{name}_deployment", ""))
            for side, name in zip(sides, ("left", "right"), strict=True)
        )
        return compare_page(left, right, after, differing=query.get("differing") == filters.YES)

    shown = await made(make, "deployment")
    rows = await _source(request).runs(_owner(request), "", _RUNS)
    return _shown(request, "compare", page=shown, runs=rows)


def _side(review: Review, deployment: str) -> Side:
    if deployment and deployment not in review.plan.protocol.deployments:
        raise KeyError(deployment)
    return Side(review, deployment)


# -- certificates --------------------------------------------------------------------------------


@router.get("/ui/runs/{run}/certificates/{name}")
async def show_certificate(request: Request, run: str, name: str) -> Response:
    """Show a certificate; ``verify=yes`` verifies it before the page is shown."""
    query = _query(request, "verify")
    review = await _opened(request, run)
    result = review.verified.get(name)
    if query.get("verify") == filters.YES:
        result = await waited_for(request, lambda: review.verification(name), "certificate")
    shown = await made(lambda: certificate_page(review, name), "certificate")
    return _shown(request, "certificate", page=shown, result=result)


@router.get("/ui/runs/{run}/certificates/{name}/verification")
async def show_verification(request: Request, run: str, name: str) -> Response:
    """Verify a certificate here and give the result alone."""
    _query(request)
    review = await _opened(request, run)
    result = await waited_for(request, lambda: review.verification(name), "certificate")
    return _shown(request, "_verification", result=result)


@router.get("/ui/runs/{run}/certificates/{name}/envelope.json")
async def download(request: Request, run: str, name: str) -> Response:
    """Give the signed DSSE envelope as a file."""
    _query(request)
    review = await _opened(request, run)
    signed = await made(lambda: review.named(name), "certificate")
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{safe}.json"'}
    return Response(signed.envelope, media_type="application/json", headers=headers)


# -- what pages are drawn with -------------------------------------------------------------------


def _read_static() -> Mapping[str, tuple[bytes, str]]:
    return {
        path.name: (path.read_bytes(), _KINDS[path.suffix])
        for path in _STATIC.iterdir()
        if path.suffix in _KINDS
    }


_FILES = _read_static()


@router.get(f"{addresses.STATIC}/{{name}}")
async def static(name: str) -> Response:
    """Give a style sheet or a script of ours."""
    if name not in _FILES:
        raise not_found("file")
    data, kind = _FILES[name]
    headers = {**HEADERS, "Cache-Control": "max-age=300"}
    return Response(data, media_type=kind, headers=headers)


@router.get(f"{addresses.ROOT}/{{rest:path}}")
async def nothing(rest: str) -> Response:
    """Say as a page that there is none; it stands behind every other path."""
    del rest
    raise not_found("page")
