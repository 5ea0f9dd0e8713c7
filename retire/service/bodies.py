"""Reading request bodies: within a time and a size, strict JSON, multipart with known parts."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from retire.service.problems import Fault, Kind, ProblemError, field_problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fastapi import Request
    from starlette.datastructures import UploadFile

JSON = "application/json"
MULTIPART = "multipart/form-data"
TEXT_PART_LIMIT = 1024 * 1024
PARTS_LIMIT = 16


def media_type(request: Request) -> str:
    """Return the media type of the body, without parameters; empty where none is named."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def require_media_type(request: Request, *accepted: str) -> str:
    """Return the body's media type.

    Raises:
        ProblemError: 415, where it is none of the accepted ones.
    """
    found = media_type(request)
    if found not in accepted:
        names = " or ".join(accepted)
        raise ProblemError(
            Kind.MEDIA_TYPE,
            f"send {names}, not {found[:80]!r}" if found else f"send {names} and name it",
            headers={"Accept-Post": ", ".join(accepted)},
        )
    return found


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise ProblemError(
            Kind.TIMEOUT,
            f"the body took longer than {seconds:g} seconds",
            headers={"Connection": "close"},
        ) from error


async def read_json(request: Request, seconds: float) -> object:
    """Read a JSON body strictly: UTF-8, no key twice, no NaN, no unpaired surrogate.

    Raises:
        ProblemError: 400 where it is no such JSON, 408, 413.
    """
    async with _within(seconds):
        data = await request.body()
    try:
        text = data.decode("utf-8")
        value: object = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
        # An unpaired surrogate passes the parser and fails wherever the text is stored.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise ProblemError(Kind.MALFORMED, "the JSON is nested too deeply") from error
    except json.JSONDecodeError as error:
        fault = Fault(error.msg, line=error.lineno)
        raise ProblemError(
            Kind.MALFORMED,
            f"the body is no JSON: {error.msg} (line {error.lineno}, column {error.colno})",
            faults=[fault],
        ) from error
    except ValueError as error:
        raise ProblemError(Kind.MALFORMED, f"the body is no strict JSON: {error}") from error
    return value


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a multipart body: files by name, texts by name."""

    files: dict[str, bytes]
    texts: dict[str, str]


async def read_parts(request: Request, seconds: float, files: frozenset[str]) -> Parts:
    """Read a multipart body.

    Args:
        request: The request; its size is limited elsewhere.
        seconds: Time within which the body must have arrived.
        files: Names of the parts that are files, sent with or without a file name.

    Raises:
        ProblemError: 400 where it is no multipart body, 408, 413, 422 where a part stands twice or
            a file stands under another name.
    """
    found = Parts({}, {})
    async with (
        _within(seconds),
        request.form(
            max_files=PARTS_LIMIT, max_fields=PARTS_LIMIT, max_part_size=TEXT_PART_LIMIT
        ) as form,
    ):
        for name, part in form.multi_items():
            if name in found.files or name in found.texts:
                raise field_problem(name[:80], "the part stands twice")
            if name in files:
                found.files[name] = await _content(part)
            elif isinstance(part, str):
                found.texts[name] = part
            else:
                raise field_problem(name[:80], "this part is no file", "Send it as text")
    return found


async def _content(part: UploadFile | str) -> bytes:
    return part.encode("utf-8") if isinstance(part, str) else await part.read()
