"""How fast an endpoint may be asked, and when a request is made again.

Again only where no answer was completed: connection faults, time-outs, cut streams, and the
statuses that say "later" (RFC 9110, sections 15.5.9 and 15.6; RFC 6585, section 4; RFC 8470,
section 5.2).
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping


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


WINDOW_SECONDS = 60.0


@dataclass(slots=True)
class Admission:
    """One admitted request: when, and the tokens held for it until its true number is known."""

    at: float
    tokens: int


class RateLimit:
    """Admits requests in the order they came.

    In no minute are more requests admitted than ``requests_per_minute``, nor requests whose
    tokens sum to more than ``tokens_per_minute``. A single request larger than that is admitted
    alone.

    Args:
        concurrency: Requests under way at once.
        requests_per_minute: None for no limit.
        tokens_per_minute: None for no limit.
        clock: Seconds that never run backwards.
        sleep: Waits for so many seconds.
    """

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int | None,
        tokens_per_minute: int | None,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._places = asyncio.Semaphore(concurrency)
        self._turn = asyncio.Lock()
        self._requests = requests_per_minute
        self._tokens = tokens_per_minute
        self._clock = clock
        self._sleep = sleep
        self._held_until = 0.0
        self._admitted: deque[Admission] = deque()

    @asynccontextmanager
    async def admitted(self, tokens: int) -> AsyncIterator[Admission]:
        """Wait for a place, hold it, and give it back.

        Args:
            tokens: The most the request may take; correct it on the admission afterwards.
        """
        async with self._places:
            async with self._turn:
                admission = await self._admit(tokens)
            yield admission

    def hold(self, seconds: float) -> None:
        """Admit nothing for so long: the server asked for it."""
        self._held_until = max(self._held_until, self._clock() + seconds)

    async def _admit(self, tokens: int) -> Admission:
        while (wait := self._wait(tokens)) > 0:
            await self._sleep(wait)
        admission = Admission(self._clock(), tokens)
        if self._requests is not None or self._tokens is not None:
            self._admitted.append(admission)
        return admission

    def _wait(self, tokens: int) -> float:
        """Return the seconds until the next thing that may let the request in; 0 for now."""
        now = self._clock()
        while self._admitted and self._admitted[0].at + WINDOW_SECONDS <= now:
            self._admitted.popleft()
        if now < self._held_until:
            return self._held_until - now
        if not self._admitted or self._fits(tokens):
            return 0.0
        return self._admitted[0].at + WINDOW_SECONDS - now

    def _fits(self, tokens: int) -> bool:
        if self._requests is not None and len(self._admitted) >= self._requests:
            return False
        taken = sum(admission.tokens for admission in self._admitted)
        return self._tokens is None or taken + tokens <= self._tokens
