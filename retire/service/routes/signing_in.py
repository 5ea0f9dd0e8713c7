"""Signing in to the pages with a token, and out again."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from retire.pages.html import addresses
from retire.service.problems import Kind, ProblemError
from retire.service.reviewing.answering import HEADERS, PageRoute, page
from retire.service.reviewing.sessions import COOKIE, Sessions, cookie_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)


def _sessions(request: Request) -> Sessions:
    found: Sessions = request.app.state.sessions
    return found


def safe_return(address: str) -> str:
    """Return where to go after signing in: a page of ours, whatever the address asked for."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return addresses.runs()
    ours = not parts.scheme and not parts.netloc and parts.path.startswith(f"{addresses.ROOT}/")
    usable = ours and "\\" not in address and address.isprintable() and address.isascii()
    return address if usable else addresses.runs()


def require_same_origin(request: Request) -> str:
    """Return the origin of a form that was sent from a page of this server.

    Raises:
        ProblemError: It came from elsewhere, or does not say from where.
    """
    origin = request.headers.get("origin", "")
    try:
        parts = urlsplit(origin)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or parts.netloc != request.headers.get("host"):
        raise ProblemError(
            Kind.FORBIDDEN,
            "this form was not sent from a page of this server",
            extra={"mend": "Open the sign-in page here and send it from there"},
        )
    return origin


@router.get(addresses.SIGN_IN)
async def sign_in_form(back: str = "") -> Response:
    """Show the form."""
    return page("sign_in", back=safe_return(back), fault="")


@router.post(addresses.SIGN_IN)
async def sign_in(request: Request) -> Response:
    """Begin a session."""
    origin = require_same_origin(request)
    address = request.client.host if request.client is not None else ""
    wait = request.app.state.sign_ins.take(address)
    if wait:
        raise ProblemError(Kind.RATE, f"try again in {wait} s", headers={"Retry-After": str(wait)})
    form = await request.form()
    secret, back = (str(form.get(name, "")).strip() for name in ("token", "back"))
    value = await _sessions(request).begin(secret)
    if value is None:
        fault = "This token is unknown or revoked."
        return page("sign_in", status=401, back=safe_return(back), fault=fault)
    answer = RedirectResponse(safe_return(back), status_code=303, headers=dict(HEADERS))
    answer.set_cookie(
        COOKIE,
        value,
        path="/",
        httponly=True,
        samesite="strict",
        # Behind a proxy that speaks TLS the connection here is plain; the origin says what it was.
        secure=origin.startswith("https:"),
    )
    return answer


@router.post(addresses.SIGN_OUT)
async def sign_out(request: Request) -> Response:
    """End the session."""
    require_same_origin(request)
    _sessions(request).end(cookie_of(request.scope["headers"]))
    answer = RedirectResponse(addresses.SIGN_IN, status_code=303, headers=dict(HEADERS))
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
