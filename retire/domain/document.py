"""Strict documents: what a run writes is read back as the same types, or refused by its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypeAliasType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

JsonData = TypeAliasType(
    "JsonData", "bool | int | str | list[JsonData] | dict[str, JsonData] | None"
)
"""Any JSON without floating-point numbers, as reading it gives it."""

_Item = TypeVar("_Item")
Word: TypeAlias = Annotated[_Item, Field(strict=False)]
"""An enumeration, read from the word that the file has."""
Many: TypeAlias = Annotated[tuple[_Item, ...], Field(strict=False)]
"""A tuple, read from a list."""


class Document(BaseModel):
    """Base of documents: exact types, no unknown key, frozen; written by ``as_json`` alone."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    def as_json(self) -> dict[str, JsonData]:
        """Return the document as JSON values, under the names that stand in the file."""
        return self.model_dump(mode="json", by_alias=True)


Model = TypeVar("Model", bound=Document)


class DocumentFault(ValueError):
    """A document is refused; ``place`` is the path in it, such as ``body.d2.act.status``."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}" if place else what)
        self.place = place
        self.what = what


def read_document(model: type[Model], data: bytes | str) -> Model:
    """Read a document from its JSON text.

    Raises:
        DocumentFault: It is no JSON, a key stands twice, is missing or unknown, or a value has
            another type.
    """
    return as_document(model, read_unique(data))


def as_document(model: type[Model], value: object) -> Model:
    """Read a document from JSON values.

    Raises:
        DocumentFault: As :func:`read_document`.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DocumentFault(".".join(_place(first, value)), first["msg"]) from error


def _place(error: ErrorDetails, value: object) -> Iterator[str]:
    """Yield the path of an error in the document, without the names of a union's kinds."""
    *parents, last = error["loc"] or ("",)
    for part in (*parents, last):
        try:
            value = value[part]  # type: ignore[index]  # what is no container has no parts
            yield str(part)
        except (LookupError, TypeError):
            if part is last and error["type"] == "missing":
                yield str(part)
    if "discriminator" in error.get("ctx", {}):
        yield str(error["ctx"]["discriminator"]).strip("'")


def read_unique(data: bytes | str) -> object:
    """Read JSON in which no object has a key twice (RFC 8259, section 4, leaves that open).

    Raises:
        DocumentFault: It is no JSON, or a key stands twice.
    """
    try:
        return json.loads(data, object_pairs_hook=_unique, parse_constant=_no_number)
    except _Repeated:
        pairs = json.loads(data, object_pairs_hook=_Pairs)
        place = next(_repeated(pairs, ()))
        raise DocumentFault(".".join(place), "the key stands twice") from None
    except RecursionError as error:
        raise DocumentFault("", "it is nested too deeply") from error
    except ValueError as error:
        raise DocumentFault("", f"this is no JSON ({error})") from error


class _Repeated(Exception):
    """Some object has a key twice."""


class _Pairs(tuple[tuple[str, object], ...]):
    """An object as it is written, every key kept."""

    __slots__ = ()


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Repeated
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _repeated(value: object, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, _Pairs):
        names = [name for name, _ in value]
        yield from ((*place, name) for name in names if names.count(name) > 1)
        for name, item in value:
            yield from _repeated(item, (*place, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _repeated(item, (*place, str(index)))
