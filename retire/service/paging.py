"""Keyset pages, and finding what a caller asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

from retire.service.problems import Kind, ProblemError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

Found = TypeVar("Found")
Row = TypeVar("Row")


async def found(work: Awaitable[Found], what: str) -> Found:
    """Await one thing.

    Raises:
        ProblemError: 404, where it is not there or belongs to somebody else; the two look alike.
    """
    try:
        return await work
    except KeyError as error:
        raise ProblemError(Kind.NOT_FOUND, f"there is no such {what}") from error


def cut(rows: Sequence[Row], limit: int) -> tuple[list[Row], bool]:
    """Return a page of rows, and whether more follow: one row more than the page was asked for."""
    return list(rows[:limit]), len(rows) > limit


def next_page(path: str, parameters: Mapping[str, object]) -> str:
    """Return the reference of the next page; parameters that are None are left out."""
    kept = {}
    for name, value in parameters.items():
        if value is not None:
            kept[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{path}?{urlencode(kept)}"


def link_header(reference: str) -> dict[str, str]:
    """Return the ``Link`` header (RFC 8288) of a page that another follows."""
    return {"Link": f'<{reference}>; rel="next"'}
