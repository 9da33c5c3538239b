"""Our messages and tools in the chat-completions format that litellm takes."""

from __future__ import annotations

import json
from typing import Any

from advisor.llm.protocol import Message, ToolSchema
from advisor.prompt import REPAIR


def wire_messages(system: str, messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """Messages in the chat-completions format; a later system message goes as the user's, since some take only one."""
    wire: list[dict[str, Any]] = [{"role": "system", "content": system}]
    for message in messages:
        if message.role == "tool":
            wire.append({"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content})
        elif message.tool_calls:
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name or "unknown", "arguments": json.dumps(call.arguments)},
                }
                for call in message.tool_calls
            ]
            wire.append({"role": "assistant", "content": message.content or None, "tool_calls": calls})
        else:
            role = "user" if message.role == "system" else message.role
            wire.append({"role": role, "content": message.content})
    return wire


def wire_tool(tool: ToolSchema) -> dict[str, Any]:
    """A tool in the chat-completions format; summary and description together are cut to 1,024 characters."""
    words = f"{tool.summary}\n{tool.description}".strip()
    return {
        "type": "function",
        "function": {"name": tool.name, "description": words[:1024], "parameters": compact_schema(tool.parameters)},
    }


_LEFT_OUT = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def compact_schema(schema: Any) -> Any:
    """A JSON schema without what costs tokens, tells a model little, and some providers refuse.

    Left out: titles, bounds (the tool names the nearest valid value by itself), and null beside a default of null.
    """
    if isinstance(schema, list):
        return [compact_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: {name: compact_schema(item) for name, item in value.items()}
        if key in ("properties", "$defs")
        else compact_schema(value)
        for key, value in schema.items()
        if key not in _LEFT_OUT
        and not (key == "title" and isinstance(value, str))
        and not (key == "default" and value is None)
    }
    options = kept.get("anyOf")
    if isinstance(options, list):
        options = [option for option in options if option != {"type": "null"}]
        if len(options) == 1:
            kept.pop("anyOf")
            kept = {**options[0], **kept}
        else:
            kept["anyOf"] = options
    return kept


def this_turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From the last question on; a repair request counts as part of the turn, since it follows an assistant's text."""
    asked = [
        number
        for number, message in enumerate(messages)
        if message["role"] == "user" and not str(message["content"]).startswith(_REPAIR_BEGINS)
    ]
    return messages[asked[-1] :] if asked else messages[1:]


_REPAIR_BEGINS = REPAIR.partition("{")[0]
