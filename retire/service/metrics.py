"""What the service counts for Prometheus, and the id that every call gets."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """The metrics of one application, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.calls = Counter(
            "retire_http_requests_total",
            "Calls answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "retire_http_request_seconds",
            "Time from a call's arrival to the end of its answer.",
            ("route",),
            registry=self._registry,
            buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120),
        )
        self.submitted = Counter(
            "retire_runs_submitted_total", "Runs started by a call.", registry=self._registry
        )
        self.streams = Gauge(
            "retire_event_streams", "Event streams open now.", registry=self._registry
        )

    def text(self) -> bytes:
        """Return the exposition format, version 0.0.4."""
        return generate_latest(self._registry)


class Measured:
    """ASGI middleware, the outermost of ours: gives a call its id, counts it, sets safe headers."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, clock: Callable[[], float]) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Hand a call on, and count it when it ends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = str(uuid.uuid4())
        scope.setdefault("state", {})["request_id"] = request_id
        started = self._clock()
        status = 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", []),
                    (b"x-request-id", request_id.encode("ascii")),
                    (b"x-content-type-options", b"nosniff"),
                    (b"cache-control", b"no-store"),
                ]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            # The template of the path, never the path: ids would make labels without end.
            route = getattr(scope.get("route"), "path", "unmatched")
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.calls.labels(method, route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(self._clock() - started)
