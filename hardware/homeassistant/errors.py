"""How Home Assistant fails, in words that say what may have been done."""

from __future__ import annotations

DEADLINE_SECONDS = 5.0
"""How long one request may take."""


class HomeAssistantError(Exception):
    """Home Assistant gave no usable answer."""


class UnreachableError(HomeAssistantError):
    """No answer came: not running, not there, or too slow."""


class UnauthorizedError(HomeAssistantError):
    """The token was refused; the same token is not tried again by the caller's request."""


class RefusedError(HomeAssistantError):
    """A clean refusal: the request was understood and not carried out."""


class FailedError(HomeAssistantError):
    """An answer that leaves open what was done: a server error, or rubbish."""
