"""Headers of a request that change how it is answered: Prefer, Idempotency-Key, Last-Event-ID."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from retire.service.problems import field_problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.datastructures import Headers

_WAIT = re.compile(r'^wait\s*=\s*(?:"(\d{1,9})"|(\d{1,9}))$', re.IGNORECASE | re.ASCII)
KEY = r'^([!#-~]{1,255}|"[ !#-~]{1,255}")$'
"""An ``Idempotency-Key``, with or without the quotation marks of its draft."""

_KEY = re.compile(KEY)
_EVENT = re.compile(r"^[0-9]{1,15}$")


def preferred_wait(values: Iterable[str], longest: int) -> int | None:
    """Return the seconds that ``Prefer: wait=N`` asks for, capped; None without it.

    A preference that cannot be read is passed over and the first of two counts (RFC 7240,
    section 2).
    """
    for value in values:
        for preference in value.split(","):
            found = _WAIT.match(preference.partition(";")[0].strip())
            if found:
                return min(int(found[1] or found[2]), longest)
    return None


def idempotency_key(headers: Headers) -> str | None:
    """Return the ``Idempotency-Key``, without quotation marks; None where none was sent.

    Raises:
        ProblemError: 422, where it stands twice or is no key.
    """
    given = headers.getlist("idempotency-key")
    if not given:
        return None
    found = _KEY.match(given[0]) if len(given) == 1 else None
    if found is None:
        raise field_problem(
            "Idempotency-Key", "send it once, with 1 to 255 printable ASCII characters"
        )
    return found[0].strip('"')


def last_event(headers: Headers) -> int:
    """Return the number of the last event that the client has seen; 0 for none.

    Raises:
        ProblemError: 422, where it is no number of an event.
    """
    given = headers.get("last-event-id", "").strip()
    if not given:
        return 0
    if not _EVENT.match(given):
        raise field_problem("Last-Event-ID", "it is no number of an event")
    return int(given)
