"""The gate before every call: a living token, a rate, a size; then, per call, a scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from retire.domain.errors import IncompleteError
from retire.service.limiting import address_of
from retire.service.problems import (
    Kind,
    ProblemError,
    field_problem,
    problem_response,
    unavailable,
)
from retire.service.reviewing.answering import is_open_page, is_page, problem_page, to_sign_in
from retire.service.reviewing.sessions import cookie_of
from retire.service.tokens import Scope, token_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection

    from retire.service.limiting import RateLimiter, StreamCounter
    from retire.service.metrics import Metrics
    from retire.service.port import Keeper
    from retire.service.reviewing.sessions import Sessions
    from retire.service.settings import ServiceSettings
    from retire.service.tokens import Token, Tokens

ALIVE = "/healthz"
"""Open and without a limit: whoever watches the process must not be crowded out by others."""

SMALL_BODY = 64 * 1024
"""Largest body of a call that takes none."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. ``token`` is None at a path that the operator opened."""

    token: Token | None

    @property
    def id(self) -> str:
        """Id of the token; empty without one."""
        return self.token.id if self.token else ""

    @property
    def sees(self) -> str | None:
        """Whose runs the caller may see: its own, or None for all."""
        if self.token is not None and self.token.allows(Scope.ADMIN):
            return None
        return self.id


@dataclass(frozen=True, slots=True)
class Services:
    """What the calls of one application share."""

    keeper: Keeper
    settings: ServiceSettings
    metrics: Metrics
    streams: StreamCounter
    lint_turns: asyncio.Semaphore
    """How many uploaded bundles may be read at once."""
    closing: asyncio.Event
    """Set when the server shuts down: whoever waits or streams then ends."""


class Gate:
    """ASGI middleware that lets nobody in without a token, and nothing large.

    It stands before the router, so that a call that forgot to ask for a scope is still closed, and
    before any body is read.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Tokens,
        settings: ServiceSettings,
        limiter: RateLimiter,
        sessions: Sessions | None = None,
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._settings = settings
        self._limiter = limiter
        self._sessions = sessions

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Check one connection, then hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._body_limit(scope)
        problem = await self._admit(scope)
        if problem is None and _declared_length(scope) > limit:
            problem = _too_large(limit)
        if problem is not None:
            await self._refused(scope, problem)(scope, receive, send)
            return
        await self._app(scope, _counting(receive, limit), send)

    async def _admit(self, scope: Connection) -> ProblemError | None:
        scope["state"]["caller"] = Caller(None)
        if scope["path"] == ALIVE:
            return None
        if scope["path"] in self._settings.open_paths:
            return self._rate_problem(address_of(scope))
        if self._sessions is not None and is_open_page(scope["path"]):
            return None
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        try:
            token = await self._token(scope, given)
        except IncompleteError as error:
            return unavailable(error.what)
        if token is None:
            # Only what fails counts: callers with a token share an address behind a proxy.
            return self._rate_problem(address_of(scope)) or _unauthorized(given=bool(given))
        scope["state"]["caller"] = Caller(token)
        return self._rate_problem(token.id)

    async def _token(self, scope: Connection, given: list[bytes]) -> Token | None:
        if len(given) == 1:
            return await token_of(self._tokens, given[0].decode("latin-1"))
        if not given and self._sessions is not None and is_page(scope["path"]):
            # A cookie opens pages alone, never a call of the API: it travels by itself.
            return await self._sessions.token(cookie_of(scope["headers"]))
        return None

    def _rate_problem(self, caller: str) -> ProblemError | None:
        wait = self._limiter.take(caller)
        if not wait:
            return None
        return ProblemError(Kind.RATE, f"try again in {wait} s", headers={"Retry-After": str(wait)})

    def _refused(self, scope: Connection, problem: ProblemError) -> Response:
        """Return the answer for whoever is not let in: a page for one who asked for a page."""
        if self._sessions is None or not is_page(scope["path"]):
            return problem_response(problem, scope["state"]["request_id"])
        if problem.kind is Kind.UNAUTHORIZED and scope["method"] in {"GET", "HEAD"}:
            return to_sign_in(scope)
        return problem_page(problem)

    def _body_limit(self, scope: Connection) -> int:
        if scope["method"] != "POST":
            return SMALL_BODY
        path = scope["path"]
        if path == "/verify":
            return self._settings.envelope_limit
        if path not in {"/certify", "/bundles"}:
            return SMALL_BODY
        kinds = [value for name, value in scope["headers"] if name == b"content-type"]
        if kinds and kinds[0].lower().startswith(b"application/json"):
            return self._settings.json_limit
        return self._settings.upload_limit


def _unauthorized(*, given: bool) -> ProblemError:
    challenge = 'Bearer realm="retire"'
    if given:
        challenge += ', error="invalid_token"'
    return ProblemError(
        Kind.UNAUTHORIZED,
        "the token is unknown or revoked" if given else "send Authorization: Bearer TOKEN",
        headers={"WWW-Authenticate": challenge},
    )


def _too_large(limit: int) -> ProblemError:
    return ProblemError(
        Kind.TOO_LARGE,
        f"the body of this call may have {limit} bytes",
        headers={"Connection": "close"},
    )


def _declared_length(scope: Connection) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value[:20])
    return 0


def _counting(receive: Receive, limit: int) -> Receive:
    """Return ``receive`` that refuses to go on behind the limit: a declared length can lie."""
    read = 0

    async def counted() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > limit:
            raise _too_large(limit)
        return message

    return counted


async def _caller(request: Request) -> Caller:
    found: Caller = request.state.caller
    return found


async def _services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


# Dependencies are coroutines throughout: plain functions would each cost a thread.
CallerHere = Annotated[Caller, Depends(_caller)]
ServicesHere = Annotated[Services, Depends(_services)]


def allowed(scope: Scope, *parameters: str) -> list[Any]:
    """Return the dependencies of a call that asks for a scope and knows these query parameters."""
    return [Depends(_scope_check(scope)), Depends(_parameter_check(parameters))]


def _scope_check(scope: Scope) -> Callable[[Request], Awaitable[None]]:
    async def check(request: Request) -> None:
        caller = await _caller(request)
        services = await _services(request)
        if caller.token is None:
            # The gate lets nobody pass without a token but at an opened path.
            if request.url.path in services.settings.open_paths:
                return
            raise _unauthorized(given=False)
        if not caller.token.allows(scope):
            raise ProblemError(
                Kind.FORBIDDEN,
                f"this call needs a token with scope {scope}",
                headers={
                    "WWW-Authenticate": 'Bearer realm="retire", error="insufficient_scope", '
                    f'scope="{scope}"'
                },
            )

    return check


def _parameter_check(known: tuple[str, ...]) -> Callable[[Request], Awaitable[None]]:
    async def check(request: Request) -> None:
        names = [name for name, _ in request.query_params.multi_items()]
        for name in names:
            if name not in known:
                # A filter with a typing error must not widen an answer in silence.
                mend = f"Known: {', '.join(known)}" if known else "This call takes none"
                raise field_problem(name[:80], "there is no such query parameter", mend)
            if names.count(name) > 1:
                raise field_problem(name, "the query parameter stands twice")

    return check
