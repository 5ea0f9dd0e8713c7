"""When a request is made again, and after how long. Pure.

Only where no answer was completed: connection faults, time-outs, cut streams, and the statuses
that say "later" (RFC 9110, sections 15.5.9 and 15.6; RFC 6585, section 4; RFC 8470, section 5.2).
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_WAIT_SECONDS = 120.0
"""A server that asks for more than this is not waited for: the call gives up and says so."""

_FIRST_WAIT_SECONDS = 0.5
_LONGEST_BACKOFF_SECONDS = 30.0
_STATUSES = frozenset({408, 409, 425, 429})


class Refused(Exception):
    """The endpoint answered, and asking again would not help."""


class Unanswered(Exception):
    """No answer was completed; another try may help.

    ``wait`` is what the server asked for, in seconds; ``pause`` says that it concerns every caller.
    """

    def __init__(self, why: str, *, wait: float | None = None, pause: bool = False) -> None:
        super().__init__(why)
        self.wait = wait
        self.pause = pause


def is_worth_another_try(status: int) -> bool:
    """Tell whether a status says that the same request may succeed later."""
    return status in _STATUSES or 500 <= status <= 599


def backoff(tries: int, jitter: float) -> float:
    """Return the seconds to wait after so many tries without an answer.

    Args:
        tries: From 1.
        jitter: From 0 to 1; spreads callers over half of the doubled wait.
    """
    whole = min(_LONGEST_BACKOFF_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** min(tries - 1, 16))
    return whole * (0.5 + jitter / 2)


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``Retry-After`` asks for; None where it asks for nothing readable.

    A date is read against the ``Date`` of the same response, so that no clock of ours matters
    (RFC 9110, section 10.2.3).
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text[:12])
    try:
        until, sent = parsedate_to_datetime(text), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (until - sent).total_seconds())
    except (TypeError, ValueError):
        return None
