"""The tools a contract offers, in the form that tool-calling models read."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Literal, TypedDict, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.domain.digests import Json
    from sink.contract import Contract, Parameter, Scalar, Tool

_BOUNDS: tuple[Literal["default", "const", "minimum", "maximum"], ...] = (
    "default",
    "const",
    "minimum",
    "maximum",
)


class Schema(TypedDict, total=False):
    """A JSON Schema, as far as tools and answers use it."""

    type: str
    description: str
    default: bool | float | str
    const: bool | float | str
    minimum: bool | float | str
    maximum: bool | float | str
    enum: list[bool | float | str]
    anyOf: list[Schema]
    properties: dict[str, Schema]
    required: list[str]
    additionalProperties: bool


class FunctionSchema(TypedDict):
    """What a tool is called, does and takes."""

    name: str
    description: str
    parameters: Schema


class ToolSchema(TypedDict):
    """One offered tool."""

    type: Literal["function"]
    function: FunctionSchema


def tools_json(tools: Sequence[ToolSchema]) -> Sequence[Json]:
    """Return tools as JSON, to be digested or read by a program that knows no schema."""
    return cast("Sequence[Json]", tools)


def tool_schemas(contract: Contract) -> list[ToolSchema]:
    """Return the function schemas of all offered tools, the same in every condition.

    Sorted by tool name, so that the protected one does not stand out by its place.
    """
    tools = sorted((contract.action, *contract.other_tools), key=lambda tool: tool.tool)
    return [_tool_schema(tool) for tool in tools]


def _tool_schema(tool: Tool) -> ToolSchema:
    named = "; ".join(f"{key}: {name}" for key, name in tool.targets.items())
    properties: dict[str, Schema] = {
        "target": {"type": "string", "enum": list(tool.targets), "description": named}
    }
    for key, parameter in tool.parameters.items():
        properties[key] = _property(parameter)
    required = ["target", *(key for key, item in tool.parameters.items() if item.required)]
    return {
        "type": "function",
        "function": {
            "name": tool.tool,
            "description": tool.description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            },
        },
    }


def _property(parameter: Parameter) -> Schema:
    unit = f" Unit: {parameter.unit}." if parameter.unit else ""
    schema: Schema = {
        "type": parameter.type,
        "description": f"{parameter.description}{unit}",
    }
    for name in _BOUNDS:
        value = getattr(parameter, name)
        if value is not None:
            schema[name] = _number(value)
    if parameter.enum is not None:
        schema["enum"] = [_number(value) for value in parameter.enum]
    return schema


def _number(value: Scalar) -> bool | float | str:
    # JSON Schema has numbers only; the bounds of household devices survive a float exactly.
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
