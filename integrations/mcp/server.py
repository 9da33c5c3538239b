"""The MCP server: tools with their schemas from the registry, knowledge as resources, prompts that say what to call."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import anyio.to_thread
from mcp import MCPError
from mcp.server import Server
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from advisor.answer import finite
from advisor.render import error_words
from advisor.terminal import result_markdown
from integrations.mcp import prompts, resources
from tools.errors import InputProblem, UnknownName
from tools.registry import ToolSpec, all_tools, get_tool

log = logging.getLogger("advisor.mcp")
NAME = "training-infrastructure-advisor"
INSTRUCTIONS = (
    "Computes what training and serving language models needs: memory, GPUs, time, cost, network, prices. Every number "
    "in a result has its unit, its range, what it rests on and, for prices, its date: quote them with the numbers. "
    "Leave out arguments that the user did not give; defaults are listed in `assumptions`. An error names the argument "
    "at fault and the nearest valid values."
)
# Called with the tool's name, "ok" or "error", and the seconds it took.
Observe = Callable[[str, str, float], None]


def build_server(version: str, observe: Observe = lambda _name, _outcome, _seconds: None) -> Server[Any]:
    """The server, to be run over any transport; ``observe`` is told of each tool call. Tools run in threads, and wrong
    arguments come back as a result marked as error, unknown names as MCPError (invalid params).
    """

    async def list_tools(_ctx: Any, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(_listing()))

    async def call_tool(_ctx: Any, params: CallToolRequestParams) -> CallToolResult:
        try:
            spec = get_tool(params.name)
        except UnknownName as problem:
            raise MCPError(INVALID_PARAMS, error_words(problem.as_dict()), {"error": problem.as_dict()}) from None
        return await anyio.to_thread.run_sync(_call, spec, params.arguments or {}, observe)

    async def list_resources(_ctx: Any, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        return ListResourcesResult(resources=resources.listing())

    async def list_templates(_ctx: Any, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=resources.templates())

    async def read_resource(_ctx: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        try:
            kind, text = await anyio.to_thread.run_sync(resources.read, str(params.uri))
        except InputProblem as problem:
            raise MCPError(INVALID_PARAMS, error_words(problem.as_dict()), {"error": problem.as_dict()}) from None
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type=kind, text=text)])

    async def list_prompts(_ctx: Any, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=prompts.listing())

    async def get_prompt(_ctx: Any, params: GetPromptRequestParams) -> GetPromptResult:
        try:
            return prompts.fill(params.name, params.arguments or {})
        except InputProblem as problem:
            raise MCPError(INVALID_PARAMS, error_words(problem.as_dict()), {"error": problem.as_dict()}) from None

    return Server(
        NAME,
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _call(spec: ToolSpec, arguments: dict[str, Any], observe: Observe) -> CallToolResult:
    """The result as data for programs and Markdown for models; an error to be mended is a result that models read."""
    begun = time.perf_counter()
    outcome = "error"
    try:
        result = spec.call(arguments)
        outcome = "ok"
    except InputProblem as problem:
        error = problem.as_dict()
        return CallToolResult(
            content=[TextContent(type="text", text=error_words(error))],
            structured_content={"error": error},
            is_error=True,
        )
    except Exception:
        log.exception("tool %s failed", spec.name)
        raise MCPError(INTERNAL_ERROR, f"{spec.name} failed on this input; the fault is logged.") from None
    finally:
        observe(spec.name, outcome, time.perf_counter() - begun)
    text = result_markdown(spec.name, result)
    data = finite(result.model_dump(mode="json"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=data)


@lru_cache(maxsize=1)
def _listing() -> tuple[Tool, ...]:
    return tuple(
        Tool(
            name=spec.name,
            title=spec.summary,
            description="\n".join(part for part in (spec.summary, spec.description, _examples(spec)) if part),
            input_schema=spec.input_schema(),
            output_schema=spec.output_schema(),
            annotations=ToolAnnotations(
                title=spec.summary, read_only_hint=True, destructive_hint=False, idempotent_hint=True,
                open_world_hint=False,
            ),
        )
        for spec in all_tools().values()
    )  # fmt: skip


def _examples(spec: ToolSpec) -> str:
    return "\n".join(f"Example: {json.dumps(example, ensure_ascii=False)}" for example in spec.examples[:2])
