"""Building what a page shows in a thread, since it reads files and counts cells."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from retire.domain.errors import IncompleteError
from retire.service.events import first_of
from retire.service.reviewing.answering import not_found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fastapi import Request

Made = TypeVar("Made")


@contextmanager
def of_these(what: str) -> Iterator[None]:
    """Turn the absence of what an address names into a page that says so."""
    try:
        yield
    except KeyError as error:
        raise not_found(what) from error


async def made(call: Callable[[], Made], what: str = "part of this run") -> Made:
    """Build a view model."""
    with of_these(what):
        return await asyncio.to_thread(call)


async def waited_for(request: Request, call: Callable[[], Made], what: str) -> Made:
    """Build what takes long; where the server ends first, the caller is told and not cut off.

    Raises:
        IncompleteError: The server ends.
    """
    closing: asyncio.Event = request.app.state.services.closing
    found = await first_of(_boxed(call, what), closing)
    if found is None:
        raise IncompleteError(
            "the server is ending, so this was not finished",
            mend="Load the page again when it runs again",
        )
    return found[0]


async def _boxed(call: Callable[[], Made], what: str) -> tuple[Made]:
    """Return the result in a tuple: it may itself be None."""
    return (await made(call, what),)
