"""How pages are answered: HTML with strict headers, and problems as pages for people."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

from retire.domain.errors import EvidenceError, IncompleteError, RetireError
from retire.pages.html import addresses
from retire.pages.html.rendering import render
from retire.service.problems import Kind, ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from fastapi import Request
    from starlette.types import Scope

log = logging.getLogger("retire.service")

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every page: what it may load (itself alone), and that nobody keeps a copy."""


def page(template: str, *, status: int = 200, signed_in: bool = False, **context: Any) -> Response:  # noqa: ANN401
    """Return a page."""
    text = render(template, {**context, "signed_in": signed_in})
    return HTMLResponse(text, status_code=status, headers=dict(HEADERS))


def problem_page(problem: ProblemError, *, signed_in: bool = False) -> Response:
    """Return a problem as a page for people."""
    answer = page(
        "problem",
        status=problem.kind.status,
        signed_in=signed_in,
        title=problem.kind.title,
        detail=problem.detail,
        where=str(problem.extra.get("where", "")),
        mend=str(problem.extra.get("mend", "")),
    )
    answer.headers.update(problem.headers)
    return answer


def problem_of_product(error: RetireError) -> ProblemError:
    """Return what a page says of an error of ours: what, where, and how to mend it."""
    kind = Kind.UNUSABLE
    if isinstance(error, IncompleteError):
        kind = Kind.UNAVAILABLE
    elif isinstance(error, EvidenceError):
        kind = Kind.CONTRADICTED
    return ProblemError(kind, error.what, extra={"where": error.where, "mend": error.mend})


def not_found(what: str) -> ProblemError:
    """Return the problem of a thing that is not there, or belongs to somebody else."""
    return ProblemError(
        Kind.NOT_FOUND,
        f"there is no such {what}",
        extra={"mend": "Begin again at the list of runs"},
    )


class PageRoute(APIRoute):
    """A route whose problems are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with problems turned into pages."""
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handler(request)
            except ProblemError as problem:
                return problem_page(problem, signed_in=signed_in(request))
            except RetireError as error:
                log.info("a page could not be shown: %s", error)
                return problem_page(problem_of_product(error), signed_in=signed_in(request))

        return guarded


def signed_in(request: Request) -> bool:
    """Whether the caller came with a session that can be ended."""
    caller = getattr(request.state, "caller", None)
    return caller is not None and caller.token is not None


def is_page(path: str) -> bool:
    """Whether a path is one of the pages."""
    return path in {"/", addresses.ROOT} or path.startswith(f"{addresses.ROOT}/")


def is_open_page(path: str) -> bool:
    """Whether a page is for everybody: the sign-in page, and what it is drawn with."""
    return path == addresses.SIGN_IN or path.startswith(f"{addresses.STATIC}/")


def to_sign_in(scope: Scope) -> Response:
    """Return the way to the sign-in page, and back to where the caller wanted to be."""
    path = str(scope["path"])
    query = bytes(scope.get("query_string", b"")).decode("latin-1")
    back = f"{path}?{query}" if query else path
    wanted = {} if path == "/" else {"back": back}
    place = addresses.SIGN_IN + (f"?{urlencode(wanted)}" if wanted else "")
    answer = RedirectResponse(place, status_code=303, headers=dict(HEADERS))
    # A part of a page that is loaded by itself must not be filled with the sign-in form.
    answer.headers["HX-Redirect"] = place
    return answer
