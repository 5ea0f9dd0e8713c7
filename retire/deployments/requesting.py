"""The body of one request, from a configuration and a prompt. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from retire.deployments.response_format import answer_schema, sent_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from retire.deployments.configuration import OpenAIConfiguration

SCHEMA_NAME = "answer"


def request_body(
    configuration: OpenAIConfiguration,
    messages: Sequence[Mapping[str, str]],
    tools: Sequence[Mapping[str, Any]],
    seed: int,
) -> dict[str, Any]:
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
    body: dict[str, Any] = {
        "model": configuration.model,
        "messages": [dict(message) for message in messages],
        configuration.limit_field: sampling.max_tokens,
    }
    for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty"):
        text = getattr(sampling, name)
        if text is not None:
            body[name] = _json_number(Decimal(text))
    if sampling.seed:
        body["seed"] = seed
    if configuration.output == "json_schema":
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": SCHEMA_NAME,
                "strict": configuration.schema_strict,
                "schema": answer_schema(tools),
            },
        }
    elif configuration.output == "tools":
        body["tools"] = sent_tools(tools)
    if configuration.stream:
        body["stream"] = True
        # Without the count of tokens a streamed answer at its limit passes for a finished one.
        body["stream_options"] = {"include_usage": True}
    return body | {key: _as_json(value) for key, value in configuration.extra_body.items()}


def _as_json(value: Any) -> Any:  # noqa: ANN401  # JSON
    if isinstance(value, Decimal):
        return _json_number(value)
    if isinstance(value, Mapping):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_as_json(item) for item in value]
    return value


def _json_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)
