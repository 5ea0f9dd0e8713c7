"""Sessions of the pages: a token is entered once, and a cookie then stands for it.

The cookie's value is random and kept here as a digest only; the token itself is never stored, sent
back or written into an address. Sessions live in memory: after a restart, and on another server of
the same database, people sign in again. A token that was revoked ends its sessions at once.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING

from retire.domain.digests import sha256
from retire.service.tokens import secret_digest, token_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from retire.service.tokens import Token, Tokens

COOKIE = "retire_session"
IDLE_SECONDS = 8 * 3600
"""How long a session lasts without being used."""
MOST = 10_000
"""Sessions that are kept; beyond, the one that was not used for longest ends."""


class Sessions:
    """Living sessions.

    Args:
        tokens: Where tokens are kept.
        clock: Monotonic seconds.
    """

    def __init__(self, tokens: Tokens, clock: Callable[[], float]) -> None:
        self._tokens = tokens
        self._clock = clock
        self._kept: OrderedDict[str, tuple[str, float]] = OrderedDict()

    async def begin(self, secret: str) -> str | None:
        """Return the cookie's value for a token's secret; None where it is no living token."""
        if await token_of(self._tokens, f"Bearer {secret}") is None:
            return None
        value = secrets.token_urlsafe(32)
        self._kept[sha256(value.encode())] = (secret_digest(secret), self._clock())
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return value

    async def token(self, value: str) -> Token | None:
        """Return the living token that a cookie's value stands for."""
        name = sha256(value.encode(errors="replace"))
        digest, used = self._kept.get(name, ("", 0.0))
        if not digest:
            return None
        token = None
        if self._clock() - used <= IDLE_SECONDS:
            token = await self._tokens.by_digest(digest)
        if token is None or token.revoked:
            self._kept.pop(name, None)
            return None
        self._kept[name] = (digest, self._clock())
        self._kept.move_to_end(name)
        return token

    def end(self, value: str) -> None:
        """End a session."""
        self._kept.pop(sha256(value.encode(errors="replace")), None)


def cookie_of(headers: list[tuple[bytes, bytes]]) -> str:
    """Return the session's value among a request's raw headers; empty where there is none."""
    for name, value in headers:
        if name == b"cookie":
            for part in value.decode("latin-1").split(";"):
                key, _, found = part.strip().partition("=")
                if key == COOKIE:
                    return found
    return ""
