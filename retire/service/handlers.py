"""From every way in which a call can fail to the problem that it answers with."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from retire.domain.errors import EvidenceError, IncompleteError, RetireError
from retire.service.port import ConflictError
from retire.service.problems import (
    Kind,
    ProblemError,
    kind_of_status,
    problem_of,
    problem_response,
    unavailable,
)
from retire.service.requests import invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import APIRouter, FastAPI, Request
    from fastapi.responses import JSONResponse

LOGGER = logging.getLogger("retire.service")

UNDESCRIBED = frozenset({"/openapi.json", "/docs"})
"""Paths that belong to no router; they offer GET."""


def add_problem_handlers(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """Let an application answer with problems, whatever happens.

    Args:
        app: The application.
        routers: Where its paths are looked up to say which methods one offers.
    """

    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        return _answer(request, _framework_problem(request, error, routers))

    handlers: tuple[tuple[type[Exception], Any], ...] = (
        (ProblemError, _on_problem),
        (RequestValidationError, _on_invalid),
        (HTTPException, on_http),
        (ConflictError, _on_conflict),
        (RetireError, _on_product),
        # Starlette answers with this, then lets the exception reach the server's log.
        (Exception, _on_fault),
    )
    for kind, handler in handlers:
        app.add_exception_handler(kind, handler)


def _answer(request: Request, problem: ProblemError) -> JSONResponse:
    return problem_response(problem, request.state.request_id)


async def _on_problem(request: Request, problem: ProblemError) -> JSONResponse:
    return _answer(request, problem)


async def _on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    return _answer(request, invalid(error.errors(), framework=True))


async def _on_conflict(request: Request, error: ConflictError) -> JSONResponse:
    return _answer(request, ProblemError(Kind.CONFLICT, str(error)))


async def _on_product(request: Request, error: RetireError) -> JSONResponse:
    problem = problem_of(error, _kind_of(error))
    if problem.kind is Kind.UNAVAILABLE:
        problem = unavailable(problem.detail, problem.faults)
    return _answer(request, problem)


async def _on_fault(request: Request, error: Exception) -> JSONResponse:
    request_id = request.state.request_id
    LOGGER.error("request %s failed", request_id, exc_info=error)
    detail = "the operator finds the fault in the log under this instance"
    # This answer is given outside the middleware that sets the header on all others.
    problem = ProblemError(Kind.INTERNAL, detail, headers={"X-Request-Id": request_id})
    return _answer(request, problem)


def _kind_of(error: RetireError) -> Kind:
    if isinstance(error, IncompleteError):
        return Kind.UNAVAILABLE
    if isinstance(error, EvidenceError):
        return Kind.CONTRADICTED
    return Kind.INVALID if error.where.startswith("--") else Kind.UNUSABLE


def _framework_problem(
    request: Request, error: HTTPException, routers: Sequence[APIRouter]
) -> ProblemError:
    kind = kind_of_status(error.status_code)
    headers = dict(error.headers or {})
    detail = error.detail
    if kind is Kind.NOT_FOUND:
        detail = "there is no such call"
    if kind is Kind.METHOD:
        headers["Allow"] = ", ".join(_methods_at(request, routers))
        detail = f"this path offers {headers['Allow']}"
    return ProblemError(kind, detail, headers=headers)


def _methods_at(request: Request, routers: Sequence[APIRouter]) -> list[str]:
    """Return every method offered at a path: the framework names only its first route's."""
    found = {"GET"} if request.url.path in UNDESCRIBED else set[str]()
    for router in routers:
        for route in router.routes:
            if route.matches(request.scope)[0] is not Match.NONE:
                found |= getattr(route, "methods", None) or set()
    return sorted(found)
