"""The application: gate, calls, problems, document. It knows the port, never who stands behind."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from retire.domain.errors import EvidenceError, IncompleteError, RetireError
from retire.service.access import Gate, Services, allowed
from retire.service.audit import Audit
from retire.service.documenting import openapi_document
from retire.service.limiting import RateLimiter, StreamCounter
from retire.service.metrics import Measured, Metrics
from retire.service.page import document_page
from retire.service.port import ConflictError
from retire.service.problems import (
    Kind,
    ProblemError,
    kind_of_status,
    problem_of,
    problem_response,
)
from retire.service.requests import invalid
from retire.service.routes import bundles, certificates, certify, health, runs, traces
from retire.service.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Lifespan

    from retire.service.port import Keeper
    from retire.service.settings import ServiceSettings
    from retire.service.tokens import Tokens

LOGGER = logging.getLogger("retire.service")

DESCRIPTION = """\
Certify whether text may be removed from the skills of agents that act on physical devices.

Send `Authorization: Bearer TOKEN`. Problems are RFC 9457 documents. References in `Location`,
`Link` and `links` are relative to this server."""


def create_app(
    keeper: Keeper,
    tokens: Tokens,
    settings: ServiceSettings,
    *,
    lifespan: Lifespan[FastAPI] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """Return the application.

    Args:
        keeper: Keeps and runs certifications.
        tokens: Where bearer tokens are kept.
        settings: Limits and folders.
        lifespan: What starts and stops with the server, such as the keeper's workers.
        clock: Monotonic seconds, for the rate limit and the metrics.
    """
    app = FastAPI(
        title="retire",
        version="1",
        summary="The certification service",
        description=DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=lifespan,
    )
    metrics = Metrics()
    app.state.services = Services(
        keeper=keeper,
        settings=settings,
        metrics=metrics,
        streams=StreamCounter(settings.streams_per_token),
        closing=asyncio.Event(),
    )
    for module in (certify, runs, traces, certificates, bundles, health):
        app.include_router(module.router)
    _add_document(app, settings)
    _add_problems(app)
    limiter = RateLimiter(settings.rate_per_second, settings.burst, clock)
    # The one added last stands outermost.
    app.add_middleware(Audit)
    app.add_middleware(Gate, tokens=tokens, settings=settings, limiter=limiter)
    app.add_middleware(Measured, metrics=metrics, clock=clock)
    return app


def _add_document(app: FastAPI, settings: ServiceSettings) -> None:
    document: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not document:
            document.update(openapi_document(app, settings.open_paths))
        return document

    async def as_json() -> JSONResponse:
        return JSONResponse(openapi())

    async def as_page() -> HTMLResponse:
        return HTMLResponse(
            document_page(openapi()),
            headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
        )

    app.openapi = openapi  # type: ignore[method-assign]  # how FastAPI lets one replace it
    closed = allowed(Scope.READ)
    for path, call in (("/openapi.json", as_json), ("/docs", as_page)):
        app.add_api_route(path, call, dependencies=closed, include_in_schema=False)


def _add_problems(app: FastAPI) -> None:
    def answer(request: Request, problem: ProblemError) -> JSONResponse:
        return problem_response(problem, request.state.request_id)

    async def on_problem(request: Request, error: ProblemError) -> JSONResponse:
        return answer(request, error)

    async def on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(request, invalid(error.errors(), part="any"))

    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        kind = kind_of_status(error.status_code)
        headers = dict(error.headers or {})
        if kind is Kind.METHOD:
            headers["Allow"] = ", ".join(_methods_at(request))
        return answer(request, ProblemError(kind, error.detail, headers=headers))

    async def on_conflict(request: Request, error: ConflictError) -> JSONResponse:
        return answer(request, ProblemError(Kind.CONFLICT, str(error)))

    async def on_product(request: Request, error: RetireError) -> JSONResponse:
        return answer(request, problem_of(error, _kind_of(error)))

    async def on_fault(request: Request, error: Exception) -> JSONResponse:
        LOGGER.error("request %s failed", request.state.request_id, exc_info=error)
        detail = "the operator finds the fault in the log under this instance"
        return answer(request, ProblemError(Kind.INTERNAL, detail))

    handlers: tuple[tuple[type[Exception], Any], ...] = (
        (ProblemError, on_problem),
        (RequestValidationError, on_invalid),
        (HTTPException, on_http),
        (ConflictError, on_conflict),
        (RetireError, on_product),
        # Starlette answers with this, then lets the exception reach the server's log.
        (Exception, on_fault),
    )
    for kind, handler in handlers:
        app.add_exception_handler(kind, handler)


def _methods_at(request: Request) -> list[str]:
    """Return every method offered at a path: the router knows only its first route's."""
    found: set[str] = set()
    for route in request.app.router.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= getattr(route, "methods", None) or set()
    return sorted(found)


def _kind_of(error: RetireError) -> Kind:
    if isinstance(error, IncompleteError):
        return Kind.UNAVAILABLE
    if isinstance(error, EvidenceError):
        return Kind.CONTRADICTED
    return Kind.INVALID if error.where.startswith("--") else Kind.UNUSABLE
