"""The frontmatter of a skill: found by its fences, read by a YAML reader, never repaired."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import yaml

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_MARK = "\ufeff"


@dataclass(frozen=True, slots=True)
class Header:
    """The frontmatter as parsed, and where it ends.

    ``end`` is the character offset behind the closing fence and its line end.
    ``description_lines`` are the lines of the file, from 1, that the description stands on.
    """

    values: Mapping[str, object]
    name: str
    description: str
    end: int
    line_end: str
    description_lines: tuple[tuple[int, str], ...]
    warnings: tuple[str, ...]


def read_header(text: str, where: str) -> Header:
    """Find and read the frontmatter of a file's text.

    Raises:
        InputError: No opening or closing fence, unreadable YAML (with line and column), a key
            given twice, or a name or description that is missing, blank or not text.
    """
    yaml_start, yaml_end, end, line_end = _fences(text, where)
    source = text[yaml_start:yaml_end]
    root = _compose(source, where)
    values = _construct(root, source, where)
    return Header(
        values=values,
        name=_required(root, values, "name", where),
        description=_required(root, values, "description", where),
        end=end,
        line_end=line_end,
        description_lines=_lines_of(_value_node(root, "description"), source),
        warnings=tuple(_warnings(root, where)),
    )


def _fences(text: str, where: str) -> tuple[int, int, int, str]:
    at = 1 if text.startswith(_MARK) else 0
    first = _LINE.match(text, at)
    if first is None or first.group(1) != "---":
        raise InputError(
            "no frontmatter: the first line is not exactly three dashes",
            where=f"{where}:1",
            mend="Begin the file with a line `---`, then name and description",
        )
    start = position = first.end()
    while position < len(text):
        line = _LINE.match(text, position)
        if line is None:
            break
        if line.group(1) == "---":
            return start, position, line.end(), first.group(2)
        position = line.end()
    raise InputError(
        "no closing fence: no further line is exactly three dashes",
        where=where,
        mend="Close the frontmatter with a line `---`",
    )


def _unreadable(where: str, problem: str, line: int, column: int) -> InputError:
    return InputError(
        f"header unreadable: {problem}",
        where=f"{where}:{line}:{column}",
        mend="Correct the YAML; a value with a colon and a space in it needs quotes",
    )


def _at(error: yaml.YAMLError | ValueError, source: str) -> tuple[str, int, int]:
    """Return problem, line and column (from 1) in the file; the header begins on line 2."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "not YAML"
        return (problem, mark.line + 2, mark.column + 1) if mark else (problem, 2, 1)
    if isinstance(error, yaml.reader.ReaderError):
        before = source[: error.position]
        column = len(before) - before.rfind("\n")
        return "a control character", before.count("\n") + 2, column
    return str(error), 2, 1


def _compose(source: str, where: str) -> yaml.MappingNode:
    try:
        root = yaml.compose(source, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise _unreadable(where, *_at(error, source)) from error
    except RecursionError as error:
        raise _unreadable(where, "nested too deeply", 2, 1) from error
    if not isinstance(root, yaml.MappingNode):
        raise InputError(
            "the frontmatter is not a mapping of keys to values",
            where=f"{where}:2",
            mend="Give at least `name:` and `description:`",
        )
    return root


def _construct(root: yaml.MappingNode, source: str, where: str) -> dict[str, object]:
    seen: set[str] = set()
    for key, _ in root.value:
        line, column = key.start_mark.line + 2, key.start_mark.column + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
            raise _unreadable(where, "a key is not text", line, column)
        if key.value in seen:
            raise _unreadable(where, f"the key {key.value!r} stands twice", line, column)
        seen.add(key.value)
    try:
        values = yaml.SafeLoader("").construct_document(root)
    except (yaml.YAMLError, ValueError) as error:
        raise _unreadable(where, *_at(error, source)) from error
    except RecursionError as error:
        raise _unreadable(where, "nested too deeply", 2, 1) from error
    return cast("dict[str, object]", values)


def _required(root: yaml.MappingNode, values: Mapping[str, object], key: str, where: str) -> str:
    value = values.get(key)
    if isinstance(value, str) and value.strip():
        return value
    mend = f"Write `{key}:` with some text, in quotes"
    if key not in values:
        raise InputError(f"{key} is missing in the frontmatter", where=where, mend=mend)
    line = _value_node(root, key).start_mark.line + 2
    fault = "is empty" if value is None or isinstance(value, str) else "is not text"
    raise InputError(f"{key} {fault}", where=f"{where}:{line}", mend=mend)


def _value_node(root: yaml.MappingNode, key: str) -> yaml.Node:
    found: yaml.Node = next(value for name, value in root.value if name.value == key)
    return found


def _lines_of(node: yaml.Node, source: str) -> tuple[tuple[int, str], ...]:
    """Return the source lines of a scalar: YAML folding would join bullets and hide the line."""
    start, end = node.start_mark, node.end_mark
    quoted = isinstance(node, yaml.ScalarNode) and node.style in {"'", '"'}
    block = isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}
    span = source[start.index + quoted : end.index - quoted]
    found = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", span)):
        if line.strip() and not (block and number == 0):
            found.append((start.line + 2 + number, line.strip()))
    return tuple(found)


def _warnings(root: yaml.MappingNode, where: str) -> list[str]:
    found = []
    for key, value in root.value:
        if key.value != "metadata" or not isinstance(value, yaml.MappingNode):
            continue
        for inner, content in value.value:
            if content.tag != "tag:yaml.org,2002:str":
                line = content.start_mark.line + 2
                found.append(
                    f"{where}:{line}: metadata.{inner.value} is not text; put it in quotes"
                )
    return found
