"""The text of B0 to B6: what each condition shows to the model. Pure."""

from retire.prompts.prompt import Prompt, build_prompt, model_text
from retire.prompts.tools import ToolSchema, tool_schemas, tools_json

__all__ = ["Prompt", "ToolSchema", "build_prompt", "model_text", "tool_schemas", "tools_json"]
