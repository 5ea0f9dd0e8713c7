"""The body of one request, from a configuration and a prompt. Pure.

An answer is asked for with a schema of all possible answers, or with tools under sendable names.
The schema is kept to what grammars of small servers read: ``anyOf`` of closed objects, ``enum``,
``required``. Bounds, lengths and patterns are left out on purpose: some servers refuse a schema
that has them, others ignore them, and the sink enforces them in any case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.deployments.configuration import OpenAIConfiguration
    from retire.prompts import ToolSchema
    from retire.prompts.tools import FunctionSchema, Schema

_NOT_SENDABLE = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


def request_body(
    configuration: OpenAIConfiguration,
    messages: Sequence[Mapping[str, str]],
    tools: Sequence[ToolSchema],
    seed: int,
) -> dict[str, object]:
    """Return the JSON body of ``POST /chat/completions``.

    Args:
        configuration: The deployment; its ``extra_body`` is merged in.
        messages: The prompt's messages.
        tools: Function schemas as the prompt offers them.
        seed: The plan's seed; sent where the configuration says so.

    Raises:
        InputError: Two tools would be sent under one name.
    """
    sampling = configuration.sampling
    body: dict[str, object] = {
        "model": configuration.model,
        "messages": [dict(message) for message in messages],
        configuration.limit_field: sampling.max_tokens,
    }
    for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty"):
        text = getattr(sampling, name)
        if text is not None:
            body[name] = _as_json(Decimal(text))
    if sampling.seed:
        body["seed"] = seed
    if configuration.output == "json_schema":
        schema = {"strict": configuration.schema_strict, "schema": answer_schema(tools)}
        described = {"name": "answer", **schema}
        body["response_format"] = {"type": "json_schema", "json_schema": described}
    elif configuration.output == "tools":
        body["tools"] = sent_tools(tools)
    if configuration.stream:
        body["stream"] = True
        # Without the count of tokens a streamed answer at its limit passes for a finished one.
        body["stream_options"] = {"include_usage": True}
    return body | {key: _as_json(value) for key, value in configuration.extra_body.items()}


def _as_json(value: object) -> object:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_as_json(item) for item in value]
    return value


def answer_schema(tools: Sequence[ToolSchema]) -> Schema:
    """Return the schema of every answer the prompt allows: one call of one tool, or a refusal.

    Args:
        tools: Function schemas as the prompt offers them.
    """
    calls = [_call_schema(tool["function"]) for tool in tools]
    return {"anyOf": [*calls, _closed({"refusal": {"type": "string"}}, ["refusal"])]}


def _call_schema(function: FunctionSchema) -> Schema:
    parameters = function["parameters"]
    properties = {key: _plain(value) for key, value in parameters["properties"].items()}
    arguments = _closed(properties, list(parameters.get("required", ())))
    name: Schema = {"type": "string", "enum": [function["name"]]}
    return _closed({"tool": name, "arguments": arguments}, ["tool", "arguments"])


def _plain(schema: Schema) -> Schema:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    plain: Schema = {"type": schema["type"]}
    return plain if choices is None else {**plain, "enum": list(choices)}


def _closed(properties: dict[str, Schema], required: list[str]) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def name_table(tools: Sequence[ToolSchema]) -> dict[str, str]:
    """Return the offered name behind each name that is sent.

    Endpoints accept ASCII letters, digits, ``_`` and ``-``, at most 64; whatever else stands in a
    name is sent as ``_``.

    Raises:
        InputError: Two tools would be sent under one name, or a name is too long.
    """
    table: dict[str, str] = {}
    for tool in tools:
        name = tool["function"]["name"]
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


def sent_tools(tools: Sequence[ToolSchema]) -> list[ToolSchema]:
    """Return the tools under the names that are sent.

    Raises:
        InputError: As :func:`name_table`.
    """
    return [
        {**tool, "function": {**tool["function"], "name": sent}}
        for sent, tool in zip(name_table(tools), tools, strict=True)
    ]
