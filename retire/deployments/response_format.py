"""How an answer is asked for: a schema of all possible answers, or tools under sendable names.

Pure. The schema is kept to what grammars of small servers read: ``anyOf`` of closed objects,
``enum``, ``required``. Bounds, lengths and patterns are left out on purpose: some servers refuse
a schema that has them, others ignore them, and the sink enforces them in any case.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_SENDABLE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def answer_schema(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema of every answer the prompt allows: one call of one tool, or a refusal.

    Args:
        tools: Function schemas as the prompt offers them.
    """
    calls = [_call_schema(tool["function"]) for tool in tools]
    return {"anyOf": [*calls, _closed({"refusal": {"type": "string"}}, ["refusal"])]}


def _call_schema(function: Mapping[str, Any]) -> dict[str, Any]:
    parameters = function["parameters"]
    properties = {
        key: _plain_property(value) for key, value in dict(parameters["properties"]).items()
    }
    arguments = _closed(properties, list(parameters.get("required", ())))
    name = {"type": "string", "enum": [function["name"]]}
    return _closed({"tool": name, "arguments": arguments}, ["tool", "arguments"])


def _plain_property(schema: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": schema["type"]}
    if "const" in schema:
        plain["enum"] = [schema["const"]]
    elif "enum" in schema:
        plain["enum"] = list(schema["enum"])
    return plain


def _closed(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def name_table(tools: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the offered name behind each name that is sent.

    Endpoints accept ASCII letters, digits, ``_`` and ``-``, at most 64; whatever else stands in a
    name is sent as ``_``.

    Raises:
        InputError: Two tools would be sent under one name, or a name is too long.
    """
    table: dict[str, str] = {}
    for tool in tools:
        name = str(tool["function"]["name"])
        sent = _NOT_SENDABLE.sub("_", name)
        if len(sent) > _LONGEST_NAME or not sent:
            raise InputError(
                f"the tool name {name[:80]!r} has {len(name)} characters; 1 to {_LONGEST_NAME} "
                "can be sent to a model",
                mend="Give the tool another name in the contract",
            )
        if sent in table:
            raise InputError(
                f"the tools {table[sent]!r} and {name!r} would both be sent as {sent!r}",
                mend="Rename one of them in the contract",
            )
        table[sent] = name
    return table


def sent_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools under the names that are sent.

    Raises:
        InputError: As :func:`name_table`.
    """
    return [
        {**tool, "function": {**tool["function"], "name": sent}}
        for sent, tool in zip(name_table(tools), tools, strict=True)
    ]
