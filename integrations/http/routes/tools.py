"""``/v1/tools``: the list, one route a tool, and batches. The OpenAPI document names each tool's route by itself."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field

from integrations.http.auth import Toolsmith
from integrations.http.bodies import parse_object, read_object, require_json
from integrations.http.metrics import Metrics
from integrations.http.openapi import error_responses
from integrations.http.problems import ServiceProblem
from integrations.http.service import Here
from tools.errors import BadValue, InputProblem, UnknownName
from tools.registry import ToolSpec, all_tools, get_tool

log = logging.getLogger("advisor.http")
router = APIRouter(tags=["tools"])
JSON = "application/json"
LINES = "application/x-ndjson"


class ToolListing(BaseModel):
    """A tool as the list shows it."""

    name: str
    summary: str
    description: str
    input_schema: dict[str, Any] = Field(description="JSON Schema; `unit` beside a field is the unit it is given in.")
    output_schema: dict[str, Any]
    examples: list[dict[str, Any]]


class ToolList(BaseModel):
    """All tools."""

    tools: list[ToolListing]


@router.get("/v1/tools", summary="List the tools", response_model=ToolList, responses=error_responses())
def list_tools(caller: Toolsmith) -> ToolList:
    """Names, what each computes, and the schemas of arguments and result."""
    return ToolList(
        tools=[
            ToolListing(
                name=spec.name,
                summary=spec.summary,
                description=spec.description,
                input_schema=spec.input_schema(),
                output_schema=spec.output_schema(),
                examples=list(spec.examples),
            )
            for spec in all_tools().values()
        ]
    )


@router.post("/v1/tools/{name}", include_in_schema=False)
async def call_tool(name: str, request: Request, here: Here, caller: Toolsmith) -> Response:
    """One call; the OpenAPI document describes it once for each tool."""
    spec = tool_of(name)
    arguments = await read_object(request)
    return Response(await asyncio.to_thread(run_tool, spec, arguments, here.metrics), media_type=JSON)


@router.post("/v1/tools/{name}/batch", include_in_schema=False)
async def call_batch(name: str, request: Request, here: Here, caller: Toolsmith) -> Response:
    """Many calls of one tool: `{"items": [arguments, ...]}`, or one JSON object a line."""
    spec = tool_of(name)
    require_json(request, LINES)
    by_line = request.headers.get("content-type", "").startswith(LINES)
    body = await request.body()
    items: list[Any] = [line for line in body.splitlines() if line.strip()] if by_line else _items(parse_object(body))
    if len(items) > here.settings.batch_items:
        raise ServiceProblem(
            413, "too_many_items", f"A batch holds at most {here.settings.batch_items:,} items, not {len(items):,}."
        )
    results = _each(spec, items, here.metrics)
    if by_line:
        return StreamingResponse((line + b"\n" for line in results), media_type=LINES)
    lines = await asyncio.to_thread(list, results)
    return Response(b'{"results":[' + b",".join(lines) + b"]}", media_type=JSON)


def tool_of(name: str) -> ToolSpec:
    """The tool of a route. Raises ServiceProblem 404, with the nearest names, for one that is not there."""
    try:
        return get_tool(name)
    except UnknownName as problem:
        raise ServiceProblem(
            404,
            problem.code,
            problem.message,
            field="tool",
            hint="GET /v1/tools lists them.",
            candidates=problem.candidates,
        ) from None


def run_tool(spec: ToolSpec, arguments: dict[str, Any], metrics: Metrics) -> bytes:
    """One counted call, as UTF-8 JSON of the result. Blocks, so call it in a thread. Raises InputProblem for arguments
    that cannot be.
    """
    begun = time.perf_counter()
    outcome = "error"
    try:
        result = spec.call(arguments).model_dump_json().encode()
        outcome = "ok"
        return result
    finally:
        metrics.tool(spec.name, "http", outcome, time.perf_counter() - begun)


def _items(body: dict[str, Any]) -> list[Any]:
    items = body.get("items")
    if not isinstance(items, list):
        raise BadValue("bad_value", "'items' must be a list of argument objects.", field="items")
    return items


def _each(spec: ToolSpec, items: list[Any], metrics: Metrics) -> Iterator[bytes]:
    """A result or an error for each item, in order; a bad item stops nothing."""
    for item in items:
        try:
            arguments = parse_object(item) if isinstance(item, bytes) else item
            if not isinstance(arguments, dict):
                raise BadValue("bad_value", "An item must be a JSON object of arguments.")
            yield run_tool(spec, arguments, metrics)
        except InputProblem as problem:
            yield _error(problem)
        except Exception:
            log.exception("tool %s failed in a batch", spec.name)
            yield _error(BadValue("tool_failed", f"{spec.name} failed on this input.", hint="Try other values."))


def _error(problem: InputProblem) -> bytes:
    return json.dumps({"error": problem.as_dict()}, ensure_ascii=False).encode()
