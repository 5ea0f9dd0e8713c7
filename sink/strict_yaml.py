"""Read a YAML file into a strict pydantic model, with the line of every fault.

YAML 1.1 turns an unquoted ``off`` into a boolean, ``22:30`` into 1350 and a date into a date
object. A policy file must not depend on that, so every plain scalar that is not text, a whole
number, a decimal, ``true``, ``false`` or empty is refused with the hint to quote it. Anchors,
aliases, merge keys and repeated keys are refused too. Decimals are read as ``Decimal``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

MAX_BYTES = 1_048_576
"""Largest file read, in bytes; a policy file larger than this is a mistake or an attack."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})\Z")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,17})\.[0-9]{1,18}\Z")
_TAG = "tag:yaml.org,2002:"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class StrictModel(BaseModel):
    """Frozen, strict, and closed: a key nobody declared is refused, never dropped."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Model = TypeVar("Model", bound=StrictModel)


class DocumentError(Exception):
    """A file cannot be used.

    Args:
        message: What is wrong.
        where: File and line, ``name:line``.
        mend: What to do about it.
    """

    def __init__(self, message: str, *, where: str, mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" + (f". {self.mend}" if self.mend else "")


class Loaded:
    """A parsed file: its value, and the line on which each path of it stands."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.value: Any = None
        self.lines: dict[tuple[str | int, ...], int] = {}

    def line_of(self, path: tuple[str | int, ...]) -> int:
        """Return the line (from 1) of a path, or of its nearest parent that has one."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return 1


def load(data: bytes, where: str) -> Loaded:
    """Parse YAML bytes into mappings, tuples, text, integers, decimals, booleans and None.

    Raises:
        DocumentError: Not UTF-8, too large, not YAML, or one of the forms refused above.
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(
            f"the file has {len(data)} bytes, more than {MAX_BYTES}",
            where=where,
            mend="Split it or remove what does not belong there",
        )
    try:
        node = yaml.compose(data.decode("utf-8"), Loader=_Loader)
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"not UTF-8 at byte {error.start}", where=where, mend="Save the file as UTF-8"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        raise DocumentError(f"not YAML: {error.problem}", where=f"{where}:{line}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise DocumentError(f"not YAML: {type(error).__name__}", where=where) from error
    if node is None:
        raise DocumentError("the file is empty", where=where)
    loaded = Loaded(where)
    try:
        loaded.value = _convert(node, (), loaded, set())
    except RecursionError as error:
        raise DocumentError("nested too deeply", where=where) from error
    return loaded


def read_model(model: type[Model], data: bytes, where: str) -> Model:
    """Parse YAML bytes and validate them against a strict model.

    Raises:
        DocumentError: As :func:`load`, or the first fault that the model finds, with its line.
    """
    loaded = load(data, where)
    if not isinstance(loaded.value, dict):
        raise DocumentError("a mapping is expected at the top of the file", where=f"{where}:1")
    try:
        return model.model_validate(loaded.value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = tuple(part for part in first["loc"])
        raise DocumentError(
            f"{'.'.join(str(part) for part in path) or 'file'}: {first['msg']}",
            where=f"{where}:{loaded.line_of(path)}",
            mend=_hint(first["type"]),
        ) from error


def _hint(kind: str) -> str:
    hints = {
        "string_type": "Put the value in quotes",
        "extra_forbidden": "Remove the key, or check its spelling",
        "missing": "Add the key",
        "int_type": "Write a whole number without quotes",
        "bool_type": "Write true or false without quotes",
    }
    return hints.get(kind, "")


def _convert(
    node: yaml.Node, path: tuple[str | int, ...], loaded: Loaded, seen: set[int]
) -> object:
    loaded.lines[path] = node.start_mark.line + 1
    if id(node) in seen:
        raise _refused(node, loaded, "anchors and aliases are not used in these files")
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        return _convert_mapping(node, path, loaded, seen)
    if isinstance(node, yaml.SequenceNode):
        return tuple(
            _convert(item, (*path, index), loaded, seen) for index, item in enumerate(node.value)
        )
    return _convert_scalar(node, loaded)


def _convert_mapping(
    node: yaml.MappingNode, path: tuple[str | int, ...], loaded: Loaded, seen: set[int]
) -> dict[str, object]:
    result: dict[str, object] = {}
    for key_node, value_node in node.value:
        if key_node.tag != _TAG + "str":
            raise _refused(key_node, loaded, f"the key {key_node.value!r} is not text", quote=True)
        key = key_node.value
        if key in result:
            raise _refused(key_node, loaded, f"the key {key!r} stands twice")
        result[key] = _convert(value_node, (*path, key), loaded, seen)
        loaded.lines[(*path, key)] = key_node.start_mark.line + 1
    return result


def _convert_scalar(node: yaml.Node, loaded: Loaded) -> object:
    text = str(node.value)
    kind = node.tag.removeprefix(_TAG)
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool" and text in {"true", "false"}:
        return text == "true"
    if kind == "int" and _WHOLE.match(text):
        return int(text)
    if kind == "float" and _DECIMAL.match(text):
        return Decimal(text)
    raise _refused(node, loaded, f"the value {text!r} would be read as {kind}", quote=True)


def _refused(
    node: yaml.Node, loaded: Loaded, message: str, *, quote: bool = False
) -> DocumentError:
    return DocumentError(
        message,
        where=f"{loaded.where}:{node.start_mark.line + 1}",
        mend="Put it in quotes if text is meant" if quote else "",
    )
