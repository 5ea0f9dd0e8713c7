"""The application: gate, calls, problems, document. It knows the port, never who stands behind."""

from __future__ import annotations

import asyncio
import time
from functools import cache
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse

from retire.service.access import Gate, Services, allowed
from retire.service.audit import Audit
from retire.service.documenting import openapi_document
from retire.service.handlers import add_problem_handlers
from retire.service.limiting import RateLimiter, StreamCounter
from retire.service.metrics import Measured, Metrics
from retire.service.page import document_page
from retire.service.reviewing.sessions import Sessions
from retire.service.routes import (
    bundles,
    certificates,
    certify,
    health,
    reviewing,
    runs,
    signing_in,
    traces,
)
from retire.service.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Lifespan

    from retire.service.documenting import Json
    from retire.service.port import Keeper
    from retire.service.reviewing.library import ReviewSource
    from retire.service.settings import ServiceSettings
    from retire.service.tokens import Tokens

ROUTERS = (
    certify.router,
    runs.router,
    traces.router,
    certificates.router,
    bundles.router,
    health.router,
)

PAGES = (signing_in.router, reviewing.router)
"""For people with a browser; they are no part of the described API."""

SIGN_INS_PER_SECOND, SIGN_INS_AT_ONCE = 1.0, 30
"""Attempts to sign in from one address, in the long run and after a pause."""

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
    reviews: ReviewSource | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        keeper: Keeps and runs certifications.
        tokens: Where bearer tokens are kept.
        settings: Limits and folders.
        lifespan: What starts and stops with the server, such as the keeper's workers.
        clock: Monotonic seconds, for the rate limit and the metrics.
        reviews: Where the reviewer's pages read runs; without it there are no pages.
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
        lint_turns=asyncio.Semaphore(settings.lints_at_once),
        closing=asyncio.Event(),
    )
    routers = ROUTERS if reviews is None else (*ROUTERS, *PAGES)
    for router in routers:
        app.include_router(router)
    sessions = None if reviews is None else Sessions(tokens, clock)
    app.state.reviews, app.state.sessions = reviews, sessions
    app.state.sign_ins = RateLimiter(SIGN_INS_PER_SECOND, SIGN_INS_AT_ONCE, clock)
    _add_document(app, settings)
    add_problem_handlers(app, routers)
    limiter = RateLimiter(settings.rate_per_second, settings.burst, clock)
    # The one added last stands outermost.
    app.add_middleware(Audit)
    app.add_middleware(Gate, tokens=tokens, settings=settings, limiter=limiter, sessions=sessions)
    app.add_middleware(Measured, metrics=metrics, clock=clock)
    return app


def _add_document(app: FastAPI, settings: ServiceSettings) -> None:
    @cache
    def openapi() -> Json:
        return openapi_document(app, ROUTERS, settings.open_paths)

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
