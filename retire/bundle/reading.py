"""The sink's and the observer's strict readers, with their errors turned into the product's."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from observer.sighting import EffectFileError, load_effect
from retire.domain.errors import InputError
from sink.strict_yaml import DocumentError, StrictModel, read_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from observer.sighting import Effect

Read = TypeVar("Read")
Model = TypeVar("Model", bound=StrictModel)


def call_reader(reader: Callable[[bytes, str], Read], data: bytes, where: str) -> Read:
    """Call a reader of the sink's kind; raises InputError with file, line and hint."""
    try:
        return reader(data, where)
    except DocumentError as error:
        raise InputError(error.message, where=error.where, mend=error.mend) from error


def read_yaml(model: type[Model], data: bytes, where: str) -> Model:
    """Read a file into a strict model; raises InputError with file, line and hint."""
    return call_reader(lambda content, name: read_model(model, content, name), data, where)


def read_effect(data: bytes, where: str) -> Effect:
    """Read an effect file; raises InputError with file, line and hint."""
    try:
        return load_effect(data, where)
    except EffectFileError as error:
        raise InputError(error.message, where=error.where, mend=error.mend) from error
