"""The tools a contract offers, in the form that tool-calling models read."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sink.contract import Contract, Parameter, Scalar, Tool


def tool_schemas(contract: Contract) -> list[dict[str, Any]]:
    """Return the function schemas of all offered tools, the same in every condition.

    Sorted by tool name, so that the protected one does not stand out by its place.
    """
    tools = sorted((contract.action, *contract.other_tools), key=lambda tool: tool.tool)
    return [_tool_schema(tool) for tool in tools]


def _tool_schema(tool: Tool) -> dict[str, Any]:
    named = "; ".join(f"{key}: {name}" for key, name in tool.targets.items())
    properties: dict[str, Any] = {
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


def _property(parameter: Parameter) -> dict[str, Any]:
    unit = f" Unit: {parameter.unit}." if parameter.unit else ""
    schema: dict[str, Any] = {
        "type": parameter.type,
        "description": f"{parameter.description}{unit}",
    }
    for name in ("default", "const", "minimum", "maximum"):
        value = getattr(parameter, name)
        if value is not None:
            schema[name] = _number(value)
    if parameter.enum is not None:
        schema["enum"] = [_number(value) for value in parameter.enum]
    return schema


def _number(value: Scalar) -> bool | int | float | str:
    # JSON Schema has numbers only; the bounds of household devices survive a float exactly.
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
