"""One line for every call that changes something: who, what, on what, how it ended."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection

LOGGER = logging.getLogger("retire.audit")

ACTIONS = {
    "certify": "run.start",
    "cancel_run": "run.cancel",
    "purge_run": "run.purge",
    "register_bundle": "bundle.register",
}
"""Names of the calls that change something, and the action an audit line gives them."""


class Audit:
    """ASGI middleware that writes the audit lines; it stands behind the gate.

    A line is one JSON object: ``action``, ``token`` (its id), ``subject`` (run or bundle, where
    one is known), ``outcome`` (``done`` or ``refused`` or ``failed``), ``status``, ``request``.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Hand a call on, and write its line when it ends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            _write(scope, status)


def _write(scope: Connection, status: int) -> None:
    route = scope.get("route")
    action = ACTIONS.get(getattr(route, "name", ""))
    if action is None or scope["method"] != "POST":
        return
    state = scope["state"]
    line = {
        "action": action,
        "token": state["caller"].id,
        "subject": str(state.get("subject") or scope["path_params"].get("run", ""))[:128],
        "outcome": _outcome(status),
        "status": status,
        "request": state["request_id"],
    }
    LOGGER.info(json.dumps(line))


def _outcome(status: int) -> str:
    if status < 400:
        return "done"
    return "refused" if status < 500 else "failed"
